package kittest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/csi-windows/csi-windows/csikit"
)

func (b *Backend) findSnapshot(id string) (*snapshot, error) {
	s, ok := b.snapshots[id]
	if !ok {
		return nil, fmt.Errorf("snapshot %q: %w", id, csikit.ErrNotFound)
	}
	return s, nil
}

// CreateSnapshot implements csikit.Snapshotter.
func (b *Backend) CreateSnapshot(ctx context.Context, r csikit.CreateSnapshotRequest) (csikit.Snapshot, error) {
	leave, err := b.enter(ctx, "CreateSnapshot", r.Name)
	if err != nil {
		return csikit.Snapshot{}, err
	}
	defer leave()
	if id, ok := b.names["snapshot "+r.Name]; ok {
		return b.snapshots[id].Snapshot, nil
	}
	v, err := b.find(r.SourceVolumeID)
	if err != nil {
		return csikit.Snapshot{}, err
	}
	s := b.snap(v, "")
	s.name = r.Name
	b.names["snapshot "+r.Name] = s.ID
	return s.Snapshot, nil
}

// PlaceSnapshot implements csikit.SnapshotPlacer. There is one place, so a snapshot has
// no Topology. (One that has fails the conformance suite of CSI, v5.6.0: it compares a
// message that it sent with one that it received, bookkeeping of protobuf included.)
func (b *Backend) PlaceSnapshot(ctx context.Context, r csikit.CreateSnapshotRequest) (csikit.Snapshot, error) {
	for _, place := range r.Requisite {
		if place[TopologyKey] == Zone {
			return b.CreateSnapshot(ctx, r)
		}
	}
	if len(r.Requisite) == 0 {
		return b.CreateSnapshot(ctx, r)
	}
	return csikit.Snapshot{}, fmt.Errorf("a snapshot outside zone %s: %w", Zone, csikit.ErrExhausted)
}

// snap makes a snapshot.
func (b *Backend) snap(v *volume, groupID string) *snapshot {
	s := &snapshot{
		Snapshot: csikit.Snapshot{
			ID: b.newID("snapshot"), SourceVolumeID: v.ID, SizeBytes: v.CapacityBytes, CreatedAt: now(), Ready: true, GroupID: groupID},
		capacityBytes: v.CapacityBytes, blocks: maps.Clone(v.blocks),
	}
	b.snapshots[s.ID] = s
	return s
}

// DeleteSnapshot implements csikit.Snapshotter.
func (b *Backend) DeleteSnapshot(ctx context.Context, r csikit.SnapshotRequest) error {
	leave, err := b.enter(ctx, "DeleteSnapshot", r.SnapshotID)
	if err != nil {
		return err
	}
	defer leave()
	s, ok := b.snapshots[r.SnapshotID]
	if !ok {
		return nil
	}
	if s.GroupID != "" {
		return fmt.Errorf("snapshot %s goes with its group %s: %w", s.ID, s.GroupID, csikit.ErrInvalid)
	}
	delete(b.snapshots, s.ID)
	delete(b.names, "snapshot "+s.name)
	return nil
}

// GetSnapshot implements csikit.Snapshotter.
func (b *Backend) GetSnapshot(ctx context.Context, r csikit.SnapshotRequest) (csikit.Snapshot, error) {
	leave, err := b.enter(ctx, "GetSnapshot", r.SnapshotID)
	if err != nil {
		return csikit.Snapshot{}, err
	}
	defer leave()
	s, err := b.findSnapshot(r.SnapshotID)
	if err != nil {
		return csikit.Snapshot{}, err
	}
	return s.Snapshot, nil
}

// CreateGroupSnapshot implements csikit.GroupSnapshotter.
func (b *Backend) CreateGroupSnapshot(ctx context.Context, r csikit.CreateGroupSnapshotRequest) (csikit.GroupSnapshot, error) {
	leave, err := b.enter(ctx, "CreateGroupSnapshot", r.Name)
	if err != nil {
		return csikit.GroupSnapshot{}, err
	}
	defer leave()
	if id, ok := b.names["group "+r.Name]; ok {
		return b.groups[id], nil
	}
	var volumes []*volume
	for _, id := range r.SourceVolumeIDs {
		v, err := b.find(id)
		if err != nil {
			return csikit.GroupSnapshot{}, err
		}
		volumes = append(volumes, v)
	}
	group := csikit.GroupSnapshot{ID: b.newID("group"), CreatedAt: now(), Ready: true}
	for _, v := range volumes {
		group.Snapshots = append(group.Snapshots, b.snap(v, group.ID).Snapshot)
	}
	b.groups[group.ID], b.names["group "+r.Name] = group, group.ID
	return group, nil
}

// DeleteGroupSnapshot implements csikit.GroupSnapshotter.
func (b *Backend) DeleteGroupSnapshot(ctx context.Context, r csikit.GroupSnapshotRequest) error {
	leave, err := b.enter(ctx, "DeleteGroupSnapshot", r.GroupSnapshotID)
	if err != nil {
		return err
	}
	defer leave()
	for _, s := range b.groups[r.GroupSnapshotID].Snapshots {
		delete(b.snapshots, s.ID)
	}
	delete(b.groups, r.GroupSnapshotID)
	maps.DeleteFunc(b.names, func(_, id string) bool { return id == r.GroupSnapshotID })
	return nil
}

// GetGroupSnapshot implements csikit.GroupSnapshotter.
func (b *Backend) GetGroupSnapshot(ctx context.Context, r csikit.GroupSnapshotRequest) (csikit.GroupSnapshot, error) {
	leave, err := b.enter(ctx, "GetGroupSnapshot", r.GroupSnapshotID)
	if err != nil {
		return csikit.GroupSnapshot{}, err
	}
	defer leave()
	group, ok := b.groups[r.GroupSnapshotID]
	if !ok {
		return group, fmt.Errorf("group snapshot %q: %w", r.GroupSnapshotID, csikit.ErrNotFound)
	}
	return group, nil
}

// AllocatedBlocks implements csikit.SnapshotDiffer.
func (b *Backend) AllocatedBlocks(ctx context.Context, r csikit.AllocatedRequest, emit func(csikit.Blocks) error) error {
	leave, err := b.enter(ctx, "AllocatedBlocks", r.SnapshotID)
	if err != nil {
		return err
	}
	s, err := b.findSnapshot(r.SnapshotID)
	leave()
	if err != nil {
		return err
	}
	return tell(s, r.StartingOffsetBytes, slices.Collect(maps.Keys(s.blocks)), emit)
}

// ChangedBlocks implements csikit.SnapshotDiffer.
func (b *Backend) ChangedBlocks(ctx context.Context, r csikit.ChangedRequest, emit func(csikit.Blocks) error) error {
	leave, err := b.enter(ctx, "ChangedBlocks", r.TargetSnapshotID)
	if err != nil {
		return err
	}
	base, err := b.findSnapshot(r.BaseSnapshotID)
	target, targetErr := b.findSnapshot(r.TargetSnapshotID)
	leave()
	switch {
	case err != nil:
		return err
	case targetErr != nil:
		return targetErr
	case base.SourceVolumeID != target.SourceVolumeID:
		return fmt.Errorf("snapshots %s and %s are of two volumes: %w", base.ID, target.ID, csikit.ErrInvalid)
	}
	var changed []int64
	for block, version := range target.blocks {
		if base.blocks[block] != version {
			changed = append(changed, block)
		}
	}
	return tell(target, r.StartingOffsetBytes, changed, emit)
}

// tell emits blocks one by one. Those of a snapshot never change.
func tell(s *snapshot, startingBytes int64, blocks []int64, emit func(csikit.Blocks) error) error {
	slices.Sort(blocks)
	err := emit(csikit.Blocks{VolumeCapacityBytes: s.capacityBytes})
	for _, block := range blocks {
		part := csikit.BlockRange{OffsetBytes: block * BlockBytes, SizeBytes: min(BlockBytes, s.capacityBytes-block*BlockBytes)}
		if err == nil && part.OffsetBytes+part.SizeBytes > startingBytes {
			err = emit(csikit.Blocks{VolumeCapacityBytes: s.capacityBytes, Ranges: []csikit.BlockRange{part}})
		}
	}
	return err
}
