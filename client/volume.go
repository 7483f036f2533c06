package client

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// ListVolumesOnDisk implements host.Volume. Versions before v1beta3 list whole
// disks only; a partition number other than 0 is KindUnsupported there.
func (c *Client) ListVolumesOnDisk(ctx context.Context, diskNumber, partitionNumber uint32) ([]string, error) {
	answer, err := call[*wirepb.ListVolumesOnDiskResponse](ctx, c, wire.GroupVolume,
		&wirepb.ListVolumesOnDiskRequest{DiskNumber: diskNumber, PartitionNumber: partitionNumber})
	return answer.GetVolumeIds(), err
}

// MountVolume implements host.Volume.
func (c *Client) MountVolume(ctx context.Context, volumeID, targetPath string) error {
	return do[*wirepb.MountVolumeResponse](ctx, c, wire.GroupVolume, &wirepb.MountVolumeRequest{VolumeId: volumeID, TargetPath: targetPath})
}

// UnmountVolume implements host.Volume.
func (c *Client) UnmountVolume(ctx context.Context, volumeID, targetPath string) error {
	return do[*wirepb.UnmountVolumeResponse](ctx, c, wire.GroupVolume, &wirepb.UnmountVolumeRequest{VolumeId: volumeID, TargetPath: targetPath})
}

// IsVolumeFormatted implements host.Volume.
func (c *Client) IsVolumeFormatted(ctx context.Context, volumeID string) (bool, error) {
	answer, err := call[*wirepb.IsVolumeFormattedResponse](ctx, c, wire.GroupVolume, &wirepb.IsVolumeFormattedRequest{VolumeId: volumeID})
	return answer.GetFormatted(), err
}

// FormatVolume implements host.Volume.
func (c *Client) FormatVolume(ctx context.Context, volumeID string) error {
	return do[*wirepb.FormatVolumeResponse](ctx, c, wire.GroupVolume, &wirepb.FormatVolumeRequest{VolumeId: volumeID})
}

// ResizeVolume implements host.Volume.
func (c *Client) ResizeVolume(ctx context.Context, volumeID string, sizeBytes int64) error {
	return do[*wirepb.ResizeVolumeResponse](ctx, c, wire.GroupVolume, &wirepb.ResizeVolumeRequest{VolumeId: volumeID, SizeBytes: sizeBytes})
}

// GetVolumeStats implements host.Volume.
func (c *Client) GetVolumeStats(ctx context.Context, volumeID string) (host.VolumeStats, error) {
	answer, err := call[*wirepb.GetVolumeStatsResponse](ctx, c, wire.GroupVolume, &wirepb.GetVolumeStatsRequest{VolumeId: volumeID})
	return host.VolumeStats{TotalBytes: answer.GetTotalBytes(), UsedBytes: answer.GetUsedBytes()}, err
}

// GetDiskNumberFromVolumeID implements host.Volume.
func (c *Client) GetDiskNumberFromVolumeID(ctx context.Context, volumeID string) (uint32, error) {
	answer, err := call[*wirepb.GetDiskNumberFromVolumeIDResponse](ctx, c, wire.GroupVolume,
		&wirepb.GetDiskNumberFromVolumeIDRequest{VolumeId: volumeID})
	return answer.GetDiskNumber(), err
}

// GetVolumeIDFromTargetPath implements host.Volume.
func (c *Client) GetVolumeIDFromTargetPath(ctx context.Context, targetPath string) (string, error) {
	answer, err := call[*wirepb.GetVolumeIDFromTargetPathResponse](ctx, c, wire.GroupVolume,
		&wirepb.GetVolumeIDFromTargetPathRequest{TargetPath: targetPath})
	return answer.GetVolumeId(), err
}

// GetClosestVolumeIDFromTargetPath implements host.Volume.
func (c *Client) GetClosestVolumeIDFromTargetPath(ctx context.Context, targetPath string) (string, error) {
	answer, err := call[*wirepb.GetClosestVolumeIDFromTargetPathResponse](ctx, c, wire.GroupVolume,
		&wirepb.GetClosestVolumeIDFromTargetPathRequest{TargetPath: targetPath})
	return answer.GetVolumeId(), err
}

// WriteVolumeCache implements host.Volume.
func (c *Client) WriteVolumeCache(ctx context.Context, volumeID string) error {
	return do[*wirepb.WriteVolumeCacheResponse](ctx, c, wire.GroupVolume, &wirepb.WriteVolumeCacheRequest{VolumeId: volumeID})
}

// ListVolumes implements host.Volume.
func (c *Client) ListVolumes(ctx context.Context) ([]host.VolumeInfo, error) {
	answer, err := call[*wirepb.ListVolumesResponse](ctx, c, wire.GroupExtension, &wirepb.ListVolumesRequest{})
	if err != nil {
		return nil, err
	}
	volumes := make([]host.VolumeInfo, len(answer.GetVolumes()))
	for i, volume := range answer.GetVolumes() {
		volumes[i] = volumeInfo(volume)
	}
	return volumes, nil
}

// GetVolume implements host.Volume.
func (c *Client) GetVolume(ctx context.Context, volumeID string) (host.VolumeInfo, error) {
	answer, err := call[*wirepb.GetVolumeResponse](ctx, c, wire.GroupExtension, &wirepb.GetVolumeRequest{VolumeId: volumeID})
	return volumeInfo(answer.GetVolume()), err
}

func volumeInfo(v *wirepb.VolumeInfo) host.VolumeInfo {
	return host.VolumeInfo{
		ID: v.GetVolumeId(), DiskNumber: v.GetDiskNumber(), PartitionNumber: v.GetPartitionNumber(),
		FileSystem: v.GetFileSystem(), Label: v.GetLabel(),
		SizeBytes: v.GetSizeBytes(), FreeBytes: v.GetFreeBytes(), ClusterBytes: v.GetClusterBytes(),
		Health: host.VolumeHealth(v.GetHealth()), HealthDetail: v.GetHealthDetail(), MountPaths: v.GetMountPaths(),
	}
}

// FormatVolumeWith implements host.Volume.
func (c *Client) FormatVolumeWith(ctx context.Context, volumeID string, options host.FormatOptions) error {
	return do[*wirepb.FormatVolumeWithResponse](ctx, c, wire.GroupExtension, &wirepb.FormatVolumeWithRequest{
		VolumeId: volumeID, FileSystem: options.FileSystem, ClusterBytes: options.ClusterBytes, Label: options.Label,
	})
}

// ListMounts implements host.Volume.
func (c *Client) ListMounts(ctx context.Context) ([]host.Mount, error) {
	answer, err := call[*wirepb.ListMountsResponse](ctx, c, wire.GroupExtension, &wirepb.ListMountsRequest{})
	if err != nil {
		return nil, err
	}
	mounts := make([]host.Mount, len(answer.GetMounts()))
	for i, mount := range answer.GetMounts() {
		mounts[i] = host.Mount{VolumeID: mount.GetVolumeId(), Path: mount.GetPath()}
	}
	return mounts, nil
}
