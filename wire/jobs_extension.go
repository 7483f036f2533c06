package wire

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

func getServerInfo(_ context.Context, s *site, _ *wirepb.GetServerInfoRequest) (*wirepb.GetServerInfoResponse, error) {
	apis := make([]*wirepb.ServedAPI, len(s.apis))
	for i, api := range s.apis {
		apis[i] = &wirepb.ServedAPI{Group: api.Group, Version: api.Version}
	}
	return &wirepb.GetServerInfoResponse{Version: text(s.version), Apis: apis}, nil
}

func listDisks(ctx context.Context, s *site, _ *wirepb.ListDisksRequest) (*wirepb.ListDisksResponse, error) {
	disks, err := s.host.ListDisks(ctx)
	if err != nil {
		return nil, err
	}
	answer := make([]*wirepb.DiskInfo, len(disks))
	for i, disk := range disks {
		answer[i] = diskInfo(disk)
	}
	return &wirepb.ListDisksResponse{Disks: answer}, nil
}

func diskInfo(d host.DiskInfo) *wirepb.DiskInfo {
	return &wirepb.DiskInfo{
		DiskNumber: d.Number, Location: diskLocation(d.Location), Ids: diskIDs(d.IDs),
		FriendlyName: text(d.FriendlyName), BusType: text(d.BusType), PartitionStyle: text(string(d.Style)),
		SizeBytes: d.SizeBytes, IsOffline: d.Offline, OfflineReason: text(d.OfflineReason),
		IsReadOnly: d.ReadOnly, IsSystem: d.System,
	}
}

func setDiskReadOnly(ctx context.Context, s *site, q *wirepb.SetDiskReadOnlyRequest) (*wirepb.SetDiskReadOnlyResponse, error) {
	return &wirepb.SetDiskReadOnlyResponse{}, s.host.SetDiskReadOnly(ctx, q.GetDiskNumber(), q.GetIsReadOnly())
}

func listVolumes(ctx context.Context, s *site, _ *wirepb.ListVolumesRequest) (*wirepb.ListVolumesResponse, error) {
	volumes, err := s.host.ListVolumes(ctx)
	if err != nil {
		return nil, err
	}
	answer := make([]*wirepb.VolumeInfo, len(volumes))
	for i, volume := range volumes {
		answer[i] = volumeInfo(volume)
	}
	return &wirepb.ListVolumesResponse{Volumes: answer}, nil
}

func getVolume(ctx context.Context, s *site, q *wirepb.GetVolumeRequest) (*wirepb.GetVolumeResponse, error) {
	volume, err := s.host.GetVolume(ctx, q.GetVolumeId())
	return &wirepb.GetVolumeResponse{Volume: volumeInfo(volume)}, err
}

func volumeInfo(v host.VolumeInfo) *wirepb.VolumeInfo {
	return &wirepb.VolumeInfo{
		VolumeId: text(v.ID), DiskNumber: v.DiskNumber, PartitionNumber: v.PartitionNumber,
		FileSystem: text(v.FileSystem), Label: text(v.Label),
		SizeBytes: v.SizeBytes, FreeBytes: v.FreeBytes, ClusterBytes: v.ClusterBytes,
		Health: text(string(v.Health)), HealthDetail: text(v.HealthDetail), MountPaths: texts(v.MountPaths),
	}
}

func formatVolumeWith(ctx context.Context, s *site, q *wirepb.FormatVolumeWithRequest) (*wirepb.FormatVolumeWithResponse, error) {
	options := host.FormatOptions{FileSystem: q.GetFileSystem(), ClusterBytes: q.GetClusterBytes(), Label: q.GetLabel()}
	return &wirepb.FormatVolumeWithResponse{}, s.host.FormatVolumeWith(ctx, q.GetVolumeId(), options)
}

func listMounts(ctx context.Context, s *site, _ *wirepb.ListMountsRequest) (*wirepb.ListMountsResponse, error) {
	mounts, err := s.host.ListMounts(ctx)
	if err != nil {
		return nil, err
	}
	answer := make([]*wirepb.Mount, len(mounts))
	for i, mount := range mounts {
		answer[i] = &wirepb.Mount{VolumeId: text(mount.VolumeID), Path: text(mount.Path)}
	}
	return &wirepb.ListMountsResponse{Mounts: answer}, nil
}

func getLink(ctx context.Context, s *site, q *wirepb.GetLinkRequest) (*wirepb.GetLinkResponse, error) {
	link, err := s.host.GetLink(ctx, q.GetPath())
	return &wirepb.GetLinkResponse{Kind: text(string(link.Kind)), Target: text(link.Target)}, err
}

func getPathStats(ctx context.Context, s *site, q *wirepb.GetPathStatsRequest) (*wirepb.GetPathStatsResponse, error) {
	stats, err := s.host.GetPathStats(ctx, q.GetPath())
	return &wirepb.GetPathStatsResponse{TotalBytes: stats.TotalBytes, UsedBytes: stats.UsedBytes}, err
}

func listSmbGlobalMappings(ctx context.Context, s *site, _ *wirepb.ListSmbGlobalMappingsRequest) (*wirepb.ListSmbGlobalMappingsResponse, error) {
	mappings, err := s.host.ListSmbGlobalMappings(ctx)
	if err != nil {
		return nil, err
	}
	answer := make([]*wirepb.SmbMapping, len(mappings))
	for i, m := range mappings {
		answer[i] = &wirepb.SmbMapping{
			RemotePath: text(m.RemotePath), LocalPath: text(m.LocalPath),
			RequirePrivacy: m.RequirePrivacy, Status: text(string(m.Status)),
		}
	}
	return &wirepb.ListSmbGlobalMappingsResponse{Mappings: answer}, nil
}

func listTargets(ctx context.Context, s *site, _ *wirepb.ListTargetsRequest) (*wirepb.ListTargetsResponse, error) {
	targets, err := s.host.ListTargets(ctx)
	if err != nil {
		return nil, err
	}
	answer := make([]*wirepb.TargetInfo, len(targets))
	for i, target := range targets {
		answer[i] = &wirepb.TargetInfo{Iqn: text(target.IQN), IsConnected: target.Connected, DiskNumbers: target.DiskNumbers}
	}
	return &wirepb.ListTargetsResponse{Targets: answer}, nil
}

func connectTargetWith(ctx context.Context, s *site, q *wirepb.ConnectTargetWithRequest) (*wirepb.ConnectTargetWithResponse, error) {
	portal, err := targetPortal("ConnectTarget", q.GetTargetPortal())
	if err != nil {
		return nil, err
	}
	options := host.ConnectOptions{
		AuthType: host.AuthType(q.GetAuthType()), ChapUsername: q.GetChapUsername(), ChapSecret: q.GetChapSecret(),
		Persistent: q.GetIsPersistent(),
	}
	return &wirepb.ConnectTargetWithResponse{}, s.host.ConnectTarget(ctx, portal, q.GetIqn(), options)
}
