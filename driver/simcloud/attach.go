package simcloud

import (
	"context"
	"errors"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim/cloud"
)

// contextPage83 is the key of the publish context that says which disk it is.
const contextPage83 = "page83"

// AttachVolume implements csikit.Attacher.
func (b *Backend) AttachVolume(ctx context.Context, request csikit.AttachRequest) (map[string]string, error) {
	if _, err := b.cloud.Disk(ctx, request.VolumeID); err != nil {
		return nil, kit(err)
	}
	node, err := b.node(ctx, request.NodeID)
	if err != nil {
		return nil, kit(err)
	}
	attach := b.cloud.AttachDisk
	if request.ReadOnly || request.Capability.AccessMode == csikit.SingleNodeReaderOnly {
		attach = b.cloud.AttachDiskReadOnly
	}
	if _, err := attach(ctx, request.VolumeID, request.NodeID, node); err != nil {
		return nil, kit(err)
	}
	return map[string]string{contextPage83: cloud.Page83(request.VolumeID)}, nil
}

// DetachVolume implements csikit.Attacher. A node the cloud does not know is gone
// for good: its disks are free.
func (b *Backend) DetachVolume(ctx context.Context, request csikit.DetachRequest) error {
	d, err := b.cloud.Disk(ctx, request.VolumeID)
	if err != nil {
		return nil //nolint:nilerr // a disk that is gone is attached nowhere
	}
	if d.AttachedTo == "" || request.NodeID != "" && request.NodeID != d.AttachedTo {
		return nil
	}
	node, err := b.node(ctx, d.AttachedTo)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return kit(err)
	}
	return kit(b.cloud.DetachDisk(ctx, d.ID, d.AttachedTo, node))
}

// VolumeHealth implements csikit.HealthReporter.
func (b *Backend) VolumeHealth(ctx context.Context, request csikit.VolumeRequest) (csikit.VolumeHealth, error) {
	conditions, err := b.cloud.Health(ctx, request.VolumeID)
	if err != nil {
		return csikit.VolumeHealth{}, kit(err)
	}
	health := csikit.VolumeHealth{VolumeID: request.VolumeID}
	for _, c := range conditions {
		health.Conditions = append(health.Conditions, node.HealthCondition{
			Status: node.HealthStatus(c.Status), Reason: c.Reason, Message: c.Message,
		})
	}
	return health, nil
}

// ListVolumeHealth implements csikit.HealthReporter.
func (b *Backend) ListVolumeHealth(ctx context.Context, page csikit.Page) (csikit.HealthPage, error) {
	// A disk that is deleted meanwhile is well.
	ill := func(d cloud.Disk) bool {
		conditions, err := b.cloud.Health(ctx, d.ID)
		return err == nil && len(conditions) > 0
	}
	disks, next, err := b.cloud.DiskPage(ctx, cloud.Page(page), ill)
	if err != nil {
		return csikit.HealthPage{}, kit(err)
	}
	out := csikit.HealthPage{NextToken: next}
	for _, d := range disks {
		health, err := b.VolumeHealth(ctx, csikit.VolumeRequest{VolumeID: d.ID})
		if err == nil && len(health.Conditions) > 0 {
			out.Volumes = append(out.Volumes, health)
		}
	}
	return out, nil
}

// NodeTopology implements csikit.NodeTopology: volumes have places. It is never asked
// on the controller, which is on no node of its own.
func (b *Backend) NodeTopology(context.Context) (csikit.Topology, error) { return nil, nil }
