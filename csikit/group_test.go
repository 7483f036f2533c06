package csikit_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
)

func TestGroupSnapshots(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	ctx, first, second := within(t), b.create(t, "a"), b.create(t, "b")
	request := &csi.CreateVolumeGroupSnapshotRequest{Name: "g", SourceVolumeIds: []string{second, first}}
	made, err := b.groups.CreateVolumeGroupSnapshot(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.groups.CreateVolumeGroupSnapshot(ctx, request)
	id := made.GetGroupSnapshot().GetGroupSnapshotId()
	if err != nil || again.GetGroupSnapshot().GetGroupSnapshotId() != id {
		t.Errorf("C068: the second time: %v %v", again, err)
	}
	var ids []string
	for _, s := range made.GetGroupSnapshot().GetSnapshots() {
		ids = append(ids, s.GetSnapshotId())
		if s.GetGroupSnapshotId() != id {
			t.Errorf("snapshot %s says it is of group %q", s.GetSnapshotId(), s.GetGroupSnapshotId())
		}
	}
	_, err = b.groups.CreateVolumeGroupSnapshot(ctx, &csi.CreateVolumeGroupSnapshotRequest{Name: "g", SourceVolumeIds: []string{first}})
	expect(t, "the name with other volumes", err, codes.AlreadyExists, id)
	_, err = b.groups.CreateVolumeGroupSnapshot(ctx, &csi.CreateVolumeGroupSnapshotRequest{Name: "h", SourceVolumeIds: []string{first, first}})
	expect(t, "a volume twice", err, codes.InvalidArgument, "source_volume_ids")
	_, err = b.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: ids[0]})
	expect(t, "one snapshot of a group", err, codes.InvalidArgument, "group")

	wrongIDs := [][]string{ids[:1], {ids[0], "other"}, append([]string{"more"}, ids...)}
	for _, wrong := range wrongIDs {
		_, err = b.groups.GetVolumeGroupSnapshot(ctx, &csi.GetVolumeGroupSnapshotRequest{GroupSnapshotId: id, SnapshotIds: wrong})
		expect(t, "get with other snapshots", err, codes.InvalidArgument, "snapshot_ids")
		_, err = b.groups.DeleteVolumeGroupSnapshot(ctx, &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: id, SnapshotIds: wrong})
		expect(t, "delete with other snapshots", err, codes.InvalidArgument, "snapshot_ids")
	}
	_, err = b.groups.GetVolumeGroupSnapshot(ctx, &csi.GetVolumeGroupSnapshotRequest{GroupSnapshotId: id, SnapshotIds: ids})
	expect(t, "get, as nothing was deleted", err, codes.OK)
	for range 2 {
		_, err = b.groups.DeleteVolumeGroupSnapshot(ctx, &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: id, SnapshotIds: ids})
		expect(t, "delete", err, codes.OK)
	}
	_, err = b.controller.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: ids[0]})
	expect(t, "a snapshot of a group that is gone", err, codes.NotFound)
}

// allocated reads a whole stream: all parts, the size of its largest message, its end.
func (b *bed) allocated(t *testing.T, r *csi.GetMetadataAllocatedRequest) (parts []*csi.BlockMetadata, largest int, err error) {
	t.Helper()
	stream, err := b.metadata.GetMetadataAllocated(within(t), r)
	if err != nil {
		t.Fatal(err)
	}
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return parts, largest, nil
		}
		if err != nil {
			return parts, largest, err
		}
		if message.GetBlockMetadataType() != csi.BlockMetadataType_VARIABLE_LENGTH || message.GetVolumeCapacityBytes() != 1<<30 {
			t.Errorf("a message says %v", message)
		}
		parts, largest = append(parts, message.GetBlockMetadata()...), max(largest, len(message.GetBlockMetadata()))
	}
}

func TestSnapshotMetadata(t *testing.T) {
	t.Parallel()
	const block = kittest.BlockBytes
	b := newBed(t, nil, nil)
	ctx, volume := within(t), b.create(t, "v")
	snap := func(name string) string {
		answer, err := b.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: volume})
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetSnapshot().GetSnapshotId()
	}
	if err := b.backend.Write(volume, 0, 10*block); err != nil {
		t.Fatal(err)
	}
	base := snap("base")
	if err := b.backend.Write(volume, 4*block, 1); err != nil {
		t.Fatal(err)
	}
	target := snap("target")

	all, largest, err := b.allocated(t, &csi.GetMetadataAllocatedRequest{SnapshotId: base, MaxResults: 4})
	if err != nil || len(all) != 10 || largest != 4 {
		t.Errorf("%d parts in messages of %d at most, %v; want 10 in messages of 4", len(all), largest, err)
	}
	from, _, err := b.allocated(t, &csi.GetMetadataAllocatedRequest{SnapshotId: base, StartingOffset: 8*block + 1})
	if err != nil || len(from) != 2 || from[0].GetByteOffset() != 8*block {
		t.Errorf("from an offset: %v %v, want the two parts that end after it", from, err)
	}
	from, _, err = b.allocated(t, &csi.GetMetadataAllocatedRequest{SnapshotId: base, StartingOffset: 8 * block})
	if err != nil || len(from) != 2 || from[0].GetByteOffset() != 8*block {
		t.Errorf("from the end of a part: %v %v, want the two parts after it", from, err)
	}
	from, _, err = b.allocated(t, &csi.GetMetadataAllocatedRequest{SnapshotId: base, StartingOffset: 1 << 30})
	if err != nil || len(from) != 0 {
		t.Errorf("from the end of the volume: %v %v, want nothing", from, err)
	}
	_, _, err = b.allocated(t, &csi.GetMetadataAllocatedRequest{SnapshotId: base, StartingOffset: 1<<30 + 1})
	expect(t, "an offset beyond the end", err, codes.OutOfRange, "starting_offset")
	_, _, err = b.allocated(t, &csi.GetMetadataAllocatedRequest{SnapshotId: "none"})
	expect(t, "no such snapshot", err, codes.NotFound)

	delta, err := b.metadata.GetMetadataDelta(ctx, &csi.GetMetadataDeltaRequest{BaseSnapshotId: base, TargetSnapshotId: target})
	if err != nil {
		t.Fatal(err)
	}
	message, err := delta.Recv()
	if err != nil || len(message.GetBlockMetadata()) != 1 || message.GetBlockMetadata()[0].GetByteOffset() != 4*block {
		t.Errorf("the difference is %v %v, want the block that was written", message, err)
	}
	if _, err := delta.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the difference: %v", err)
	}
}

// blocks tells what it is told to, and goes on whatever emit says.
type blocks struct {
	*kittest.Backend
	told []csikit.Blocks
}

func (s *blocks) AllocatedBlocks(_ context.Context, _ csikit.AllocatedRequest, emit func(csikit.Blocks) error) error {
	for _, blocks := range s.told {
		_ = emit(blocks)
	}
	return nil
}

func TestBlocksOfABackendAreChecked(t *testing.T) {
	t.Parallel()
	of := func(ranges ...csikit.BlockRange) csikit.Blocks {
		return csikit.Blocks{VolumeCapacityBytes: 1 << 30, Ranges: ranges}
	}
	for name, test := range map[string]struct {
		told  []csikit.Blocks
		parts int
		code  codes.Code
	}{
		"nothing":          {nil, 0, codes.OK},
		"side by side":     {[]csikit.Blocks{of(csikit.BlockRange{SizeBytes: 5}), of(csikit.BlockRange{OffsetBytes: 5, SizeBytes: 5})}, 2, codes.OK},
		"to the end":       {[]csikit.Blocks{of(csikit.BlockRange{SizeBytes: 1 << 30})}, 1, codes.OK},
		"overlap":          {[]csikit.Blocks{of(csikit.BlockRange{SizeBytes: 5}), of(csikit.BlockRange{OffsetBytes: 4, SizeBytes: 5})}, 0, codes.Internal},
		"out of order":     {[]csikit.Blocks{of(csikit.BlockRange{OffsetBytes: 9, SizeBytes: 5}, csikit.BlockRange{SizeBytes: 5})}, 0, codes.Internal},
		"empty":            {[]csikit.Blocks{of(csikit.BlockRange{})}, 0, codes.Internal},
		"beyond the end":   {[]csikit.Blocks{of(csikit.BlockRange{OffsetBytes: 1, SizeBytes: 1 << 30})}, 0, codes.Internal},
		"overflow":         {[]csikit.Blocks{of(csikit.BlockRange{OffsetBytes: 1 << 62, SizeBytes: 1 << 62})}, 0, codes.Internal},
		"no capacity":      {[]csikit.Blocks{{}}, 0, codes.Internal},
		"another capacity": {[]csikit.Blocks{of(), {VolumeCapacityBytes: 1}}, 0, codes.Internal},
	} {
		b := newBed(t, &blocks{kittest.NewBackend(), test.told}, nil)
		parts, _, err := b.allocated(t, &csi.GetMetadataAllocatedRequest{SnapshotId: "s"})
		expect(t, name, err, test.code)
		if len(parts) != test.parts {
			t.Errorf("%s: %d parts, want %d", name, len(parts), test.parts)
		}
	}
}

func TestMessagesOfAStreamAreBounded(t *testing.T) {
	t.Parallel()
	told := csikit.Blocks{VolumeCapacityBytes: 1 << 30}
	for i := range int64(10_000) {
		told.Ranges = append(told.Ranges, csikit.BlockRange{OffsetBytes: 2 * i, SizeBytes: 1})
	}
	b := newBed(t, &blocks{kittest.NewBackend(), []csikit.Blocks{told}}, nil)
	for _, maxResults := range []int32{0, 1 << 30} {
		parts, largest, err := b.allocated(t, &csi.GetMetadataAllocatedRequest{SnapshotId: "s", MaxResults: maxResults})
		if err != nil || len(parts) != 10_000 || largest > 4096 {
			t.Errorf("%d parts, at most %d in a message, %v", len(parts), largest, err)
		}
	}
}
