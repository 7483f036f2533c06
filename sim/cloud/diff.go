package cloud

import (
	"context"
	"fmt"

	"github.com/csi-windows/csi-windows/sim"
)

// BlockBytes is the size of the blocks by which snapshots are compared.
const BlockBytes = 256 << 10

// Extent is a run of bytes of a disk.
type Extent struct{ OffsetBytes, SizeBytes int64 }

// extentsPerCall is how many extents are handed on at once.
const extentsPerCall = 256

// AllocatedBlocks calls emit with the parts of a snapshot that hold data, in order,
// from the block at fromBytes on.
func (c *Cloud) AllocatedBlocks(ctx context.Context, id string, fromBytes int64, emit func([]Extent) error) error {
	s, err := c.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	return c.compare(ctx, nil, s, fromBytes, emit)
}

// ChangedBlocks calls emit with the parts in which a snapshot differs from an
// earlier one of the same disk; ErrUnrelated when it is none.
func (c *Cloud) ChangedBlocks(ctx context.Context, baseID, targetID string, fromBytes int64, emit func([]Extent) error) error {
	base, err := c.Snapshot(ctx, baseID)
	if err != nil {
		return err
	}
	target, err := c.Snapshot(ctx, targetID)
	if err != nil {
		return err
	}
	if base.Source != target.Source || base.Created.After(target.Created) {
		return fmt.Errorf("snapshots %q and %q: %w", baseID, targetID, ErrUnrelated)
	}
	return c.compare(ctx, &base, target, fromBytes, emit)
}

// compare keeps both snapshots while it reads them. A base of nil is an empty disk.
func (c *Cloud) compare(ctx context.Context, base *Disk, target Disk, fromBytes int64, emit func([]Extent) error) error {
	if fromBytes < 0 || fromBytes > target.SizeBytes {
		return fmt.Errorf("offset %d in a snapshot of %d bytes: %w", fromBytes, target.SizeBytes, ErrSize)
	}
	keys, before := []string{diskKey(target.ID)}, ""
	if base != nil {
		keys, before = append(keys, diskKey(base.ID)), c.imageOf(snapshotsFolder, base.ID)
	}
	unlock, err := c.locks.lock(ctx, keys...)
	if err != nil {
		return fmt.Errorf("blocks of snapshot %q: %w", target.ID, err)
	}
	layout := sim.BlockLayout{BlockBytes: BlockBytes, PlacesBytes: target.FirstSizeBytes}
	set, err := sim.ChangedBlocks(ctx, before, c.imageOf(snapshotsFolder, target.ID), layout)
	unlock()
	if err != nil {
		return fmt.Errorf("blocks of snapshot %q: %w", target.ID, err)
	}
	return emitBlocks(ctx, set, fromBytes, target.SizeBytes, emit)
}

// emitBlocks hands on the extents of a set, some at a time.
func emitBlocks(ctx context.Context, set *sim.BlockSet, fromBytes, sizeBytes int64, emit func([]Extent) error) error {
	var batch []Extent
	for at := fromBytes / BlockBytes; ; {
		start, end := set.Next(at)
		if start < end {
			offset := start * BlockBytes
			batch = append(batch, Extent{offset, min(end*BlockBytes, sizeBytes) - offset})
		}
		if len(batch) == extentsPerCall || start == end && len(batch) > 0 {
			if err := emit(batch); err != nil {
				return err
			}
			batch = nil
		}
		if start == end {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		at = end
	}
}
