package agent

import (
	"context"
	"fmt"

	"github.com/csi-windows/csi-windows/host"
)

// nodeQuery carries out a question about the whole node.
func nodeQuery[T any](ctx context.Context, a *Agent, op string, ask func(context.Context) (T, error)) (T, error) {
	return run(ctx, a.query(op, ""), []want{shared(lockNode, 0, op)}, ask)
}

// diskQuery carries out a question about one disk.
func diskQuery[T any](ctx context.Context, a *Agent, op string, number uint32, ask func(context.Context) (T, error)) (T, error) {
	return run(ctx, a.query(op, diskObject(number)), []want{shared(lockDisk, number, "")}, ask)
}

// diskChange carries out a change of one disk, given as it is under its lock.
func (a *Agent) diskChange(ctx context.Context, op string, number uint32, do func(context.Context, OSDisk) error) error {
	wants := []want{exclusive(lockDisk, number, "")}
	return exec(ctx, a.mutation(ctx, op, diskObject(number)), wants, func(ctx context.Context) error {
		disk, err := a.os.Disk(ctx, number)
		if err != nil {
			return err
		}
		return do(ctx, disk)
	})
}

// ListDiskLocations implements host.Disk.
func (a *Agent) ListDiskLocations(ctx context.Context) (map[uint32]host.DiskLocation, error) {
	return nodeQuery(ctx, a, "ListDiskLocations", func(ctx context.Context) (map[uint32]host.DiskLocation, error) {
		disks, err := a.os.Disks(ctx)
		if err != nil {
			return nil, err
		}
		locations := make(map[uint32]host.DiskLocation, len(disks))
		for _, disk := range disks {
			if disk.HasLocation {
				locations[disk.Number] = disk.Location
			}
		}
		return locations, nil
	})
}

// Rescan implements host.Disk.
func (a *Agent) Rescan(ctx context.Context) error {
	return exec(ctx, a.mutation(ctx, "Rescan", ""), []want{exclusive(lockNode, 0, "Rescan")}, a.os.Rescan)
}

// ListDiskIDs implements host.Disk. A disk that does not tell its names is
// listed without them, so that one bad disk does not hide the others.
func (a *Agent) ListDiskIDs(ctx context.Context) (map[uint32]host.DiskIDs, error) {
	return nodeQuery(ctx, a, "ListDiskIDs", func(ctx context.Context) (map[uint32]host.DiskIDs, error) {
		disks, err := a.os.Disks(ctx)
		if err != nil {
			return nil, err
		}
		all := make(map[uint32]host.DiskIDs, len(disks))
		for _, disk := range disks {
			ids, found, err := a.diskIDs(ctx, disk.Number)
			if err != nil {
				return nil, err
			}
			if found {
				all[disk.Number] = ids
			}
		}
		return all, nil
	})
}

// diskIDs returns the names of one disk of a listing; found is false when the
// disk has gone since.
func (a *Agent) diskIDs(ctx context.Context, number uint32) (ids host.DiskIDs, found bool, err error) {
	ids, err = a.os.DiskIDs(ctx, number)
	switch {
	case err == nil:
		return ids, true, nil
	case host.IsKind(err, host.KindNotFound):
		return ids, false, nil
	case ctx.Err() != nil:
		return ids, false, err
	default:
		a.log.Warn("disk does not tell its names", "disk", number, "error", err)
		return host.DiskIDs{}, true, nil
	}
}

// GetDiskStats implements host.Disk.
func (a *Agent) GetDiskStats(ctx context.Context, diskNumber uint32) (host.DiskStats, error) {
	return diskQuery(ctx, a, "GetDiskStats", diskNumber, func(ctx context.Context) (host.DiskStats, error) {
		sizeBytes, err := a.os.DiskSizeBytes(ctx, diskNumber)
		return host.DiskStats{TotalBytes: sizeBytes}, err
	})
}

// GetDiskState implements host.Disk.
func (a *Agent) GetDiskState(ctx context.Context, diskNumber uint32) (online bool, err error) {
	return diskQuery(ctx, a, "GetDiskState", diskNumber, func(ctx context.Context) (bool, error) {
		offline, _, err := a.os.DiskState(ctx, diskNumber)
		return err == nil && !offline, err
	})
}

// SetDiskState implements host.Disk. The read-only flag stays as it is found:
// clearing it is SetDiskReadOnly.
func (a *Agent) SetDiskState(ctx context.Context, diskNumber uint32, online bool) error {
	return a.diskChange(ctx, "SetDiskState", diskNumber, func(ctx context.Context, disk OSDisk) error {
		if disk.System && !online {
			return refuse(host.KindPrecondition, "the disk holds the operating system")
		}
		return a.os.SetDiskOnline(ctx, diskNumber, online)
	})
}

// SetDiskReadOnly implements host.Disk.
func (a *Agent) SetDiskReadOnly(ctx context.Context, diskNumber uint32, readOnly bool) error {
	return a.diskChange(ctx, "SetDiskReadOnly", diskNumber, func(ctx context.Context, disk OSDisk) error {
		if disk.System && readOnly {
			return refuse(host.KindPrecondition, "the disk holds the operating system")
		}
		if err := a.os.SetDiskReadOnly(ctx, diskNumber, readOnly); err != nil {
			return err
		}
		// A medium that refuses writes by itself keeps the flag up whatever Windows is told.
		_, is, err := a.os.DiskState(ctx, diskNumber)
		if err == nil && is != readOnly {
			return refuse(host.KindPrecondition, "the disk stays as it was: read-only %v", is)
		}
		return err
	})
}

// ListDisks implements host.Disk.
func (a *Agent) ListDisks(ctx context.Context) ([]host.DiskInfo, error) {
	return nodeQuery(ctx, a, "ListDisks", func(ctx context.Context) ([]host.DiskInfo, error) {
		disks, err := a.os.Disks(ctx)
		if err != nil {
			return nil, err
		}
		infos := make([]host.DiskInfo, 0, len(disks))
		for _, disk := range disks {
			ids, found, err := a.diskIDs(ctx, disk.Number)
			if err != nil {
				return nil, err
			}
			if found {
				infos = append(infos, diskInfo(disk, ids))
			}
		}
		return infos, nil
	})
}

func diskInfo(disk OSDisk, ids host.DiskIDs) host.DiskInfo {
	return host.DiskInfo{
		Number: disk.Number, Location: disk.Location, IDs: ids,
		FriendlyName: disk.FriendlyName, BusType: disk.BusType, Style: disk.Style,
		SizeBytes: disk.SizeBytes, Offline: disk.Offline, OfflineReason: disk.OfflineReason,
		ReadOnly: disk.ReadOnly, System: disk.System,
	}
}

// PartitionDisk implements host.Disk. Each step looks at the disk before it
// changes it, so a run that ended anywhere is taken up there by the next.
func (a *Agent) PartitionDisk(ctx context.Context, diskNumber uint32) error {
	return a.diskChange(ctx, "PartitionDisk", diskNumber, func(ctx context.Context, disk OSDisk) error {
		partitions, err := a.os.Partitions(ctx, diskNumber)
		if err != nil {
			return err
		}
		if holdsData(partitions) {
			return nil
		}
		if disk.System {
			return refuse(host.KindPrecondition, "the disk holds the operating system")
		}
		if err := a.mustBeBlankDisk(ctx, disk); err != nil {
			return err
		}
		return a.makePartition(ctx, disk)
	})
}

func holdsData(partitions []Partition) bool {
	for _, p := range partitions {
		if p.Role != RoleReserved {
			return true
		}
	}
	return false
}

// makePartition makes the table of a disk without one, and its data partition.
// New disks of shared buses arrive offline and read-only (SAN policy
// OfflineShared), so a disk that holds nothing is brought online and made
// writable first. Source: Initialize-Disk, which wants both.
func (a *Agent) makePartition(ctx context.Context, disk OSDisk) error {
	if disk.Offline {
		if err := a.os.SetDiskOnline(ctx, disk.Number, true); err != nil {
			return err
		}
	}
	if disk.ReadOnly {
		if err := a.os.SetDiskReadOnly(ctx, disk.Number, false); err != nil {
			return err
		}
	}
	if disk.Style == host.StyleRaw {
		if err := a.os.InitializeDisk(ctx, disk.Number); err != nil {
			return err
		}
	}
	if err := a.os.CreateDataPartition(ctx, disk.Number); err != nil {
		return err
	}
	partitions, err := a.os.Partitions(ctx, disk.Number)
	if err != nil {
		return err
	}
	if !holdsData(partitions) {
		return refuse(host.KindInternal, "no data partition after it was made: %s", fmt.Sprint(partitions))
	}
	return nil
}
