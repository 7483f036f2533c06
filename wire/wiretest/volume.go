package wiretest

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// ListVolumesOnDisk implements host.Volume.
func (h *Host) ListVolumesOnDisk(ctx context.Context, diskNumber, partitionNumber uint32) ([]string, error) {
	return reply(h.VolumeIDs, h.record(ctx, "ListVolumesOnDisk", diskNumber, partitionNumber))
}

// MountVolume implements host.Volume.
func (h *Host) MountVolume(ctx context.Context, volumeID, targetPath string) error {
	return h.record(ctx, "MountVolume", volumeID, targetPath)
}

// UnmountVolume implements host.Volume.
func (h *Host) UnmountVolume(ctx context.Context, volumeID, targetPath string) error {
	return h.record(ctx, "UnmountVolume", volumeID, targetPath)
}

// IsVolumeFormatted implements host.Volume.
func (h *Host) IsVolumeFormatted(ctx context.Context, volumeID string) (bool, error) {
	return reply(h.Formatted, h.record(ctx, "IsVolumeFormatted", volumeID))
}

// FormatVolume implements host.Volume.
func (h *Host) FormatVolume(ctx context.Context, volumeID string) error {
	return h.record(ctx, "FormatVolume", volumeID)
}

// ResizeVolume implements host.Volume.
func (h *Host) ResizeVolume(ctx context.Context, volumeID string, sizeBytes int64) error {
	return h.record(ctx, "ResizeVolume", volumeID, sizeBytes)
}

// GetVolumeStats implements host.Volume.
func (h *Host) GetVolumeStats(ctx context.Context, volumeID string) (host.VolumeStats, error) {
	return reply(h.VolumeStats, h.record(ctx, "GetVolumeStats", volumeID))
}

// GetDiskNumberFromVolumeID implements host.Volume.
func (h *Host) GetDiskNumberFromVolumeID(ctx context.Context, volumeID string) (uint32, error) {
	return reply(h.DiskNumber, h.record(ctx, "GetDiskNumberFromVolumeID", volumeID))
}

// GetVolumeIDFromTargetPath implements host.Volume.
func (h *Host) GetVolumeIDFromTargetPath(ctx context.Context, targetPath string) (string, error) {
	return reply(h.VolumeID, h.record(ctx, "GetVolumeIDFromTargetPath", targetPath))
}

// GetClosestVolumeIDFromTargetPath implements host.Volume.
func (h *Host) GetClosestVolumeIDFromTargetPath(ctx context.Context, targetPath string) (string, error) {
	return reply(h.VolumeID, h.record(ctx, "GetClosestVolumeIDFromTargetPath", targetPath))
}

// WriteVolumeCache implements host.Volume.
func (h *Host) WriteVolumeCache(ctx context.Context, volumeID string) error {
	return h.record(ctx, "WriteVolumeCache", volumeID)
}

// ListVolumes implements host.Volume.
func (h *Host) ListVolumes(ctx context.Context) ([]host.VolumeInfo, error) {
	return reply(h.Volumes, h.record(ctx, "ListVolumes"))
}

// GetVolume implements host.Volume.
func (h *Host) GetVolume(ctx context.Context, volumeID string) (host.VolumeInfo, error) {
	if err := h.record(ctx, "GetVolume", volumeID); err != nil {
		return host.VolumeInfo{}, err
	}
	for _, volume := range h.Volumes {
		if volume.ID == volumeID {
			return volume, nil
		}
	}
	return host.VolumeInfo{}, &host.Error{Op: "GetVolume", Object: volumeID, Kind: host.KindNotFound}
}

// FormatVolumeWith implements host.Volume.
func (h *Host) FormatVolumeWith(ctx context.Context, volumeID string, options host.FormatOptions) error {
	return h.record(ctx, "FormatVolumeWith", volumeID, options)
}

// ListMounts implements host.Volume.
func (h *Host) ListMounts(ctx context.Context) ([]host.Mount, error) {
	return reply(h.Mounts, h.record(ctx, "ListMounts"))
}
