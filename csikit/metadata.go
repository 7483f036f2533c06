package csikit

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// blocksMax is the largest number of parts in one message, whatever the caller allows:
// about 80 KiB.
const blocksMax = 4096

// snapshotMetadata is the SnapshotMetadata service over a SnapshotDiffer.
type snapshotMetadata struct {
	csi.UnimplementedSnapshotMetadataServer
	differ SnapshotDiffer
}

// GetMetadataAllocated tells the parts of a snapshot that hold data.
func (s *snapshotMetadata) GetMetadataAllocated(
	r *csi.GetMetadataAllocatedRequest, stream csi.SnapshotMetadata_GetMetadataAllocatedServer,
) error {
	out, err := newBlockStream(r.GetStartingOffset(), r.GetMaxResults(), func(capacityBytes int64, blocks []*csi.BlockMetadata) error {
		return stream.Send(&csi.GetMetadataAllocatedResponse{
			BlockMetadataType: csi.BlockMetadataType_VARIABLE_LENGTH, VolumeCapacityBytes: capacityBytes, BlockMetadata: blocks})
	})
	if err != nil {
		return err
	}
	return out.run(stream.Context(), func(ctx context.Context) error {
		return s.differ.AllocatedBlocks(ctx, AllocatedRequest{
			SnapshotID: r.GetSnapshotId(), StartingOffsetBytes: r.GetStartingOffset(), Secrets: r.GetSecrets()}, out.emit)
	})
}

// GetMetadataDelta tells the parts that differ between two snapshots.
func (s *snapshotMetadata) GetMetadataDelta(
	r *csi.GetMetadataDeltaRequest, stream csi.SnapshotMetadata_GetMetadataDeltaServer,
) error {
	out, err := newBlockStream(r.GetStartingOffset(), r.GetMaxResults(), func(capacityBytes int64, blocks []*csi.BlockMetadata) error {
		return stream.Send(&csi.GetMetadataDeltaResponse{
			BlockMetadataType: csi.BlockMetadataType_VARIABLE_LENGTH, VolumeCapacityBytes: capacityBytes, BlockMetadata: blocks})
	})
	if err != nil {
		return err
	}
	return out.run(stream.Context(), func(ctx context.Context) error {
		return s.differ.ChangedBlocks(ctx, ChangedRequest{
			BaseSnapshotID: r.GetBaseSnapshotId(), TargetSnapshotID: r.GetTargetSnapshotId(),
			StartingOffsetBytes: r.GetStartingOffset(), Secrets: r.GetSecrets()}, out.emit)
	})
}

// blockStream cuts what a backend tells into messages and holds it to the rules of
// CSI. It keeps one message at most.
type blockStream struct {
	send          func(capacityBytes int64, blocks []*csi.BlockMetadata) error
	startingBytes int64
	max           int

	capacityBytes int64
	endBytes      int64 // of the last part
	pending       []*csi.BlockMetadata
	failed        error
}

func newBlockStream(startingBytes int64, maxResults int32, send func(int64, []*csi.BlockMetadata) error) (*blockStream, error) {
	switch {
	case startingBytes < 0:
		return nil, refuse(ErrOutOfRange, "starting_offset", "is %d, negative", startingBytes)
	case maxResults < 0:
		return nil, refuse(ErrInvalid, "max_results", "is %d, negative", maxResults)
	}
	out := &blockStream{send: send, startingBytes: startingBytes, max: blocksMax}
	if maxResults > 0 {
		out.max = min(out.max, int(maxResults))
	}
	return out, nil
}

// run has a backend tell its blocks and sends what is left at the end.
func (b *blockStream) run(ctx context.Context, tell func(context.Context) error) error {
	err := tell(ctx)
	// A backend that goes on after an error of emit, or hides it, has told nothing more.
	if b.failed != nil {
		return b.failed
	}
	if err != nil {
		return err
	}
	return b.flush()
}

// emit takes some blocks from the backend.
func (b *blockStream) emit(blocks Blocks) error {
	if b.failed == nil {
		b.failed = b.take(blocks)
	}
	return b.failed
}

func (b *blockStream) take(blocks Blocks) error {
	switch {
	case blocks.VolumeCapacityBytes <= 0:
		return wrong("blocks of a volume of %d bytes", blocks.VolumeCapacityBytes)
	case b.capacityBytes != 0 && b.capacityBytes != blocks.VolumeCapacityBytes:
		return wrong("the volume had %d bytes and has %d", b.capacityBytes, blocks.VolumeCapacityBytes)
	case b.startingBytes > blocks.VolumeCapacityBytes:
		return refuse(ErrOutOfRange, "starting_offset", "is %d, the volume has %d bytes", b.startingBytes, blocks.VolumeCapacityBytes)
	}
	b.capacityBytes = blocks.VolumeCapacityBytes
	for _, part := range blocks.Ranges {
		if part.SizeBytes <= 0 || part.OffsetBytes < b.endBytes || part.SizeBytes > b.capacityBytes-part.OffsetBytes {
			return wrong("the part of %d bytes at %d is empty, not after the one that ends at %d, or beyond the volume's %d",
				part.SizeBytes, part.OffsetBytes, b.endBytes, b.capacityBytes)
		}
		b.endBytes = part.OffsetBytes + part.SizeBytes
		if b.endBytes <= b.startingBytes {
			continue
		}
		b.pending = append(b.pending, &csi.BlockMetadata{ByteOffset: part.OffsetBytes, SizeBytes: part.SizeBytes})
		if len(b.pending) == b.max {
			if err := b.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush sends what is pending. The message may be on its way still when send
// returns, so its slice is not used again.
func (b *blockStream) flush() error {
	if len(b.pending) == 0 {
		return nil
	}
	blocks := b.pending
	b.pending = nil
	return b.send(b.capacityBytes, blocks)
}
