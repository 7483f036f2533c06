package wire

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

func stage(ctx context.Context, s *site, q *wirepb.StageRequest) (*wirepb.StageResponse, error) {
	return &wirepb.StageResponse{}, s.node.Stage(ctx, node.StageRequest{
		VolumeID: q.GetVolumeId(), StagingPath: q.GetStagingPath(), Source: source(q.GetSource()),
		Format: host.FormatOptions{FileSystem: q.GetFileSystem(), ClusterBytes: q.GetClusterBytes(), Label: q.GetLabel()},
		Access: access(q.GetAccess()), Grow: q.GetGrow(),
	})
}

func unstage(ctx context.Context, s *site, q *wirepb.UnstageRequest) (*wirepb.UnstageResponse, error) {
	return &wirepb.UnstageResponse{}, s.node.Unstage(ctx, node.UnstageRequest{
		VolumeID: q.GetVolumeId(), StagingPath: q.GetStagingPath(), Source: source(q.GetSource()),
	})
}

func publish(ctx context.Context, s *site, q *wirepb.PublishRequest) (*wirepb.PublishResponse, error) {
	return &wirepb.PublishResponse{}, s.node.Publish(ctx, node.PublishRequest{
		VolumeID: q.GetVolumeId(), StagingPath: q.GetStagingPath(), TargetPath: q.GetTargetPath(),
		ReadOnly: q.GetIsReadOnly(), Access: access(q.GetAccess()),
	})
}

func unpublish(ctx context.Context, s *site, q *wirepb.UnpublishRequest) (*wirepb.UnpublishResponse, error) {
	return &wirepb.UnpublishResponse{}, s.node.Unpublish(ctx, node.UnpublishRequest{
		VolumeID: q.GetVolumeId(), TargetPath: q.GetTargetPath(),
	})
}

func expand(ctx context.Context, s *site, q *wirepb.ExpandRequest) (*wirepb.ExpandResponse, error) {
	result, err := s.node.Expand(ctx, node.ExpandRequest{
		VolumeID: q.GetVolumeId(), Path: q.GetPath(), RequiredBytes: q.GetRequiredBytes(), LimitBytes: q.GetLimitBytes(),
	})
	return &wirepb.ExpandResponse{CapacityBytes: result.CapacityBytes}, err
}

func stats(ctx context.Context, s *site, q *wirepb.StatsRequest) (*wirepb.StatsResponse, error) {
	sizes, err := s.node.Stats(ctx, node.StatsRequest{VolumeID: q.GetVolumeId(), Path: q.GetPath()})
	return &wirepb.StatsResponse{
		TotalBytes: sizes.TotalBytes, UsedBytes: sizes.UsedBytes, AvailableBytes: sizes.AvailableBytes,
	}, err
}

func healthOf(ctx context.Context, s *site, q *wirepb.HealthRequest) (*wirepb.HealthResponse, error) {
	found, err := s.node.Health(ctx, node.HealthRequest{
		VolumeID: q.GetVolumeId(), StagingPath: q.GetStagingPath(), TargetPath: q.GetTargetPath(),
	})
	if err != nil {
		return nil, err
	}
	answer := make([]*wirepb.HealthCondition, len(found.Conditions))
	for i, c := range found.Conditions {
		answer[i] = &wirepb.HealthCondition{Status: text(string(c.Status)), Reason: text(c.Reason), Message: text(c.Message)}
	}
	return &wirepb.HealthResponse{Conditions: answer}, nil
}

func info(ctx context.Context, s *site, _ *wirepb.InfoRequest) (*wirepb.InfoResponse, error) {
	found, err := s.node.Info(ctx)
	return &wirepb.InfoResponse{BiosSerialNumber: text(found.BIOSSerialNumber), Lacks: texts(found.Lacks)}, err
}

// source reads a source as it came. How many are set is for the task to judge.
func source(q *wirepb.Source) node.Source {
	var s node.Source
	if d := q.GetDisk(); d != nil {
		s.Disk = &node.DiskSource{Page83: d.GetPage83(), SerialNumber: d.GetSerialNumber(), Location: location(d.GetLocation())}
	}
	if i := q.GetIscsi(); i != nil {
		s.ISCSI = &node.ISCSISource{
			IQN: i.GetIqn(), LUN: i.GetLun(), MutualSecret: i.GetMutualChapSecret(),
			CHAP: host.ConnectOptions{
				AuthType: host.AuthType(i.GetAuthType()), ChapUsername: i.GetChapUsername(), ChapSecret: i.GetChapSecret(),
				Persistent: i.GetIsPersistent(),
			},
		}
		for _, p := range i.GetPortals() {
			s.ISCSI.Portals = append(s.ISCSI.Portals, host.TargetPortal{Address: p.GetTargetAddress(), Port: p.GetTargetPort()})
		}
	}
	if m := q.GetSmb(); m != nil {
		s.SMB = &node.SMBSource{Path: m.GetPath(), Username: m.GetUsername(), Domain: m.GetDomain(), Password: m.GetPassword()}
	}
	return s
}

func location(l *wirepb.DiskLocation) host.DiskLocation {
	return host.DiskLocation{Adapter: l.GetAdapter(), Bus: l.GetBus(), Target: l.GetTarget(), LUNID: l.GetLUNID()}
}

func access(q *wirepb.Access) node.Access {
	return node.Access{ReadOnly: q.GetIsReadOnly(), SingleWriter: q.GetIsSingleWriter()}
}
