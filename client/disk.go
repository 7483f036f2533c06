package client

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// ListDiskLocations implements host.Disk.
func (c *Client) ListDiskLocations(ctx context.Context) (map[uint32]host.DiskLocation, error) {
	answer, err := call[*wirepb.ListDiskLocationsResponse](ctx, c, wire.GroupDisk, &wirepb.ListDiskLocationsRequest{})
	if err != nil {
		return nil, err
	}
	locations := make(map[uint32]host.DiskLocation, len(answer.GetDiskLocations()))
	for number, location := range answer.GetDiskLocations() {
		locations[number] = diskLocation(location)
	}
	return locations, nil
}

func diskLocation(l *wirepb.DiskLocation) host.DiskLocation {
	return host.DiskLocation{Adapter: l.GetAdapter(), Bus: l.GetBus(), Target: l.GetTarget(), LUNID: l.GetLUNID()}
}

// PartitionDisk implements host.Disk.
func (c *Client) PartitionDisk(ctx context.Context, diskNumber uint32) error {
	return do[*wirepb.PartitionDiskResponse](ctx, c, wire.GroupDisk, &wirepb.PartitionDiskRequest{DiskNumber: diskNumber})
}

// Rescan implements host.Disk.
func (c *Client) Rescan(ctx context.Context) error {
	return do[*wirepb.RescanResponse](ctx, c, wire.GroupDisk, &wirepb.RescanRequest{})
}

// ListDiskIDs implements host.Disk.
func (c *Client) ListDiskIDs(ctx context.Context) (map[uint32]host.DiskIDs, error) {
	answer, err := call[*wirepb.ListDiskIDsResponse](ctx, c, wire.GroupDisk, &wirepb.ListDiskIDsRequest{})
	if err != nil {
		return nil, err
	}
	ids := make(map[uint32]host.DiskIDs, len(answer.GetDiskIDs()))
	for number, id := range answer.GetDiskIDs() {
		ids[number] = diskIDs(id)
	}
	return ids, nil
}

func diskIDs(id *wirepb.DiskIDs) host.DiskIDs {
	return host.DiskIDs{Page83: id.GetPage83(), SerialNumber: id.GetSerialNumber()}
}

// GetDiskStats implements host.Disk.
func (c *Client) GetDiskStats(ctx context.Context, diskNumber uint32) (host.DiskStats, error) {
	answer, err := call[*wirepb.GetDiskStatsResponse](ctx, c, wire.GroupDisk, &wirepb.GetDiskStatsRequest{DiskNumber: diskNumber})
	return host.DiskStats{TotalBytes: answer.GetTotalBytes()}, err
}

// SetDiskState implements host.Disk.
func (c *Client) SetDiskState(ctx context.Context, diskNumber uint32, online bool) error {
	return do[*wirepb.SetDiskStateResponse](ctx, c, wire.GroupDisk, &wirepb.SetDiskStateRequest{DiskNumber: diskNumber, IsOnline: online})
}

// GetDiskState implements host.Disk.
func (c *Client) GetDiskState(ctx context.Context, diskNumber uint32) (bool, error) {
	answer, err := call[*wirepb.GetDiskStateResponse](ctx, c, wire.GroupDisk, &wirepb.GetDiskStateRequest{DiskNumber: diskNumber})
	return answer.GetIsOnline(), err
}

// ListDisks implements host.Disk.
func (c *Client) ListDisks(ctx context.Context) ([]host.DiskInfo, error) {
	answer, err := call[*wirepb.ListDisksResponse](ctx, c, wire.GroupExtension, &wirepb.ListDisksRequest{})
	if err != nil {
		return nil, err
	}
	disks := make([]host.DiskInfo, len(answer.GetDisks()))
	for i, disk := range answer.GetDisks() {
		disks[i] = diskInfo(disk)
	}
	return disks, nil
}

func diskInfo(d *wirepb.DiskInfo) host.DiskInfo {
	return host.DiskInfo{
		Number: d.GetDiskNumber(), Location: diskLocation(d.GetLocation()), IDs: diskIDs(d.GetIds()),
		FriendlyName: d.GetFriendlyName(), BusType: d.GetBusType(), Style: host.PartitionStyle(d.GetPartitionStyle()),
		SizeBytes: d.GetSizeBytes(), Offline: d.GetIsOffline(), OfflineReason: d.GetOfflineReason(),
		ReadOnly: d.GetIsReadOnly(), System: d.GetIsSystem(),
	}
}

// SetDiskReadOnly implements host.Disk.
func (c *Client) SetDiskReadOnly(ctx context.Context, diskNumber uint32, readOnly bool) error {
	return do[*wirepb.SetDiskReadOnlyResponse](ctx, c, wire.GroupExtension,
		&wirepb.SetDiskReadOnlyRequest{DiskNumber: diskNumber, IsReadOnly: readOnly})
}
