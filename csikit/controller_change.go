package csikit

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// ControllerPublishVolume attaches a volume to a node.
func (c *controller) ControllerPublishVolume(
	ctx context.Context, r *csi.ControllerPublishVolumeRequest,
) (*csi.ControllerPublishVolumeResponse, error) {
	attacher, err := part[Attacher](c, "ControllerPublishVolume")
	if err != nil {
		return nil, err
	}
	capability, err := capabilityOf(r.GetVolumeCapability())
	if err == nil {
		err = c.check(capability)
	}
	if err != nil {
		return nil, err
	}
	publishContext, err := attacher.AttachVolume(ctx, AttachRequest{
		VolumeID: r.GetVolumeId(), NodeID: r.GetNodeId(), Capability: capability,
		ReadOnly: r.GetReadonly() || accessOf(capability).ReadOnly, Context: r.GetVolumeContext(), Secrets: r.GetSecrets()})
	if err == nil {
		err = checkMap("the publish context", publishContext)
	}
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: publishContext}, nil
}

// ControllerUnpublishVolume detaches a volume. A volume or node that is gone is success.
func (c *controller) ControllerUnpublishVolume(
	ctx context.Context, r *csi.ControllerUnpublishVolumeRequest,
) (*csi.ControllerUnpublishVolumeResponse, error) {
	attacher, err := part[Attacher](c, "ControllerUnpublishVolume")
	if err != nil {
		return nil, err
	}
	err = attacher.DetachVolume(ctx, DetachRequest{VolumeID: r.GetVolumeId(), NodeID: r.GetNodeId(), Secrets: r.GetSecrets()})
	if gone(err) != nil {
		return nil, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

// ControllerExpandVolume grows a volume. Nothing grows on a node for one that is a
// raw block device, as nodes with another operating system may use it.
func (c *controller) ControllerExpandVolume(
	ctx context.Context, r *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	expander, err := part[Expander](c, "ControllerExpandVolume")
	if err != nil {
		return nil, err
	}
	request := ExpandRequest{VolumeID: r.GetVolumeId(), Secrets: r.GetSecrets()}
	if request.Capacity, err = capacityOf(r.GetCapacityRange()); err != nil {
		return nil, err
	}
	if request.Capacity == (CapacityRange{}) {
		return nil, refuse(ErrInvalid, "capacity_range", "has neither required_bytes nor limit_bytes")
	}
	isBlock := r.GetVolumeCapability().GetBlock() != nil
	if r.GetVolumeCapability() != nil && !isBlock {
		capability, err := capabilityOf(r.GetVolumeCapability())
		if err == nil {
			err = c.check(capability)
		}
		if err != nil {
			return nil, err
		}
		request.Capability = &capability
	}
	volume, err := expander.ExpandVolume(ctx, request)
	if err != nil {
		return nil, err
	}
	capacityBytes, err := expanded(volume, request)
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{
		CapacityBytes: capacityBytes, NodeExpansionRequired: volume.NodeExpansionNeeded && !isBlock}, nil
}

// expanded is the size of a volume after it has grown. CSI wants one; where nobody
// knows the size, as with a folder of a share, it is what was asked for.
func expanded(volume Volume, request ExpandRequest) (int64, error) {
	switch size := volume.CapacityBytes; {
	case volume.ID != request.VolumeID:
		return 0, wrong("volume %.128q was expanded, asked was for %q", volume.ID, request.VolumeID)
	case size < 0, size > 0 && size < request.Capacity.RequiredBytes:
		return 0, wrong("%d bytes after expansion, asked was for %d", size, request.Capacity.RequiredBytes)
	case !request.Capacity.holds(size):
		return 0, refuse(ErrOutOfRange, "capacity_range", "the volume has %d bytes, more than limit_bytes %d, and never shrinks",
			size, request.Capacity.LimitBytes)
	case size == 0:
		return request.Capacity.RequiredBytes, nil
	default:
		return size, nil
	}
}

// ControllerModifyVolume sets properties of a volume.
func (c *controller) ControllerModifyVolume(
	ctx context.Context, r *csi.ControllerModifyVolumeRequest,
) (*csi.ControllerModifyVolumeResponse, error) {
	modifier, err := part[Modifier](c, "ControllerModifyVolume")
	if err != nil {
		return nil, err
	}
	if err := c.checkMutable(r.GetMutableParameters()); err != nil {
		return nil, err
	}
	request := ModifyRequest{VolumeID: r.GetVolumeId(), MutableParameters: r.GetMutableParameters(), Secrets: r.GetSecrets()}
	if err := modifier.ModifyVolume(ctx, request); err != nil {
		return nil, err
	}
	return &csi.ControllerModifyVolumeResponse{}, nil
}

// snapshotter is the backend when it does all that CSI wants of one with snapshots.
func (c *controller) snapshotter(call string) (Snapshotter, error) {
	if _, err := part[SnapshotRestorer](c, call); err != nil {
		return nil, err
	}
	return part[Snapshotter](c, call)
}

// CreateSnapshot snapshots a volume.
func (c *controller) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	snapshotter, err := c.snapshotter("CreateSnapshot")
	if err != nil {
		return nil, err
	}
	create := snapshotter.CreateSnapshot
	if r.GetAccessibilityRequirements() != nil {
		placer, ok := snapshotter.(SnapshotPlacer)
		if !ok {
			return nil, refuse(ErrInvalid, "accessibility_requirements", "snapshots of this driver have no place")
		}
		create = placer.PlaceSnapshot
	}
	snapshot, err := create(ctx, CreateSnapshotRequest{
		Name: r.GetName(), SourceVolumeID: r.GetSourceVolumeId(), Parameters: r.GetParameters(), Secrets: r.GetSecrets(),
		Requisite: topologiesOf(r.GetAccessibilityRequirements().GetRequisite()),
		Preferred: topologiesOf(r.GetAccessibilityRequirements().GetPreferred())})
	if err != nil {
		return nil, err
	}
	answer, err := snapshotAnswer(snapshot, is[SnapshotPlacer](c.backend))
	if err != nil {
		return nil, err
	}
	if snapshot.SourceVolumeID != r.GetSourceVolumeId() {
		return nil, refuse(ErrExists, "name", "snapshot %s has this name and is of volume %s", snapshot.ID, snapshot.SourceVolumeID)
	}
	if !reaches(snapshot.Topology, topologiesOf(r.GetAccessibilityRequirements().GetRequisite())) {
		return nil, refuse(ErrExists, "name", "snapshot %s has this name and cannot be used from where it is asked for", snapshot.ID)
	}
	return &csi.CreateSnapshotResponse{Snapshot: answer}, nil
}

// DeleteSnapshot deletes a snapshot. One that is gone is success.
func (c *controller) DeleteSnapshot(ctx context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	snapshotter, err := c.snapshotter("DeleteSnapshot")
	if err != nil {
		return nil, err
	}
	err = snapshotter.DeleteSnapshot(ctx, SnapshotRequest{SnapshotID: r.GetSnapshotId(), Secrets: r.GetSecrets()})
	if gone(err) != nil {
		return nil, err
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

// GetSnapshot says what a snapshot is.
func (c *controller) GetSnapshot(ctx context.Context, r *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	snapshotter, err := c.snapshotter("GetSnapshot")
	if err != nil {
		return nil, err
	}
	snapshot, err := snapshotter.GetSnapshot(ctx, SnapshotRequest{SnapshotID: r.GetSnapshotId(), Secrets: r.GetSecrets()})
	if err != nil {
		return nil, err
	}
	answer, err := snapshotAnswer(snapshot, is[SnapshotPlacer](c.backend))
	if err == nil && snapshot.ID != r.GetSnapshotId() {
		err = wrong("snapshot %q, asked was for %q", snapshot.ID, r.GetSnapshotId())
	}
	if err != nil {
		return nil, err
	}
	return &csi.GetSnapshotResponse{Snapshot: answer}, nil
}
