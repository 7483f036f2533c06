package csikit

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// groupController is the GroupController service over a GroupSnapshotter.
type groupController struct {
	csi.UnimplementedGroupControllerServer
	groups GroupSnapshotter
}

// GroupControllerGetCapabilities says the one capability there is.
func (g *groupController) GroupControllerGetCapabilities(
	context.Context, *csi.GroupControllerGetCapabilitiesRequest,
) (*csi.GroupControllerGetCapabilitiesResponse, error) {
	call := csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT
	return &csi.GroupControllerGetCapabilitiesResponse{Capabilities: []*csi.GroupControllerServiceCapability{{
		Type: &csi.GroupControllerServiceCapability_Rpc{Rpc: &csi.GroupControllerServiceCapability_RPC{Type: call}},
	}}}, nil
}

// CreateVolumeGroupSnapshot snapshots several volumes at one moment.
func (g *groupController) CreateVolumeGroupSnapshot(
	ctx context.Context, r *csi.CreateVolumeGroupSnapshotRequest,
) (*csi.CreateVolumeGroupSnapshotResponse, error) {
	asked := slices.Sorted(slices.Values(r.GetSourceVolumeIds()))
	switch {
	case len(asked) == 0 || asked[0] == "":
		return nil, refuse(ErrInvalid, "source_volume_ids", "is missing or has an empty id")
	case len(slices.Compact(slices.Clone(asked))) != len(asked):
		return nil, refuse(ErrInvalid, "source_volume_ids", "has an id twice")
	}
	group, err := g.groups.CreateGroupSnapshot(ctx, CreateGroupSnapshotRequest{
		Name: r.GetName(), SourceVolumeIDs: r.GetSourceVolumeIds(), Parameters: r.GetParameters(), Secrets: r.GetSecrets()})
	if err != nil {
		return nil, err
	}
	answer, err := g.answer(group)
	if err != nil {
		return nil, err
	}
	if have := sortedBy(group.Snapshots, func(s Snapshot) string { return s.SourceVolumeID }); !slices.Equal(have, asked) {
		return nil, refuse(ErrExists, "name", "group snapshot %s has this name and is of other volumes", group.ID)
	}
	return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: answer}, nil
}

// DeleteVolumeGroupSnapshot deletes a group snapshot and all that is in it. One that
// is gone is success. A list of snapshots that is not that of the group means that the
// caller thinks of something else: nothing is deleted.
func (g *groupController) DeleteVolumeGroupSnapshot(
	ctx context.Context, r *csi.DeleteVolumeGroupSnapshotRequest,
) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	request := GroupSnapshotRequest{
		GroupSnapshotID: r.GetGroupSnapshotId(), SnapshotIDs: r.GetSnapshotIds(), Secrets: r.GetSecrets()}
	if len(request.SnapshotIDs) > 0 {
		if _, err := g.group(ctx, request); says(err, codes.NotFound) {
			return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
		} else if err != nil {
			return nil, err
		}
	}
	if err := gone(g.groups.DeleteGroupSnapshot(ctx, request)); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
}

// GetVolumeGroupSnapshot says what a group snapshot is.
func (g *groupController) GetVolumeGroupSnapshot(
	ctx context.Context, r *csi.GetVolumeGroupSnapshotRequest,
) (*csi.GetVolumeGroupSnapshotResponse, error) {
	group, err := g.group(ctx, GroupSnapshotRequest{
		GroupSnapshotID: r.GetGroupSnapshotId(), SnapshotIDs: r.GetSnapshotIds(), Secrets: r.GetSecrets()})
	if err != nil {
		return nil, err
	}
	answer, err := g.answer(group)
	if err != nil {
		return nil, err
	}
	return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: answer}, nil
}

// group asks for a group snapshot and compares its snapshots with those of the request.
func (g *groupController) group(ctx context.Context, request GroupSnapshotRequest) (GroupSnapshot, error) {
	group, err := g.groups.GetGroupSnapshot(ctx, request)
	if err != nil {
		return group, err
	}
	if group.ID != request.GroupSnapshotID {
		return group, wrong("group snapshot %.128q, asked was for %q", group.ID, request.GroupSnapshotID)
	}
	have := sortedBy(group.Snapshots, func(s Snapshot) string { return s.ID })
	if len(request.SnapshotIDs) > 0 && !slices.Equal(have, slices.Sorted(slices.Values(request.SnapshotIDs))) {
		return group, refuse(ErrInvalid, "snapshot_ids", "are not the snapshots of group snapshot %s", group.ID)
	}
	return group, nil
}

// answer is a group snapshot as CSI wants it. It is ready when all of it is.
func (g *groupController) answer(group GroupSnapshot) (*csi.VolumeGroupSnapshot, error) {
	if err := first(checkID("the group snapshot id", group.ID), checkTime("the group snapshot", group.CreatedAt)); err != nil {
		return nil, err
	}
	if len(group.Snapshots) == 0 {
		return nil, wrong("group snapshot %s has no snapshots", group.ID)
	}
	placed := is[SnapshotPlacer](g.groups)
	answer := &csi.VolumeGroupSnapshot{
		GroupSnapshotId: group.ID, CreationTime: timestamppb.New(group.CreatedAt), ReadyToUse: group.Ready}
	for _, snapshot := range group.Snapshots {
		if snapshot.GroupID != "" && snapshot.GroupID != group.ID {
			return nil, wrong("snapshot %s of group snapshot %s says it is of %s", snapshot.ID, group.ID, snapshot.GroupID)
		}
		snapshot.GroupID = group.ID
		s, err := snapshotAnswer(snapshot, placed)
		if err != nil {
			return nil, err
		}
		answer.ReadyToUse = answer.ReadyToUse && s.GetReadyToUse()
		answer.Snapshots = append(answer.Snapshots, s)
	}
	return answer, nil
}

// sortedBy are the ids of snapshots in order.
func sortedBy(snapshots []Snapshot, id func(Snapshot) string) []string {
	ids := make([]string, 0, len(snapshots))
	for _, s := range snapshots {
		ids = append(ids, id(s))
	}
	slices.Sort(ids)
	return ids
}
