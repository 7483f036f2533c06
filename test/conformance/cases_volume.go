package conformance

import (
	"context"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

func volumeCases() []Case {
	disk := []Need{NeedDisk}
	return []Case{
		{"volume/format", GroupVolume, disk, volumeFormat},
		{"volume/format-refuses-data", GroupVolume, disk, volumeFormatRefusesData},
		{"volume/format-with", GroupVolume, disk, volumeFormatWith},
		{"volume/listed", GroupVolume, disk, volumeListed},
		{"volume/stats", GroupVolume, disk, volumeStats},
		{"volume/absent", GroupVolume, nil, volumeAbsent},
		{"volume/bad-id", GroupVolume, nil, volumeBadID},
	}
}

// A raw volume is formatted once; formatting it again is success and harms nothing.
func volumeFormat(ctx context.Context, s *scene) {
	d, id := s.volume(ctx)
	s.isFormatted(ctx, id, false)
	s.must(s.host.FormatVolume(ctx, id), "FormatVolume")
	s.isFormatted(ctx, id, true)
	s.must(s.host.MountVolume(ctx, id, s.path("m")), "MountVolume")
	s.write(ctx, s.path("m", "file"), "kept")
	s.must(s.host.FormatVolume(ctx, id), "FormatVolume again")
	if err := s.host.FormatVolumeWith(ctx, id, host.FormatOptions{FileSystem: "ntfs", Label: "other"}); !s.unsupported(err, "FormatVolumeWith") {
		s.must(err, "FormatVolumeWith of a volume with that file system")
	}
	if err := s.host.FormatVolumeWith(ctx, id, host.FormatOptions{FileSystem: "exFAT"}); !s.unsupported(err, "FormatVolumeWith") {
		s.fails(err, "FormatVolumeWith of a volume with another file system", host.KindPrecondition)
	}
	s.must(s.host.PartitionDisk(ctx, d.Number()), "PartitionDisk of a disk with data")
	s.holds(ctx, s.path("m", "file"), "kept")
	if info, ok := s.volumeInfo(ctx, id); ok && (info.FileSystem != "NTFS" || info.Label != "") {
		s.Errorf("GetVolume says %+v, want NTFS without label", info)
	}
	s.isFormatted(ctx, strings.TrimSuffix(id, `\`), true)
}

// isFormatted makes the case fail unless IsVolumeFormatted gives the answer.
func (s *scene) isFormatted(ctx context.Context, id string, want bool) {
	got, err := s.host.IsVolumeFormatted(ctx, id)
	if err != nil || got != want {
		s.Errorf("IsVolumeFormatted = %v, %v; want %v", got, err, want)
	}
}

// volumeInfo is GetVolume; ok is false when the host has no such method.
func (s *scene) volumeInfo(ctx context.Context, id string) (info host.VolumeInfo, ok bool) {
	info, err := s.host.GetVolume(ctx, id)
	if s.unsupported(err, "GetVolume") {
		return info, false
	}
	s.must(err, "GetVolume")
	return info, true
}

// A volume that Windows knows no file system on, but whose bytes look like one, is
// somebody's data.
func volumeFormatRefusesData(ctx context.Context, s *scene) {
	d, id := s.volume(ctx)
	before := s.look(ctx, d)
	s.must(d.WriteRaw(ctx, before.Partitions[0].OffsetBytes, ext4Superblock()), "write to the scratch disk")
	_, err := s.host.IsVolumeFormatted(ctx, id)
	s.fails(err, "IsVolumeFormatted of a volume with ext4", host.KindPrecondition)
	for range 2 {
		s.fails(s.host.FormatVolume(ctx, id), "FormatVolume of a volume with ext4", host.KindPrecondition)
	}
	if err := s.host.FormatVolumeWith(ctx, id, host.FormatOptions{FileSystem: "exFAT"}); !s.unsupported(err, "FormatVolumeWith") {
		s.fails(err, "FormatVolumeWith of a volume with ext4", host.KindPrecondition)
	}
	s.must(d.WriteRaw(ctx, before.Partitions[0].OffsetBytes, make([]byte, 4096)), "empty the scratch disk again")
	s.must(s.host.FormatVolume(ctx, id), "FormatVolume of the same volume without data")
	s.isFormatted(ctx, id, true)
}

// Format options are carried out; those that cannot be are refused before anything is.
func volumeFormatWith(ctx context.Context, s *scene) {
	_, id := s.volume(ctx)
	for what, options := range map[string]host.FormatOptions{
		"a file system nobody has":                   {FileSystem: "ext4"},
		"a cluster size that is no power of two":     {FileSystem: "NTFS", ClusterBytes: 5000},
		"a cluster size the file system cannot have": {FileSystem: "FAT32", ClusterBytes: 1 << 22},
		"a label of 33 characters":                   {FileSystem: "NTFS", Label: strings.Repeat("x", 33)},
		"a label with a control character":           {FileSystem: "NTFS", Label: "a\nb"},
	} {
		err := s.host.FormatVolumeWith(ctx, id, options)
		if s.unsupported(err, "FormatVolumeWith") {
			return
		}
		s.fails(err, "FormatVolumeWith "+what, host.KindInvalid)
	}
	s.isFormatted(ctx, id, false)
	options := host.FormatOptions{FileSystem: "exfat", ClusterBytes: 64 << 10, Label: "Scratch"}
	for range 2 {
		s.must(s.host.FormatVolumeWith(ctx, id, options), "FormatVolumeWith")
		info, ok := s.volumeInfo(ctx, id)
		if ok && (!strings.EqualFold(info.FileSystem, options.FileSystem) || info.ClusterBytes != options.ClusterBytes || info.Label != options.Label) {
			s.Errorf("formatted with %+v, GetVolume says %+v", options, info)
		}
	}
	s.isFormatted(ctx, id, true)
	s.must(s.host.MountVolume(ctx, id, s.path("m")), "MountVolume")
	s.write(ctx, s.path("m", "file"), "on exFAT")
	s.holds(ctx, s.path("m", "file"), "on exFAT")
}

// A volume is in the lists, with its disk, file system and sizes.
func volumeListed(ctx context.Context, s *scene) {
	d, id := s.mounted(ctx, s.path("m"))
	stats, err := s.host.GetVolumeStats(ctx, id)
	s.must(err, "GetVolumeStats")
	volumes, err := s.host.ListVolumes(ctx)
	if s.unsupported(err, "ListVolumes") {
		return
	}
	s.must(err, "ListVolumes")
	at := slices.IndexFunc(volumes, func(v host.VolumeInfo) bool { return sameVolume(v.ID, id) })
	if at < 0 {
		s.Fatalf("ListVolumes lacks %s", id)
	}
	listed := volumes[at]
	one, ok := s.volumeInfo(ctx, strings.TrimSuffix(id, `\`))
	if ok && (one.ID != listed.ID || one.DiskNumber != listed.DiskNumber || one.FileSystem != listed.FileSystem || !slices.Equal(one.MountPaths, listed.MountPaths)) {
		s.Errorf("GetVolume says %+v, ListVolumes %+v", one, listed)
	}
	if listed.DiskNumber != d.Number() || listed.PartitionNumber == 0 || listed.FileSystem != "NTFS" || listed.ClusterBytes == 0 {
		s.Errorf("ListVolumes has the volume as %+v", listed)
	}
	if listed.Health != host.HealthOK {
		s.Errorf("a fresh volume is %q: %s", listed.Health, listed.HealthDetail)
	}
	// The two are counted in different ways, and the file system keeps writing.
	if off := listed.SizeBytes - stats.TotalBytes; off < -mib || off > mib {
		s.Errorf("ListVolumes says %d bytes, GetVolumeStats %d", listed.SizeBytes, stats.TotalBytes)
	}
	if ids, err := s.host.ListVolumesOnDisk(ctx, d.Number(), listed.PartitionNumber); err != nil || len(ids) != 1 || !sameVolume(ids[0], id) {
		s.Errorf("ListVolumesOnDisk of partition %d: %q, %v", listed.PartitionNumber, ids, err)
	}
}

// The sizes of a volume are those of its partition, and move with what is written.
func volumeStats(ctx context.Context, s *scene) {
	d, id := s.mounted(ctx, s.path("m"))
	before, err := s.host.GetVolumeStats(ctx, id)
	s.must(err, "GetVolumeStats")
	partition := s.look(ctx, d).Partitions[0].SizeBytes
	if before.TotalBytes > partition || before.TotalBytes < partition-16*mib || before.UsedBytes < 0 || before.UsedBytes > before.TotalBytes {
		s.Errorf("GetVolumeStats says %+v of a partition of %d bytes", before, partition)
	}
	const written = 16 * mib
	s.write(ctx, s.path("m", "big"), strings.Repeat("0123456789abcdef", int(written/16)))
	s.must(s.host.WriteVolumeCache(ctx, id), "WriteVolumeCache")
	after, err := s.host.GetVolumeStats(ctx, id)
	s.must(err, "GetVolumeStats")
	if grown := after.UsedBytes - before.UsedBytes; after.TotalBytes != before.TotalBytes || grown < written || grown > 2*written {
		s.Errorf("%d bytes were written: GetVolumeStats said %+v, and says %+v", written, before, after)
	}
}

// volumeCalls are the calls that name a volume and nothing else that could be wrong.
func volumeCalls(s *scene) map[string]func(ctx context.Context, id string) error {
	return map[string]func(ctx context.Context, id string) error{
		"MountVolume":       func(ctx context.Context, id string) error { return s.host.MountVolume(ctx, id, s.path("absent")) },
		"IsVolumeFormatted": func(ctx context.Context, id string) error { _, err := s.host.IsVolumeFormatted(ctx, id); return err },
		"FormatVolume":      s.host.FormatVolume,
		"ResizeVolume":      func(ctx context.Context, id string) error { return s.host.ResizeVolume(ctx, id, 0) },
		"GetVolumeStats":    func(ctx context.Context, id string) error { _, err := s.host.GetVolumeStats(ctx, id); return err },
		"GetDiskNumberFromVolumeID": func(ctx context.Context, id string) error {
			_, err := s.host.GetDiskNumberFromVolumeID(ctx, id)
			return err
		},
		"WriteVolumeCache": s.host.WriteVolumeCache,
		"GetVolume":        func(ctx context.Context, id string) error { _, err := s.host.GetVolume(ctx, id); return err },
		"FormatVolumeWith": func(ctx context.Context, id string) error {
			return s.host.FormatVolumeWith(ctx, id, host.FormatOptions{})
		},
	}
}

// isVolumeAddition reports whether a call of volumeCalls may be missing.
func isVolumeAddition(name string) bool { return name == "GetVolume" || name == "FormatVolumeWith" }

// changesVolume reports whether a call of volumeCalls would change the volume.
func changesVolume(name string) bool {
	return strings.HasPrefix(name, "Format") || name == "ResizeVolume" || name == "MountVolume"
}

// What is asked of a volume that no node has is not found, and makes no folder.
func volumeAbsent(ctx context.Context, s *scene) {
	for name, call := range volumeCalls(s) {
		err := call(ctx, absentVolume)
		if isVolumeAddition(name) && s.unsupported(err, name) {
			continue
		}
		s.fails(err, name+" of a volume that is not there", host.KindNotFound)
	}
	s.must(s.host.UnmountVolume(ctx, absentVolume, s.path("absent")), "UnmountVolume where nothing is mounted")
	if s.has(ctx, s.folder, "absent") {
		s.Errorf("MountVolume of no volume made a folder")
	}
}

// A volume id of another form is invalid.
func volumeBadID(ctx context.Context, s *scene) {
	nobodys := []string{
		volumePrefix, `\\?\{` + absentGUID + `}\`, absentGUID, "\x00", `C:\` + s.run, `\\` + s.run + `\share`,
		`\\?\GLOBALROOT\Device\` + s.run, `\\.\` + s.run,
	}
	somebodys := []string{``, `C:`, `C:\`, `\\?\GLOBALROOT\Device\HarddiskVolume1`, `\\.\PhysicalDrive0`, `\\server\share`}
	for name, call := range volumeCalls(s) {
		bad := nobodys
		if !changesVolume(name) {
			bad = slices.Concat(nobodys, somebodys)
		}
		for _, id := range bad {
			err := call(ctx, id)
			if isVolumeAddition(name) && s.unsupported(err, name) {
				break
			}
			s.fails(err, name+" of "+id, host.KindInvalid)
		}
	}
	s.fails(s.host.UnmountVolume(ctx, `C:\`, s.path("m")), "UnmountVolume", host.KindInvalid)
	s.fails(s.host.ResizeVolume(ctx, absentVolume, -1), "ResizeVolume to a negative size", host.KindInvalid)
}
