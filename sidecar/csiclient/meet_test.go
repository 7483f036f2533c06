package csiclient_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// oddDriver is a driver whose answers are not those of others.
type oddDriver struct {
	driver
	probe      func(context.Context) (*csi.ProbeResponse, error)
	controller func() (*csi.ControllerGetCapabilitiesResponse, error)
}

func (d *oddDriver) Probe(ctx context.Context, request *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	if d.probe == nil {
		return d.driver.Probe(ctx, request)
	}
	return d.probe(ctx)
}

func (d *oddDriver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return d.controller()
}

func serveAt(t *testing.T, path string, d interface {
	csi.IdentityServer
	csi.ControllerServer
}, options ...grpc.ServerOption,
) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	stop = sync.OnceFunc(func() { server.Stop(); <-done })
	t.Cleanup(stop)
	return stop
}

// The registrars of others never ask a driver whether it is ready, so one that
// cannot tell works with them.
func TestADriverThatCannotSayWhetherItIsReadyIsTaken(t *testing.T) {
	t.Parallel()
	path := socket(t)
	serveAt(t, path, &oddDriver{driver: driver{name: "one.example.com"}, probe: func(context.Context) (*csi.ProbeResponse, error) {
		return nil, status.Error(codes.Unimplemented, "")
	}})
	if d, _ := connect(t, csiclient.Config{Address: path}); d.Name() != "one.example.com" {
		t.Errorf("its name is %q", d.Name())
	}
}

// A driver that needs longer than the limit for an answer is met all the same:
// without it there is nothing else to do.
func TestASlowDriverIsGivenMoreTime(t *testing.T) {
	t.Parallel()
	path := socket(t)
	serveAt(t, path, &oddDriver{driver: driver{name: "one.example.com"}, probe: func(ctx context.Context) (*csi.ProbeResponse, error) {
		if end, _ := ctx.Deadline(); time.Until(end) < 50*time.Millisecond {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return &csi.ProbeResponse{}, nil
	}})
	connect(t, csiclient.Config{Address: path, Timeout: 20 * time.Millisecond})
}

// A node's driver may say that it has a controller, which answers somewhere else.
func TestWhoNeedsTheNameOnlyAsksForNothingElse(t *testing.T) {
	t.Parallel()
	path := socket(t)
	node := &oddDriver{
		driver: driver{name: "one.example.com", services: []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE}},
		controller: func() (*csi.ControllerGetCapabilitiesResponse, error) {
			return nil, status.Error(codes.FailedPrecondition, "this is a node")
		},
	}
	serveAt(t, path, node)
	d, _ := connect(t, csiclient.Config{Address: path, NameOnly: true})
	if want := []string{"Probe", "GetPluginInfo"}; d.Name() != "one.example.com" || !slices.Equal(node.called(), want) {
		t.Errorf("%q was asked for %q, want %q", d.Name(), node.called(), want)
	}
}

// Some drivers close connections that are old. That is no other run of them, and
// one that has started anew is.
func TestRunsOfADriverAreTold(t *testing.T) {
	t.Parallel()
	path := socket(t)
	stop := serveAt(t, path, &driver{name: "one.example.com"}, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 20 * time.Millisecond}))
	d, log := connect(t, csiclient.Config{Address: path})
	watch(t, d)
	until(t, "old connections are closed", func() bool { return strings.Count(log.String(), "The driver is back") >= 3 })
	if n := d.Runs(); n != 1 {
		t.Errorf("%d runs of a driver that never ended", n)
	}
	stop()
	serveAt(t, path, &driver{name: "one.example.com"})
	until(t, "another run is met", func() bool { return d.Runs() == 2 })
}
