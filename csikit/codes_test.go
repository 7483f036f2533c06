package csikit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
)

// refuser is a backend that refuses everything with one error.
type refuser struct {
	*kittest.Backend
	err error
}

func (r refuser) CreateVolume(context.Context, csikit.CreateVolumeRequest) (csikit.Volume, error) {
	return csikit.Volume{}, r.err
}

func (r refuser) DeleteVolume(context.Context, csikit.VolumeRequest) error { return r.err }

func (r refuser) AttachVolume(context.Context, csikit.AttachRequest) (map[string]string, error) {
	return nil, r.err
}

func (r refuser) DetachVolume(context.Context, csikit.DetachRequest) error { return r.err }

func (r refuser) ExpandVolume(context.Context, csikit.ExpandRequest) (csikit.Volume, error) {
	return csikit.Volume{}, r.err
}

func (r refuser) CreateSnapshot(context.Context, csikit.CreateSnapshotRequest) (csikit.Snapshot, error) {
	return csikit.Snapshot{}, r.err
}

func (r refuser) DeleteSnapshot(context.Context, csikit.SnapshotRequest) error { return r.err }

func (r refuser) CreateGroupSnapshot(context.Context, csikit.CreateGroupSnapshotRequest) (csikit.GroupSnapshot, error) {
	return csikit.GroupSnapshot{}, r.err
}

func (r refuser) DeleteGroupSnapshot(context.Context, csikit.GroupSnapshotRequest) error {
	return r.err
}

func (r refuser) ChangedBlocks(context.Context, csikit.ChangedRequest, func(csikit.Blocks) error) error {
	return r.err
}

// What a backend says becomes the code of the error tables of CSI, whatever the call.
//
// Source: CSI spec.md, the errors of each call.
func TestErrorsOfABackendHaveTheCodesOfTheTables(t *testing.T) {
	t.Parallel()
	const node = "node-1"
	mount, sized := writer(), &csi.CapacityRange{RequiredBytes: 1 << 40}
	calls := map[string]func(context.Context, *bed) error{
		"CreateVolume": func(ctx context.Context, b *bed) error {
			_, err := b.controller.CreateVolume(ctx, createRequest("v", mount))
			return err
		},
		"DeleteVolume": func(ctx context.Context, b *bed) error {
			_, err := b.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "v"})
			return err
		},
		"ControllerPublishVolume": func(ctx context.Context, b *bed) error {
			_, err := b.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: node, VolumeCapability: mount})
			return err
		},
		"ControllerUnpublishVolume": func(ctx context.Context, b *bed) error {
			_, err := b.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: "v", NodeId: node})
			return err
		},
		"ControllerExpandVolume": func(ctx context.Context, b *bed) error {
			_, err := b.controller.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: "v", CapacityRange: sized})
			return err
		},
		"CreateSnapshot": func(ctx context.Context, b *bed) error {
			_, err := b.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"})
			return err
		},
		"DeleteSnapshot": func(ctx context.Context, b *bed) error {
			_, err := b.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: "s"})
			return err
		},
		"CreateVolumeGroupSnapshot": func(ctx context.Context, b *bed) error {
			_, err := b.groups.CreateVolumeGroupSnapshot(ctx, &csi.CreateVolumeGroupSnapshotRequest{Name: "g", SourceVolumeIds: []string{"v"}})
			return err
		},
		"DeleteVolumeGroupSnapshot": func(ctx context.Context, b *bed) error {
			_, err := b.groups.DeleteVolumeGroupSnapshot(ctx, &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: "g"})
			return err
		},
		"GetMetadataDelta": func(ctx context.Context, b *bed) error {
			stream, err := b.metadata.GetMetadataDelta(ctx, &csi.GetMetadataDeltaRequest{BaseSnapshotId: "s", TargetSnapshotId: "u"})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	}
	for _, c := range []struct {
		says  error
		code  codes.Code
		calls []string
	}{
		{csikit.ErrInvalid, codes.InvalidArgument, []string{"CreateVolume", "ControllerExpandVolume", "DeleteSnapshot"}},
		{csikit.ErrNotFound, codes.NotFound, []string{
			"CreateVolume", "ControllerPublishVolume", "ControllerExpandVolume", "CreateSnapshot", "CreateVolumeGroupSnapshot", "GetMetadataDelta"}},
		{csikit.ErrExists, codes.AlreadyExists, []string{"CreateVolume", "ControllerPublishVolume", "CreateSnapshot", "CreateVolumeGroupSnapshot"}},
		{csikit.ErrExhausted, codes.ResourceExhausted, []string{"CreateVolume", "ControllerPublishVolume", "CreateSnapshot", "CreateVolumeGroupSnapshot"}},
		{csikit.ErrOutOfRange, codes.OutOfRange, []string{"CreateVolume", "ControllerExpandVolume", "GetMetadataDelta"}},
		{csikit.ErrInUse, codes.FailedPrecondition, []string{
			"DeleteVolume", "ControllerPublishVolume", "ControllerExpandVolume", "DeleteSnapshot", "DeleteVolumeGroupSnapshot"}},
		{csikit.ErrPrecondition, codes.FailedPrecondition, []string{"CreateVolumeGroupSnapshot", "GetMetadataDelta"}},
		{csikit.ErrBusy, codes.Aborted, []string{"CreateVolume", "ControllerUnpublishVolume", "CreateSnapshot", "DeleteVolumeGroupSnapshot"}},
		{csikit.ErrNotFound, codes.OK, []string{"DeleteVolume", "ControllerUnpublishVolume", "DeleteSnapshot", "DeleteVolumeGroupSnapshot"}},
	} {
		b := newBed(t, refuser{kittest.NewBackend(node), fmt.Errorf("told by the backend: %w", c.says)}, nil)
		for _, name := range c.calls {
			err := calls[name](within(t), b)
			if c.code == codes.OK {
				expect(t, name, err, codes.OK)
				continue
			}
			expect(t, fmt.Sprintf("%s: %v", name, c.says), err, c.code, "told by the backend")
		}
	}
}

// What is wrong with a request has the code of the tables, too.
func TestBadFieldsHaveTheCodesOfTheTables(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, readers{kittest.NewBackend()})
	ctx := within(t)
	_, _, err := b.allocated(t, &csi.GetMetadataAllocatedRequest{SnapshotId: "s", StartingOffset: -1})
	expect(t, "an offset before the beginning", err, codes.OutOfRange, "starting_offset")
	_, _, err = b.allocated(t, &csi.GetMetadataAllocatedRequest{SnapshotId: "s", MaxResults: -1})
	expect(t, "a negative number of results", err, codes.InvalidArgument, "max_results")
	_, err = b.nodes.NodeStageVolume(ctx, stage("v", writer()))
	expect(t, "stage in a mode the volume cannot do", err, codes.FailedPrecondition, "only read")
	_, err = b.nodes.NodePublishVolume(ctx, publish("v", writer()))
	expect(t, "publish in a mode the volume cannot do", err, codes.FailedPrecondition, "only read")
	_, err = b.nodes.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{VolumeId: "v", VolumePath: targetPath, VolumeCapability: writer()})
	expect(t, "expand in a mode the volume cannot do", err, codes.InvalidArgument, "only read")
	r := createRequest("v", writer())
	r.CapacityRange = &csi.CapacityRange{RequiredBytes: 2 << 30, LimitBytes: 1 << 30}
	_, err = b.controller.CreateVolume(ctx, r)
	expect(t, "a limit below what is required", err, codes.InvalidArgument, "limit_bytes")
	r.CapacityRange = &csi.CapacityRange{}
	_, err = b.controller.CreateVolume(ctx, r)
	expect(t, "a range that asks for nothing", err, codes.OK)
}

// readers is a backend of volumes that are only read.
type readers struct{ *kittest.Backend }

func (readers) CheckCapability(c csikit.Capability) error {
	if c.AccessMode != csikit.SingleNodeReaderOnly {
		return fmt.Errorf("%w: these volumes are only read", csikit.ErrInvalid)
	}
	return nil
}
