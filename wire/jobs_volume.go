package wire

import (
	"context"

	"github.com/csi-windows/csi-windows/wire/wirepb"
)

func listVolumesOnDisk(ctx context.Context, s *site, q *wirepb.ListVolumesOnDiskRequest) (*wirepb.ListVolumesOnDiskResponse, error) {
	ids, err := s.host.ListVolumesOnDisk(ctx, q.GetDiskNumber(), q.GetPartitionNumber())
	return &wirepb.ListVolumesOnDiskResponse{VolumeIds: texts(ids)}, err
}

func mountVolume(ctx context.Context, s *site, q *wirepb.MountVolumeRequest) (*wirepb.MountVolumeResponse, error) {
	return &wirepb.MountVolumeResponse{}, s.host.MountVolume(ctx, q.GetVolumeId(), q.GetTargetPath())
}

func unmountVolume(ctx context.Context, s *site, q *wirepb.UnmountVolumeRequest) (*wirepb.UnmountVolumeResponse, error) {
	return &wirepb.UnmountVolumeResponse{}, s.host.UnmountVolume(ctx, q.GetVolumeId(), q.GetTargetPath())
}

func isVolumeFormatted(ctx context.Context, s *site, q *wirepb.IsVolumeFormattedRequest) (*wirepb.IsVolumeFormattedResponse, error) {
	formatted, err := s.host.IsVolumeFormatted(ctx, q.GetVolumeId())
	return &wirepb.IsVolumeFormattedResponse{Formatted: formatted}, err
}

func formatVolume(ctx context.Context, s *site, q *wirepb.FormatVolumeRequest) (*wirepb.FormatVolumeResponse, error) {
	return &wirepb.FormatVolumeResponse{}, s.host.FormatVolume(ctx, q.GetVolumeId())
}

func resizeVolume(ctx context.Context, s *site, q *wirepb.ResizeVolumeRequest) (*wirepb.ResizeVolumeResponse, error) {
	return &wirepb.ResizeVolumeResponse{}, s.host.ResizeVolume(ctx, q.GetVolumeId(), q.GetSizeBytes())
}

func getVolumeStats(ctx context.Context, s *site, q *wirepb.GetVolumeStatsRequest) (*wirepb.GetVolumeStatsResponse, error) {
	stats, err := s.host.GetVolumeStats(ctx, q.GetVolumeId())
	return &wirepb.GetVolumeStatsResponse{TotalBytes: stats.TotalBytes, UsedBytes: stats.UsedBytes}, err
}

func getDiskNumberFromVolumeID(ctx context.Context, s *site, q *wirepb.GetDiskNumberFromVolumeIDRequest) (*wirepb.GetDiskNumberFromVolumeIDResponse, error) {
	number, err := s.host.GetDiskNumberFromVolumeID(ctx, q.GetVolumeId())
	return &wirepb.GetDiskNumberFromVolumeIDResponse{DiskNumber: number}, err
}

func getVolumeIDFromTargetPath(ctx context.Context, s *site, q *wirepb.GetVolumeIDFromTargetPathRequest) (*wirepb.GetVolumeIDFromTargetPathResponse, error) {
	id, err := s.host.GetVolumeIDFromTargetPath(ctx, q.GetTargetPath())
	return &wirepb.GetVolumeIDFromTargetPathResponse{VolumeId: text(id)}, err
}

func getClosestVolumeIDFromTargetPath(ctx context.Context, s *site, q *wirepb.GetClosestVolumeIDFromTargetPathRequest) (*wirepb.GetClosestVolumeIDFromTargetPathResponse, error) {
	id, err := s.host.GetClosestVolumeIDFromTargetPath(ctx, q.GetTargetPath())
	return &wirepb.GetClosestVolumeIDFromTargetPathResponse{VolumeId: text(id)}, err
}

func writeVolumeCache(ctx context.Context, s *site, q *wirepb.WriteVolumeCacheRequest) (*wirepb.WriteVolumeCacheResponse, error) {
	return &wirepb.WriteVolumeCacheResponse{}, s.host.WriteVolumeCache(ctx, q.GetVolumeId())
}
