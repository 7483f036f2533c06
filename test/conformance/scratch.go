package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// Sizes of scratch disks in bytes. Growing from one to the other is worth the
// while of ResizeVolume, and NTFS, FAT32 and exFAT fit on both.
const (
	mib        = int64(1) << 20
	diskBytes  = 512 * mib
	grownBytes = 1024 * mib
)

// scratchDisk is a disk of the case, and what was made on it.
type scratchDisk struct {
	Disk
	sizeBytes  int64
	partitions map[string]bool // ids of those made here
}

// check fails unless the disk is the one that was made here, as it was left: its
// size is known, and every partition was made by this case.
func (d *scratchDisk) check(ctx context.Context) (DiskState, error) {
	state, err := d.Look(ctx)
	if err != nil {
		return state, err
	}
	if state.Number != d.Number() || state.SizeBytes != d.sizeBytes {
		return state, fmt.Errorf("disk %d has %d bytes; the scratch disk is %d and has %d", state.Number, state.SizeBytes, d.Number(), d.sizeBytes)
	}
	for _, p := range state.Partitions {
		if !d.partitions[p.ID] {
			return state, fmt.Errorf("disk %d has partition %s, which was not made here", state.Number, p.ID)
		}
	}
	return state, nil
}

// remember takes the partitions for ours: the disk was just changed, and was ours.
func (d *scratchDisk) remember(ctx context.Context) error {
	state, err := d.Look(ctx)
	for _, p := range state.Partitions {
		d.partitions[p.ID] = true
	}
	return err
}

// disk makes a scratch disk and waits until the host sees it.
func (s *scene) disk(ctx context.Context) *scratchDisk {
	before := s.disksBefore(ctx)
	made, err := s.env.Scratch.Create(ctx, diskBytes)
	s.must(err, "make a scratch disk")
	d := &scratchDisk{Disk: made, sizeBytes: diskBytes, partitions: map[string]bool{}}
	s.mu.Lock()
	s.disks = append(s.disks, d)
	s.mu.Unlock()
	state, err := d.check(ctx)
	s.must(err, "look at the new disk")
	if len(state.Partitions) > 0 || state.Style != host.StyleRaw {
		s.Fatalf("the new disk %d is not empty: %+v", state.Number, state)
	}
	if _, there := before[d.Number()]; there {
		s.Fatalf("the host had a disk %d before this one was made: it seems to be on another node", d.Number())
	}
	s.awaitDisk(ctx, d)
	s.runner.sameNode = true
	return d
}

// disksBefore are the host's disks before the first scratch disk. Its number must not
// be among them: on another node the number is that of somebody's disk.
func (s *scene) disksBefore(ctx context.Context) map[uint32]host.DiskIDs {
	if s.runner.sameNode {
		return nil
	}
	s.must(s.host.Rescan(ctx), "Rescan")
	before, err := s.host.ListDiskIDs(ctx)
	s.must(err, "ListDiskIDs")
	return before
}

// awaitDisk waits until the host lists the disk.
func (s *scene) awaitDisk(ctx context.Context, d *scratchDisk) {
	s.eventually(ctx, fmt.Sprintf("disk %d in the host's list", d.Number()), func() (bool, error) {
		ids, err := s.host.ListDiskIDs(ctx)
		_, listed := ids[d.Number()]
		return listed, err
	})
}

// look is the disk as the node has it.
func (s *scene) look(ctx context.Context, d *scratchDisk) DiskState {
	state, err := d.check(ctx)
	s.must(err, "look at the scratch disk")
	return state
}

// volume makes a scratch disk with one raw volume.
func (s *scene) volume(ctx context.Context) (d *scratchDisk, id string) {
	d = s.disk(ctx)
	s.must(s.host.PartitionDisk(ctx, d.Number()), "PartitionDisk")
	return d, s.onlyVolume(ctx, d)
}

// onlyVolume is the one volume of a disk, once it has arrived.
func (s *scene) onlyVolume(ctx context.Context, d *scratchDisk) string {
	var ids []string
	s.eventually(ctx, fmt.Sprintf("one volume on disk %d", d.Number()), func() (bool, error) {
		var err error
		ids, err = s.host.ListVolumesOnDisk(ctx, d.Number(), 0)
		return len(ids) == 1, err
	})
	if !isVolumeID(ids[0]) {
		s.Fatalf("disk %d has volume %q, which is no volume id", d.Number(), ids[0])
	}
	return ids[0]
}

// formatted is volume with NTFS.
func (s *scene) formatted(ctx context.Context) (d *scratchDisk, id string) {
	d, id = s.volume(ctx)
	s.must(s.host.FormatVolume(ctx, id), "FormatVolume")
	return d, id
}

// mounted is formatted, mounted at a folder of the case.
func (s *scene) mounted(ctx context.Context, path string) (d *scratchDisk, id string) {
	d, id = s.formatted(ctx)
	s.must(s.host.MountVolume(ctx, id, path), "MountVolume")
	return d, id
}

// replug pulls a disk and plugs it in again, online and writable.
func (s *scene) replug(ctx context.Context, d *scratchDisk) {
	s.must(d.Replug(ctx), "pull the scratch disk and plug it in again")
	s.makeReady(ctx, d)
}

// makeReady brings a disk that was plugged in online, and makes it writable.
func (s *scene) makeReady(ctx context.Context, d *scratchDisk) {
	s.awaitDisk(ctx, d)
	s.must(s.host.SetDiskState(ctx, d.Number(), true), "SetDiskState")
	if err := s.host.SetDiskReadOnly(ctx, d.Number(), false); !host.IsKind(err, host.KindUnsupported) {
		s.must(err, "SetDiskReadOnly")
	}
}

// grow makes a disk larger, for which it may have been pulled, and the host look for it.
func (s *scene) grow(ctx context.Context, d *scratchDisk) {
	s.must(d.Grow(ctx, grownBytes), "grow the scratch disk")
	d.sizeBytes = grownBytes
	s.must(s.host.Rescan(ctx), "Rescan")
	s.makeReady(ctx, d)
}

// isVolumeID reports whether a text has the form of a volume id.
func isVolumeID(text string) bool {
	return strings.HasPrefix(strings.ToLower(text), `\\?\volume{`) && strings.HasSuffix(text, `}\`)
}

// sameVolume reports whether two texts name one volume.
func sameVolume(a, b string) bool {
	return strings.EqualFold(strings.TrimRight(a, `\`), strings.TrimRight(b, `\`))
}

// containsVolume reports whether a volume is among others.
func containsVolume(ids []string, id string) bool {
	return slices.ContainsFunc(ids, func(other string) bool { return sameVolume(id, other) })
}
