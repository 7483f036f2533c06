package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/csi-windows/csi-windows/host"
)

func diskCases() []Case {
	disk := []Need{NeedDisk}
	return []Case{
		{"disk/listed", GroupDisk, disk, diskListed},
		{"disk/gone", GroupDisk, disk, diskGone},
		{"disk/absent", GroupDisk, nil, diskAbsent},
		{"disk/partition", GroupDisk, disk, diskPartition},
		{"disk/partition-refuses-data", GroupDisk, disk, diskPartitionRefusesData},
		{"disk/online-offline", GroupDisk, disk, diskOnlineOffline},
		{"disk/read-only", GroupDisk, disk, diskReadOnly},
	}
}

// A new disk is in every list, with the names its maker gave it.
func diskListed(ctx context.Context, s *scene) {
	d := s.disk(ctx)
	number, known := d.Number(), d.Known()
	ids, err := s.host.ListDiskIDs(ctx)
	s.must(err, "ListDiskIDs")
	if got, ok := ids[number]; !ok || known.IDs != nil && got != *known.IDs {
		s.Errorf("ListDiskIDs has disk %d as %+v (%v), want %+v", number, got, ok, known.IDs)
	}
	locations, err := s.host.ListDiskLocations(ctx)
	s.must(err, "ListDiskLocations")
	if got := locations[number]; known.Location != nil && got != *known.Location {
		s.Errorf("ListDiskLocations has disk %d as %+v, want %+v", number, got, *known.Location)
	}
	stats, err := s.host.GetDiskStats(ctx, number)
	s.must(err, "GetDiskStats")
	if stats.TotalBytes != d.sizeBytes {
		s.Errorf("GetDiskStats says %d bytes, want %d", stats.TotalBytes, d.sizeBytes)
	}
	online, err := s.host.GetDiskState(ctx, number)
	s.must(err, "GetDiskState")
	state := s.look(ctx, d)
	if online == state.Offline {
		s.Errorf("GetDiskState says online %v; the disk is %+v", online, state)
	}
	if volumes, err := s.host.ListVolumesOnDisk(ctx, number, 0); err != nil || len(volumes) > 0 {
		s.Errorf("ListVolumesOnDisk of an empty disk: %q, %v", volumes, err)
	}
	if info, ok := s.diskInfo(ctx, number); ok {
		want := host.DiskInfo{
			Number: number, IDs: ids[number], Location: locations[number], Style: host.StyleRaw, SizeBytes: d.sizeBytes, Offline: state.Offline, ReadOnly: state.ReadOnly,
			BusType: info.BusType, FriendlyName: info.FriendlyName, OfflineReason: info.OfflineReason, // nobody else tells
		}
		if info != want || info.BusType == "" {
			s.Errorf("ListDisks has the disk as %+v, want %+v", info, want)
		}
	}
}

// diskInfo is the disk in ListDisks; ok is false when the host has no such list.
func (s *scene) diskInfo(ctx context.Context, number uint32) (info host.DiskInfo, ok bool) {
	disks, err := s.host.ListDisks(ctx)
	if s.unsupported(err, "ListDisks") {
		return info, false
	}
	s.must(err, "ListDisks")
	at := slices.IndexFunc(disks, func(d host.DiskInfo) bool { return d.Number == number })
	if at < 0 {
		s.Errorf("ListDisks lacks disk %d", number)
		return info, false
	}
	return disks[at], true
}

// A disk that was taken away is in no list, once the host has looked.
func diskGone(ctx context.Context, s *scene) {
	stays := s.disk(ctx)
	d := s.disk(ctx)
	s.must(d.Remove(ctx), "remove the scratch disk")
	for range 2 {
		s.must(s.host.Rescan(ctx), "Rescan")
	}
	var ids map[uint32]host.DiskIDs
	s.eventually(ctx, fmt.Sprintf("ListDiskIDs without disk %d, which was removed", d.Number()), func() (bool, error) {
		var err error
		ids, err = s.host.ListDiskIDs(ctx)
		_, listed := ids[d.Number()]
		return !listed, err
	})
	if _, listed := ids[stays.Number()]; !listed {
		s.Errorf("ListDiskIDs lacks disk %d, which was not removed", stays.Number())
	}
	_, err := s.host.GetDiskStats(ctx, d.Number())
	s.fails(err, "GetDiskStats of a disk that has gone", host.KindNotFound)
}

// What is asked of a disk that no node has is not found.
func diskAbsent(ctx context.Context, s *scene) {
	_, err := s.host.GetDiskStats(ctx, absentDisk)
	s.fails(err, "GetDiskStats", host.KindNotFound)
	_, err = s.host.GetDiskState(ctx, absentDisk)
	s.fails(err, "GetDiskState", host.KindNotFound)
	_, err = s.host.ListVolumesOnDisk(ctx, absentDisk, 0)
	s.fails(err, "ListVolumesOnDisk", host.KindNotFound)
	s.fails(s.host.PartitionDisk(ctx, absentDisk), "PartitionDisk", host.KindNotFound)
	s.fails(s.host.SetDiskState(ctx, absentDisk, true), "SetDiskState", host.KindNotFound)
	if err := s.host.SetDiskReadOnly(ctx, absentDisk, false); !s.unsupported(err, "SetDiskReadOnly") {
		s.fails(err, "SetDiskReadOnly", host.KindNotFound)
	}
}

// A new disk gets one GPT partition that fills it, once, whatever state it arrived in.
func diskPartition(ctx context.Context, s *scene) {
	d, id := s.volume(ctx)
	first := s.look(ctx, d)
	if first.Style != host.StyleGPT || first.Offline || first.ReadOnly || len(first.Partitions) != 1 {
		s.Fatalf("partitioned, the disk is %+v", first)
	}
	// The table, a reserved partition and alignment take the rest.
	if size := first.Partitions[0].SizeBytes; size < diskBytes-64*mib {
		s.Errorf("the data partition has %d bytes of a disk of %d", size, diskBytes)
	}
	s.must(s.host.PartitionDisk(ctx, d.Number()), "PartitionDisk again")
	if again := s.look(ctx, d); !slices.Equal(again.Partitions, first.Partitions) {
		s.Errorf("the second PartitionDisk changed %+v to %+v", first.Partitions, again.Partitions)
	}
	if again := s.onlyVolume(ctx, d); again != id {
		s.Errorf("the volume was %s, and is %s after the second PartitionDisk", id, again)
	}
	if holds, err := d.Holds(ctx, id); err != nil || !holds {
		s.Errorf("volume %s lies on the disk: %v, %v", id, holds, err)
	}
	number, err := s.host.GetDiskNumberFromVolumeID(ctx, id)
	if err != nil || number != d.Number() {
		s.Errorf("GetDiskNumberFromVolumeID = %d, %v; want %d", number, err, d.Number())
	}
	if ids, err := s.host.ListVolumesOnDisk(ctx, d.Number(), 99); err == nil && len(ids) > 0 {
		s.Errorf("ListVolumesOnDisk of a partition that is not there: %q", ids)
	}
	if info, ok := s.diskInfo(ctx, d.Number()); ok && info.Style != host.StyleGPT {
		s.Errorf("ListDisks has the style %s", info.Style)
	}
}

// A disk without a table whose bytes look like a file system is somebody's data.
func diskPartitionRefusesData(ctx context.Context, s *scene) {
	d := s.disk(ctx)
	s.must(d.WriteRaw(ctx, 0, ext4Superblock()), "write to the scratch disk")
	s.fails(s.host.PartitionDisk(ctx, d.Number()), "PartitionDisk of a disk with ext4 on it", host.KindPrecondition)
	if state := s.look(ctx, d); state.Style != host.StyleRaw || len(state.Partitions) > 0 {
		s.Errorf("refused, and yet the disk is %+v", state)
	}
}

// ext4Superblock is the beginning of a device with ext4: the boot block and a super
// block with its magic number 0xEF53. Source: the kernel's ext4 disk layout.
func ext4Superblock() []byte {
	const magicAt = 1024 + 0x38
	block := make([]byte, 4096)
	copy(block[magicAt:], []byte{0x53, 0xEF})
	copy(block[1024+0x78:], "somebody's data")
	block[1024] = 1 // inodes
	return block
}

// Offline the disk lets go of its volumes; online again everything is there.
func diskOnlineOffline(ctx context.Context, s *scene) {
	mount := s.path("m")
	d, id := s.mounted(ctx, mount)
	s.write(ctx, mount+`\file`, "kept")
	s.must(s.host.UnmountVolume(ctx, id, mount), "UnmountVolume")
	for _, online := range []bool{false, true} {
		for range 2 {
			s.must(s.host.SetDiskState(ctx, d.Number(), online), "SetDiskState")
			state := s.look(ctx, d)
			got, err := s.host.GetDiskState(ctx, d.Number())
			if state.Offline == online || err != nil || got != online {
				s.Errorf("set to online %v: the disk is %+v, GetDiskState says %v, %v", online, state, got, err)
			}
			if info, ok := s.diskInfo(ctx, d.Number()); ok && info.Offline == online {
				s.Errorf("set to online %v, ListDisks says %+v", online, info)
			}
		}
		if online {
			continue
		}
		if ids, err := s.host.ListVolumesOnDisk(ctx, d.Number(), 0); err == nil && containsVolume(ids, id) {
			if _, err := s.host.GetVolumeStats(ctx, id); err == nil {
				s.Errorf("the volume of an offline disk still tells its sizes")
			}
		}
	}
	id = s.onlyVolume(ctx, d)
	s.must(s.host.MountVolume(ctx, id, mount), "MountVolume")
	s.holds(ctx, mount+`\file`, "kept")
}

// A disk with the read-only flag takes no writes, and takes them when it is cleared.
func diskReadOnly(ctx context.Context, s *scene) {
	mount := s.path("m")
	d, id := s.mounted(ctx, mount)
	s.write(ctx, mount+`\file`, "before")
	s.must(s.host.WriteVolumeCache(ctx, id), "WriteVolumeCache")
	for _, readOnly := range []bool{true, false} {
		for range 2 {
			if err := s.host.SetDiskReadOnly(ctx, d.Number(), readOnly); s.unsupported(err, "SetDiskReadOnly") {
				return
			} else if err != nil {
				s.Fatalf("SetDiskReadOnly %v: %v", readOnly, err)
			}
		}
		if state := s.look(ctx, d); state.ReadOnly != readOnly {
			s.Errorf("set to read-only %v, the disk is %+v", readOnly, state)
		}
		if info, ok := s.diskInfo(ctx, d.Number()); ok && info.ReadOnly != readOnly {
			s.Errorf("set to read-only %v, ListDisks says %+v", readOnly, info)
		}
		s.cycle(ctx, d)
		if state := s.look(ctx, d); state.ReadOnly != readOnly {
			s.Errorf("offline and online again, the disk is %+v; want read-only %v", state, readOnly)
		}
		err := s.env.Files.WriteFile(ctx, fmt.Sprintf(`%s\new-%v`, mount, readOnly), []byte("x"))
		if (err != nil) != readOnly {
			s.Errorf("read-only %v: a write to the volume ends with %v", readOnly, err)
		}
	}
	s.holds(ctx, mount+`\file`, "before")
}

// cycle takes a disk offline and brings it online, so that its volumes are mounted
// anew: a volume keeps the write access that it was mounted with.
func (s *scene) cycle(ctx context.Context, d *scratchDisk) {
	s.must(s.host.SetDiskState(ctx, d.Number(), false), "SetDiskState offline")
	s.must(s.host.SetDiskState(ctx, d.Number(), true), "SetDiskState online")
	s.onlyVolume(ctx, d)
}
