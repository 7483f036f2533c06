package wiretest

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// ListDiskLocations implements host.Disk.
func (h *Host) ListDiskLocations(ctx context.Context) (map[uint32]host.DiskLocation, error) {
	return reply(h.Locations, h.record(ctx, "ListDiskLocations"))
}

// PartitionDisk implements host.Disk.
func (h *Host) PartitionDisk(ctx context.Context, diskNumber uint32) error {
	return h.record(ctx, "PartitionDisk", diskNumber)
}

// Rescan implements host.Disk.
func (h *Host) Rescan(ctx context.Context) error {
	return h.record(ctx, "Rescan")
}

// ListDiskIDs implements host.Disk.
func (h *Host) ListDiskIDs(ctx context.Context) (map[uint32]host.DiskIDs, error) {
	return reply(h.IDs, h.record(ctx, "ListDiskIDs"))
}

// GetDiskStats implements host.Disk.
func (h *Host) GetDiskStats(ctx context.Context, diskNumber uint32) (host.DiskStats, error) {
	return reply(h.DiskStats, h.record(ctx, "GetDiskStats", diskNumber))
}

// SetDiskState implements host.Disk.
func (h *Host) SetDiskState(ctx context.Context, diskNumber uint32, online bool) error {
	return h.record(ctx, "SetDiskState", diskNumber, online)
}

// GetDiskState implements host.Disk.
func (h *Host) GetDiskState(ctx context.Context, diskNumber uint32) (bool, error) {
	return reply(h.Online, h.record(ctx, "GetDiskState", diskNumber))
}

// ListDisks implements host.Disk.
func (h *Host) ListDisks(ctx context.Context) ([]host.DiskInfo, error) {
	return reply(h.Disks, h.record(ctx, "ListDisks"))
}

// SetDiskReadOnly implements host.Disk.
func (h *Host) SetDiskReadOnly(ctx context.Context, diskNumber uint32, readOnly bool) error {
	return h.record(ctx, "SetDiskReadOnly", diskNumber, readOnly)
}
