package conformance

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

func growCases() []Case {
	disk := []Need{NeedDisk}
	return []Case{
		{"volume/grow", GroupVolume, disk, volumeGrow},
		{"volume/flush", GroupVolume, disk, volumeFlush},
	}
}

// A volume grows into a disk that has grown, keeps its files, and never shrinks.
func volumeGrow(ctx context.Context, s *scene) {
	mount := s.path("m")
	d, id := s.mounted(ctx, mount)
	s.write(ctx, mount+`\file`, "kept")
	before, err := s.host.GetVolumeStats(ctx, id)
	s.must(err, "GetVolumeStats")
	s.must(s.host.ResizeVolume(ctx, id, 0), "ResizeVolume of a volume that fills its disk")
	s.fails(s.host.ResizeVolume(ctx, id, 2*grownBytes), "ResizeVolume beyond the disk", host.KindExhausted)
	s.must(s.host.WriteVolumeCache(ctx, id), "WriteVolumeCache")
	s.grow(ctx, d)
	s.eventually(ctx, "the new size in GetDiskStats", func() (bool, error) {
		stats, err := s.host.GetDiskStats(ctx, d.Number())
		return stats.TotalBytes == grownBytes, err
	})
	if after, err := s.host.GetVolumeStats(ctx, id); err != nil || after.TotalBytes != before.TotalBytes {
		s.Errorf("the disk has grown: GetVolumeStats said %+v, and says %+v, %v", before, after, err)
	}
	s.fails(s.host.ResizeVolume(ctx, id, 2*grownBytes), "ResizeVolume beyond the grown disk", host.KindExhausted)
	some := before.TotalBytes + 200*mib
	s.growsTo(ctx, d, id, some, some)
	s.growsTo(ctx, d, id, 0, before.TotalBytes+diskBytes-mib)
	for _, sizeBytes := range []int64{0, some, mib} {
		s.growsTo(ctx, d, id, sizeBytes, before.TotalBytes+diskBytes-mib)
	}
	s.holds(ctx, mount+`\file`, "kept")
	s.isMountedAt(ctx, id, mount)
}

// growsTo resizes a volume and makes the case fail unless partition and file system
// have about the size then.
func (s *scene) growsTo(ctx context.Context, d *scratchDisk, id string, askBytes, wantBytes int64) {
	s.must(s.host.ResizeVolume(ctx, id, askBytes), "ResizeVolume")
	stats, err := s.host.GetVolumeStats(ctx, id)
	s.must(err, "GetVolumeStats")
	partitions := s.look(ctx, d).Partitions
	if len(partitions) != 1 {
		s.Fatalf("resized, the disk has the partitions %+v", partitions)
	}
	const slack = 8 * mib // the file system's own, and alignment
	for what, sizeBytes := range map[string]int64{"GetVolumeStats": stats.TotalBytes, "the partition table": partitions[0].SizeBytes} {
		if sizeBytes < wantBytes-slack || sizeBytes > wantBytes+slack {
			s.Errorf("ResizeVolume to %d: %s says %d bytes, want about %d", askBytes, what, sizeBytes, wantBytes)
		}
	}
}

// What was flushed survives the disk being pulled, and the volume is the same one
// when the disk comes back.
func volumeFlush(ctx context.Context, s *scene) {
	mount := s.path("m")
	d, id := s.mounted(ctx, mount)
	s.write(ctx, mount+`\file`, "flushed")
	for range 2 {
		s.must(s.host.WriteVolumeCache(ctx, id), "WriteVolumeCache")
	}
	s.replug(ctx, d)
	if back := s.onlyVolume(ctx, d); !sameVolume(back, id) {
		s.Errorf("the volume was %s and comes back as %s", id, back)
	}
	s.isFormatted(ctx, id, true)
	s.must(s.host.MountVolume(ctx, id, mount), "MountVolume")
	s.holds(ctx, mount+`\file`, "flushed")
	number, err := s.host.GetDiskNumberFromVolumeID(ctx, id)
	if err != nil || number != d.Number() {
		s.Errorf("GetDiskNumberFromVolumeID = %d, %v; want %d", number, err, d.Number())
	}
	s.must(s.host.PartitionDisk(ctx, d.Number()), "PartitionDisk of the disk that came back")
	s.must(s.host.FormatVolume(ctx, id), "FormatVolume of the volume that came back")
	s.holds(ctx, mount+`\file`, "flushed")
}
