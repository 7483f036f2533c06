package client

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

var _ node.Node = (*Client)(nil)

// HasNode reports whether the server has the node tasks. Without them a driver
// composes them over the primitives: node.New(client, …). A server that cannot be
// reached is an error, not a server without.
func (c *Client) HasNode(ctx context.Context) (bool, error) {
	l, err := c.acquire(ctx, "HasNode", wire.GroupNode)
	if host.IsKind(err, host.KindUnsupported) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.release()
	return true, nil
}

// Stage implements node.Node.
func (c *Client) Stage(ctx context.Context, r node.StageRequest) error {
	return do[*wirepb.StageResponse](ctx, c, wire.GroupNode, &wirepb.StageRequest{
		VolumeId: r.VolumeID, StagingPath: r.StagingPath, Source: source(r.Source),
		FileSystem: r.Format.FileSystem, ClusterBytes: r.Format.ClusterBytes, Label: r.Format.Label,
		Access: access(r.Access), Grow: r.Grow,
	})
}

// Unstage implements node.Node.
func (c *Client) Unstage(ctx context.Context, r node.UnstageRequest) error {
	return do[*wirepb.UnstageResponse](ctx, c, wire.GroupNode, &wirepb.UnstageRequest{
		VolumeId: r.VolumeID, StagingPath: r.StagingPath, Source: source(r.Source),
	})
}

// Publish implements node.Node.
func (c *Client) Publish(ctx context.Context, r node.PublishRequest) error {
	return do[*wirepb.PublishResponse](ctx, c, wire.GroupNode, &wirepb.PublishRequest{
		VolumeId: r.VolumeID, StagingPath: r.StagingPath, TargetPath: r.TargetPath,
		IsReadOnly: r.ReadOnly, Access: access(r.Access),
	})
}

// Unpublish implements node.Node.
func (c *Client) Unpublish(ctx context.Context, r node.UnpublishRequest) error {
	return do[*wirepb.UnpublishResponse](ctx, c, wire.GroupNode, &wirepb.UnpublishRequest{VolumeId: r.VolumeID, TargetPath: r.TargetPath})
}

// Expand implements node.Node.
func (c *Client) Expand(ctx context.Context, r node.ExpandRequest) (node.ExpandResult, error) {
	answer, err := call[*wirepb.ExpandResponse](ctx, c, wire.GroupNode, &wirepb.ExpandRequest{
		VolumeId: r.VolumeID, Path: r.Path, RequiredBytes: r.RequiredBytes, LimitBytes: r.LimitBytes,
	})
	return node.ExpandResult{CapacityBytes: answer.GetCapacityBytes()}, err
}

// Stats implements node.Node.
func (c *Client) Stats(ctx context.Context, r node.StatsRequest) (node.Stats, error) {
	answer, err := call[*wirepb.StatsResponse](ctx, c, wire.GroupNode, &wirepb.StatsRequest{VolumeId: r.VolumeID, Path: r.Path})
	return node.Stats{
		TotalBytes: answer.GetTotalBytes(), UsedBytes: answer.GetUsedBytes(), AvailableBytes: answer.GetAvailableBytes(),
	}, err
}

// Health implements node.Node.
func (c *Client) Health(ctx context.Context, r node.HealthRequest) (node.Health, error) {
	answer, err := call[*wirepb.HealthResponse](ctx, c, wire.GroupNode, &wirepb.HealthRequest{
		VolumeId: r.VolumeID, StagingPath: r.StagingPath, TargetPath: r.TargetPath,
	})
	var found node.Health
	for _, c := range answer.GetConditions() {
		found.Conditions = append(found.Conditions, node.HealthCondition{
			Status: node.HealthStatus(c.GetStatus()), Reason: c.GetReason(), Message: c.GetMessage(),
		})
	}
	return found, err
}

// Info implements node.Node.
func (c *Client) Info(ctx context.Context) (node.Info, error) {
	answer, err := call[*wirepb.InfoResponse](ctx, c, wire.GroupNode, &wirepb.InfoRequest{})
	return node.Info{BIOSSerialNumber: answer.GetBiosSerialNumber(), Lacks: answer.GetLacks()}, err
}

// source writes a source as it is. How many are set is for the task to judge.
func source(s node.Source) *wirepb.Source {
	q := &wirepb.Source{}
	if d := s.Disk; d != nil {
		q.Disk = &wirepb.DiskSource{Page83: d.Page83, SerialNumber: d.SerialNumber, Location: &wirepb.DiskLocation{
			Adapter: d.Location.Adapter, Bus: d.Location.Bus, Target: d.Location.Target, LUNID: d.Location.LUNID,
		}}
	}
	if i := s.ISCSI; i != nil {
		q.Iscsi = &wirepb.ISCSISource{
			Iqn: i.IQN, Lun: i.LUN, AuthType: wirepb.AuthenticationType(i.CHAP.AuthType),
			ChapUsername: i.CHAP.ChapUsername, ChapSecret: i.CHAP.ChapSecret, MutualChapSecret: i.MutualSecret, IsPersistent: i.CHAP.Persistent,
		}
		for _, portal := range i.Portals {
			q.Iscsi.Portals = append(q.Iscsi.Portals, targetPortal(portal))
		}
	}
	if m := s.SMB; m != nil {
		q.Smb = &wirepb.SMBSource{Path: m.Path, Username: m.Username, Domain: m.Domain, Password: m.Password}
	}
	return q
}

func access(a node.Access) *wirepb.Access {
	return &wirepb.Access{IsReadOnly: a.ReadOnly, IsSingleWriter: a.SingleWriter}
}
