package resizer_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// backend is a driver that does what it is asked, and sees that calls for one
// volume never meet.
type backend struct {
	mu         sync.Mutex
	sizeBytes  map[string]int64
	parameters map[string]map[string]string
	busy       map[string]bool
	met        bool
	// node says that the node has to grow the file system.
	node bool
}

func newBackend(b *sidecartest.Bed) *backend {
	d := &backend{sizeBytes: map[string]int64{}, parameters: map[string]map[string]string{}, busy: map[string]bool{}}
	b.Driver.On(expand, d.expand)
	b.Driver.On(alter, d.modify)
	return d
}

// alone reports a call that meets another for the same volume.
func (d *backend) alone(id string) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[id] {
		d.met = true
	}
	d.busy[id] = true
	return func() { d.mu.Lock(); defer d.mu.Unlock(); d.busy[id] = false }
}

func (d *backend) haveMet() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.met
}

func (d *backend) expand(_ context.Context, message proto.Message) (proto.Message, error) {
	request := message.(*csi.ControllerExpandVolumeRequest)
	defer d.alone(request.VolumeId)()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sizeBytes[request.VolumeId] = max(d.sizeBytes[request.VolumeId], request.CapacityRange.RequiredBytes)
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: d.sizeBytes[request.VolumeId], NodeExpansionRequired: d.node}, nil
}

func (d *backend) modify(_ context.Context, message proto.Message) (proto.Message, error) {
	request := message.(*csi.ControllerModifyVolumeRequest)
	defer d.alone(request.VolumeId)()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parameters[request.VolumeId] = request.MutableParameters
	return &csi.ControllerModifyVolumeResponse{}, nil
}

func (d *backend) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprint(d.sizeBytes, d.parameters)
}

// lost is a call whose end is not known.
var lost = sidecartest.Fail(codes.DeadlineExceeded, "too late")

// grown is an answer of a size.
func grown(sizeBytes int64, node bool) sidecartest.Answer {
	return sidecartest.Reply(&csi.ControllerExpandVolumeResponse{CapacityBytes: sizeBytes, NodeExpansionRequired: node})
}
