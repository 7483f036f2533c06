package csikit_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
)

// callMax bounds every call of these tests.
const callMax = time.Minute

// bed is a driver over a backend and a node in memory, and its clients.
type bed struct {
	backend    *kittest.Backend
	node       *kittest.Node
	identity   csi.IdentityClient
	controller csi.ControllerClient
	groups     csi.GroupControllerClient
	metadata   csi.SnapshotMetadataClient
	nodes      csi.NodeClient
}

// newBed serves a driver. Backends that are nil are those in memory.
func newBed(t *testing.T, backend csikit.Backend, nodeBackend csikit.NodeBackend) *bed {
	t.Helper()
	b := &bed{backend: kittest.NewBackend("node-1", "node-2"), node: kittest.NewNode()}
	if backend == nil {
		backend = b.backend
	}
	if nodeBackend == nil {
		nodeBackend = b.backend
	}
	_, conn := kittest.Serve(t, csikit.Config{Backend: backend, NodeBackend: nodeBackend, Node: b.node})
	b.identity, b.controller = csi.NewIdentityClient(conn), csi.NewControllerClient(conn)
	b.groups, b.metadata, b.nodes = csi.NewGroupControllerClient(conn), csi.NewSnapshotMetadataClient(conn), csi.NewNodeClient(conn)
	return b
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callMax)
	t.Cleanup(cancel)
	return ctx
}

// expect compares code and text of an error.
func expect(t *testing.T, what string, err error, code codes.Code, texts ...string) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("%s: %v, want %s", what, err, code)
		return
	}
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q in it", what, err, text)
		}
	}
}

func capability(mode csi.VolumeCapability_AccessMode_Mode, fileSystem string, flags ...string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fileSystem, MountFlags: flags}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

func writer() *csi.VolumeCapability {
	return capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "")
}

func block() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

func createRequest(name string, capabilities ...*csi.VolumeCapability) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: capabilities, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30}}
}

// create makes a volume and returns its id.
func (b *bed) create(t *testing.T, name string) string {
	t.Helper()
	answer, err := b.controller.CreateVolume(within(t), createRequest(name, writer()))
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetVolume().GetVolumeId()
}

// closes makes an OnListening that closes a channel.
func closes(done chan struct{}) func(net.Addr) { return func(net.Addr) { close(done) } }
