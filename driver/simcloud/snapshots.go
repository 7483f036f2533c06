package simcloud

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/sim/cloud"
)

// snapshot is a snapshot as the kit has it. It is ready as soon as it is made.
func snapshot(s cloud.Disk) csikit.Snapshot {
	return csikit.Snapshot{
		ID: s.ID, SourceVolumeID: s.Source, SizeBytes: s.SizeBytes, CreatedAt: s.Created, Ready: true, GroupID: s.GroupID,
	}
}

// CreateSnapshot implements csikit.Snapshotter.
func (b *Backend) CreateSnapshot(ctx context.Context, request csikit.CreateSnapshotRequest) (csikit.Snapshot, error) {
	if s, err := b.cloud.SnapshotNamed(ctx, request.Name); err == nil {
		return snapshot(s), nil
	}
	if err := noParameters(request.Parameters); err != nil {
		return csikit.Snapshot{}, err
	}
	s, err := b.cloud.SnapshotDisk(ctx, request.SourceVolumeID, request.Name)
	if errors.Is(err, cloud.ErrExists) { // made meanwhile by another call
		s, err = b.cloud.SnapshotNamed(ctx, request.Name)
	}
	if err != nil {
		return csikit.Snapshot{}, kit(err)
	}
	return snapshot(s), nil
}

// DeleteSnapshot implements csikit.Snapshotter.
func (b *Backend) DeleteSnapshot(ctx context.Context, request csikit.SnapshotRequest) error {
	return kit(b.cloud.DeleteSnapshot(ctx, request.SnapshotID))
}

// GetSnapshot implements csikit.Snapshotter.
func (b *Backend) GetSnapshot(ctx context.Context, request csikit.SnapshotRequest) (csikit.Snapshot, error) {
	s, err := b.cloud.Snapshot(ctx, request.SnapshotID)
	if err != nil {
		return csikit.Snapshot{}, kit(err)
	}
	return snapshot(s), nil
}

// ListSnapshots implements csikit.SnapshotLister.
func (b *Backend) ListSnapshots(ctx context.Context, request csikit.ListSnapshotsRequest) (csikit.SnapshotPage, error) {
	found, next, err := b.cloud.SnapshotPage(ctx, cloud.Page(request.Page), func(s cloud.Disk) bool {
		return (request.SnapshotID == "" || s.ID == request.SnapshotID) &&
			(request.SourceVolumeID == "" || s.Source == request.SourceVolumeID)
	})
	if err != nil {
		return csikit.SnapshotPage{}, kit(err)
	}
	out := csikit.SnapshotPage{NextToken: next}
	for _, s := range found {
		out.Snapshots = append(out.Snapshots, snapshot(s))
	}
	return out, nil
}

// group is a group snapshot as the kit has it.
func (b *Backend) group(ctx context.Context, g cloud.Group) (csikit.GroupSnapshot, error) {
	out := csikit.GroupSnapshot{ID: g.ID, CreatedAt: g.Created, Ready: true}
	for _, id := range g.SnapshotIDs {
		s, err := b.cloud.Snapshot(ctx, id)
		if err != nil { // the group was deleted meanwhile
			return csikit.GroupSnapshot{}, kit(err)
		}
		out.Snapshots = append(out.Snapshots, snapshot(s))
	}
	return out, nil
}

// CreateGroupSnapshot implements csikit.GroupSnapshotter.
func (b *Backend) CreateGroupSnapshot(ctx context.Context, request csikit.CreateGroupSnapshotRequest) (csikit.GroupSnapshot, error) {
	g, err := b.cloud.GroupNamed(ctx, request.Name)
	if err != nil {
		if err := noParameters(request.Parameters); err != nil {
			return csikit.GroupSnapshot{}, err
		}
		g, err = b.cloud.SnapshotGroup(ctx, request.SourceVolumeIDs, request.Name)
	}
	if errors.Is(err, cloud.ErrExists) { // made meanwhile by another call
		g, err = b.cloud.GroupNamed(ctx, request.Name)
	}
	if err != nil {
		return csikit.GroupSnapshot{}, kit(err)
	}
	return b.group(ctx, g)
}

// DeleteGroupSnapshot implements csikit.GroupSnapshotter.
func (b *Backend) DeleteGroupSnapshot(ctx context.Context, request csikit.GroupSnapshotRequest) error {
	g, err := b.cloud.Group(ctx, request.GroupSnapshotID)
	if err != nil {
		return nil //nolint:nilerr // it is gone
	}
	if err := sameSnapshots(g, request.SnapshotIDs); err != nil {
		return err
	}
	return kit(b.cloud.DeleteGroup(ctx, g.ID))
}

// GetGroupSnapshot implements csikit.GroupSnapshotter.
func (b *Backend) GetGroupSnapshot(ctx context.Context, request csikit.GroupSnapshotRequest) (csikit.GroupSnapshot, error) {
	g, err := b.cloud.Group(ctx, request.GroupSnapshotID)
	if err != nil {
		return csikit.GroupSnapshot{}, kit(err)
	}
	if err := sameSnapshots(g, request.SnapshotIDs); err != nil {
		return csikit.GroupSnapshot{}, err
	}
	return b.group(ctx, g)
}

// sameSnapshots refuses a list that is not that of the group's snapshots. No list
// fits any.
func sameSnapshots(g cloud.Group, ids []string) error {
	if len(ids) == 0 || slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(g.SnapshotIDs))) {
		return nil
	}
	return fmt.Errorf("group snapshot %q has other snapshots than those given: %w", g.ID, csikit.ErrInvalid)
}

// AllocatedBlocks implements csikit.SnapshotDiffer.
func (b *Backend) AllocatedBlocks(ctx context.Context, request csikit.AllocatedRequest, emit func(csikit.Blocks) error) error {
	s, err := b.cloud.Snapshot(ctx, request.SnapshotID)
	if err != nil {
		return kit(err)
	}
	return kit(b.cloud.AllocatedBlocks(ctx, s.ID, request.StartingOffsetBytes, emitBlocks(s, emit)))
}

// ChangedBlocks implements csikit.SnapshotDiffer.
func (b *Backend) ChangedBlocks(ctx context.Context, request csikit.ChangedRequest, emit func(csikit.Blocks) error) error {
	s, err := b.cloud.Snapshot(ctx, request.TargetSnapshotID)
	if err != nil {
		return kit(err)
	}
	return kit(b.cloud.ChangedBlocks(ctx, request.BaseSnapshotID, s.ID, request.StartingOffsetBytes, emitBlocks(s, emit)))
}

func emitBlocks(s cloud.Disk, emit func(csikit.Blocks) error) func([]cloud.Extent) error {
	return func(extents []cloud.Extent) error {
		out := csikit.Blocks{VolumeCapacityBytes: s.SizeBytes}
		for _, e := range extents {
			out.Ranges = append(out.Ranges, csikit.BlockRange(e))
		}
		return emit(out)
	}
}
