package csikit_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
)

const (
	stagingPath = `C:\var\lib\kubelet\plugins\kit\globalmount`
	targetPath  = `C:\var\lib\kubelet\pods\p\mount`
)

func stage(id string, c *csi.VolumeCapability) *csi.NodeStageVolumeRequest {
	return &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: stagingPath, VolumeCapability: c}
}

func publish(id string, c *csi.VolumeCapability) *csi.NodePublishVolumeRequest {
	return &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: stagingPath, TargetPath: targetPath, VolumeCapability: c}
}

// lastOf is the last request of a type the node got.
func lastOf[R any](t *testing.T, n *kittest.Node) R {
	t.Helper()
	for _, request := range slices.Backward(n.Requests()) {
		if r, ok := request.(R); ok {
			return r
		}
	}
	t.Fatalf("the node got no %T", *new(R))
	return *new(R)
}

func TestStageSaysAllThatTheNodeNeeds(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	id := b.create(t, "v")
	r := stage(id, capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, "refs"))
	r.VolumeContext = map[string]string{
		csikit.ContextFileSystem: "FAT32", csikit.ContextClusterBytes: "65536", csikit.ContextLabel: "data"}
	if _, err := b.nodes.NodeStageVolume(within(t), r); err != nil {
		t.Fatal(err)
	}
	got := lastOf[node.StageRequest](t, b.node)
	if got.Source.Disk == nil || !strings.HasSuffix(got.Source.Disk.Page83, id) {
		t.Errorf("the source is %+v", got.Source.Disk)
	}
	want := node.StageRequest{
		VolumeID: id, StagingPath: stagingPath, Source: got.Source,
		Format: host.FormatOptions{FileSystem: "ReFS", ClusterBytes: 65536, Label: "data"}, // the request's goes before the context's
		Access: node.Access{SingleWriter: true}, Grow: true,
	}
	if got != want {
		t.Errorf("the node got\n %+v, want\n %+v", got, want)
	}
}

func TestReadOnlyInEveryForm(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	for name, test := range map[string]struct {
		capability *csi.VolumeCapability
		readonly   bool // the field of NodePublishVolume
		want       node.Access
	}{
		"writer":           {writer(), false, node.Access{}},
		"single reader":    {capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY, ""), false, node.Access{ReadOnly: true}},
		"many readers":     {capability(csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, ""), false, node.Access{ReadOnly: true}},
		"flag":             {capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "", "ro"), false, node.Access{ReadOnly: true}},
		"other flag":       {capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "", "rw"), false, node.Access{}},
		"field of publish": {writer(), true, node.Access{}},
	} {
		id := b.create(t, name)
		if _, err := b.nodes.NodeStageVolume(within(t), stage(id, test.capability)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		staged := lastOf[node.StageRequest](t, b.node)
		if staged.Access != test.want || staged.Grow == test.want.ReadOnly {
			t.Errorf("%s: staged with %+v, grow=%t", name, staged.Access, staged.Grow)
		}
		r := publish(id, test.capability)
		r.Readonly = test.readonly
		if _, err := b.nodes.NodePublishVolume(within(t), r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := lastOf[node.PublishRequest](t, b.node); got.Access != test.want || got.ReadOnly != test.readonly {
			t.Errorf("%s: published with %+v, readOnly=%t", name, got.Access, got.ReadOnly)
		}
		// A reader grows nothing.
		before := len(b.node.Requests())
		if _, err := b.nodes.NodeExpandVolume(within(t), &csi.NodeExpandVolumeRequest{
			VolumeId: id, VolumePath: targetPath, VolumeCapability: test.capability}); err != nil {
			t.Errorf("%s: expand: %v", name, err)
		}
		if asked := len(b.node.Requests()) > before; asked == test.want.ReadOnly {
			t.Errorf("%s: the node was asked to expand: %t", name, asked)
		}
		b.takeAway(t, id)
	}
}

func (b *bed) takeAway(t *testing.T, id string) {
	t.Helper()
	for range 2 { // C068: the second time as well
		_, err := b.nodes.NodeUnpublishVolume(within(t), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: targetPath})
		expect(t, "unpublish", err, codes.OK)
		_, err = b.nodes.NodeUnstageVolume(within(t), &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: stagingPath})
		expect(t, "unstage", err, codes.OK)
	}
}

func TestBadRequestsDoNotReachTheNode(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	id := b.create(t, "v")
	for name, test := range map[string]struct {
		capability *csi.VolumeCapability
		context    map[string]string
		text       string
	}{
		"C067 raw block":  {block(), nil, "Windows cannot hand a raw block device to a container"},
		"C069 ext4":       {capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "ext4"), nil, "fs_type"},
		"C069 of context": {writer(), map[string]string{csikit.ContextFileSystem: "xfs"}, "volume_context"},
		"cluster size":    {writer(), map[string]string{csikit.ContextClusterBytes: "-1"}, csikit.ContextClusterBytes},
		"mount flag":      {capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "", "vers=3.0"), nil, `only "ro" and "rw"`},
	} {
		r := stage(id, test.capability)
		r.VolumeContext = test.context
		_, err := b.nodes.NodeStageVolume(within(t), r)
		expect(t, name+": stage", err, codes.InvalidArgument, test.text)
		if test.context == nil {
			_, err = b.nodes.NodePublishVolume(within(t), publish(id, test.capability))
			expect(t, name+": publish", err, codes.InvalidArgument, test.text)
		}
	}
	if got := b.node.Requests(); len(got) != 0 {
		t.Errorf("the node got %+v", got)
	}
}

func TestC068_UnknownAndUnstagedVolumes(t *testing.T) {
	t.Parallel()
	memory := kittest.NewBackend()
	for name, backend := range map[string]csikit.Backend{"with a controller": memory, "node alone": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := kittest.NewNode()
			_, conn := kittest.Serve(t, csikit.Config{Backend: backend, NodeBackend: memory, Node: n})
			nodes, ctx := csi.NewNodeClient(conn), within(t)
			made, err := memory.CreateVolume(ctx, csikit.CreateVolumeRequest{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			_, err = nodes.NodeStageVolume(ctx, stage("unknown", writer()))
			expect(t, "stage of an unknown volume", err, codes.NotFound)
			_, err = nodes.NodePublishVolume(ctx, publish("unknown", writer()))
			expect(t, "publish of an unknown volume", err, codes.NotFound)
			_, err = nodes.NodePublishVolume(ctx, publish(made.ID, writer()))
			expect(t, "publish without stage", err, codes.FailedPrecondition, "not staged")
			r := publish(made.ID, writer())
			r.StagingTargetPath = ""
			_, err = nodes.NodePublishVolume(ctx, r)
			expect(t, "publish without staging path", err, codes.FailedPrecondition, "staging_target_path")
			_, err = nodes.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: "unknown", StagingTargetPath: stagingPath})
			expect(t, "unstage of an unknown volume", err, codes.OK)
			_, err = nodes.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: "unknown", TargetPath: targetPath})
			expect(t, "unpublish of an unknown volume", err, codes.OK)
		})
	}
}

func TestErrorsOfTheNodeGetTheCodesOfCSI(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	id := b.create(t, "v")
	var kind host.Kind
	b.node.Before = func(_ context.Context, method, _ string) error {
		return &host.Error{Op: method, Kind: kind, Cause: errors.New("as the test says")}
	}
	for _, test := range []struct {
		kind                    host.Kind
		stage, stats, expandOut codes.Code
	}{
		{host.KindInvalid, codes.InvalidArgument, codes.InvalidArgument, codes.OutOfRange},
		{host.KindNotFound, codes.NotFound, codes.NotFound, codes.NotFound},
		{host.KindExists, codes.AlreadyExists, codes.AlreadyExists, codes.AlreadyExists},
		{host.KindBusy, codes.Aborted, codes.Aborted, codes.Aborted},
		// A path without a volume has none; a disk that has not grown yet may later.
		{host.KindPrecondition, codes.FailedPrecondition, codes.NotFound, codes.Unavailable},
		{host.KindTimeout, codes.DeadlineExceeded, codes.DeadlineExceeded, codes.DeadlineExceeded},
	} {
		kind = test.kind
		_, err := b.nodes.NodeStageVolume(within(t), stage(id, writer()))
		expect(t, "stage", err, test.stage, "as the test says")
		_, err = b.nodes.NodeGetVolumeStats(within(t), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: targetPath})
		expect(t, "stats", err, test.stats, "as the test says")
		_, err = b.nodes.NodeExpandVolume(within(t), &csi.NodeExpandVolumeRequest{
			VolumeId: id, VolumePath: targetPath, CapacityRange: &csi.CapacityRange{LimitBytes: 1 << 30}})
		expect(t, "expand", err, test.expandOut, "as the test says")
	}
}

// sources answers NodeSource with what it holds.
type sources struct {
	csikit.NodeBackend
	source node.Source
	err    error
}

func (s *sources) NodeSource(context.Context, csikit.NodeSourceRequest) (node.Source, error) {
	return s.source, s.err
}

func TestSourcesAreChecked(t *testing.T) {
	t.Parallel()
	disk, smb := &node.DiskSource{Page83: "x"}, &node.SMBSource{Path: `\\s\s`}
	for name, test := range map[string]struct {
		source         node.Source
		err            error
		stage, unstage codes.Code
	}{
		"one":         {node.Source{Disk: disk}, nil, codes.OK, codes.OK},
		"none":        {node.Source{}, nil, codes.Internal, codes.OK},
		"two":         {node.Source{Disk: disk, SMB: smb}, nil, codes.Internal, codes.Internal},
		"unknown":     {node.Source{}, csikit.ErrNotFound, codes.NotFound, codes.OK},
		"bad id":      {node.Source{}, csikit.ErrInvalid, codes.InvalidArgument, codes.OK},
		"unavailable": {node.Source{}, csikit.ErrUnavailable, codes.Unavailable, codes.Unavailable},
	} {
		b := newBed(t, nil, &sources{source: test.source, err: test.err})
		_, err := b.nodes.NodeStageVolume(within(t), stage("v", writer()))
		expect(t, name+": stage", err, test.stage)
		_, err = b.nodes.NodeUnstageVolume(within(t), &csi.NodeUnstageVolumeRequest{VolumeId: "v", StagingTargetPath: stagingPath})
		expect(t, name+": unstage", err, test.unstage)
	}
}

func TestNodeInfoAndHealth(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, nil)
	info, err := b.nodes.NodeGetInfo(within(t), &csi.NodeGetInfoRequest{})
	if err != nil || info.GetNodeId() != "node-1" || info.GetMaxVolumesPerNode() != kittest.VolumesPerNodeMax ||
		info.GetAccessibleTopology().GetSegments()[kittest.TopologyKey] != kittest.Zone {
		t.Errorf("NodeGetInfo: %v %v", info, err)
	}
	id := b.create(t, "v")
	b.backend.SetHealth(id, node.HealthCondition{Status: node.HealthInaccessible, Reason: "Gone", Message: "the disk is gone"})
	for name, path := range map[string]string{"no path": "", "a path": targetPath} {
		health, err := b.nodes.NodeGetVolumeHealth(within(t), &csi.NodeGetVolumeHealthRequest{VolumeId: id, VolumePublishPath: path})
		statuses := health.GetVolumeHealth().GetHealthStatuses()
		if err != nil || len(statuses) != 1 || statuses[0].GetStatus() != csi.VolumeHealthErrorType_INACCESSIBLE {
			t.Errorf("%s: NodeGetVolumeHealth: %v %v", name, health, err)
		}
	}
	_, err = b.nodes.NodeGetVolumeHealth(within(t), &csi.NodeGetVolumeHealthRequest{VolumeId: "unknown"})
	expect(t, "health of an unknown volume", err, codes.NotFound)
}
