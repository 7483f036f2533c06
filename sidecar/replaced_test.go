package sidecar_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// identity is a driver that says who it is and whether it knows topology.
type identity struct {
	csi.UnimplementedIdentityServer
	name        string
	hasTopology bool
}

func (i *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (i *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.name}, nil
}

func (i *identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	answer := &csi.GetPluginCapabilitiesResponse{}
	if i.hasTopology {
		answer.Capabilities = append(answer.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS},
		}})
	}
	return answer, nil
}

// serve runs the driver at a socket until the function given back is called.
func (i *identity) serve(t *testing.T, path string) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, i)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	stop = sync.OnceFunc(func() { server.Stop(); <-done })
	t.Cleanup(stop)
	return stop
}

// Components start anew when the driver that is back can something else, with
// their leases kept and nothing counted as a failure; another driver in its
// place ends the process.
func TestADriverThatIsReplaced(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "csi") // short, as sockets need
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "csi.sock")
	stop := (&identity{name: "one.example.com"}).serve(t, path)
	b := sidecartest.New(t, csiclient.Info{})
	driver, err := csiclient.Connect(t.Context(), csiclient.Config{Address: path, Log: b.Env.Log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Close() })
	one := &part{name: "one", run: untilTold}
	r := start(t, b, func(c *sidecar.ProcessConfig) { c.Driver = driver }, sidecar.Supervised{Component: one, Lease: "own"})
	r.until("it runs", one.isLive)
	stop()
	stop = (&identity{name: "one.example.com"}).serve(t, path)
	r.until("the driver is back", func() bool { return strings.Contains(r.Log(), "The driver is back") })
	if one.started() != 1 {
		t.Errorf("the same driver, and it was started %d times", one.started())
	}
	stop()
	stop = (&identity{name: "one.example.com", hasTopology: true}).serve(t, path)
	r.until("it is started again", func() bool { return one.started() == 2 && one.isLive() })
	if transitions := r.lease("own").Spec.LeaseTransitions; transitions != nil && *transitions != 0 {
		t.Errorf("the lease changed hands: %d", *transitions)
	}
	if health := r.config.Health.Components(); health[0].Failures != 0 {
		t.Errorf("a failure: %+v", health)
	}
	stop()
	(&identity{name: "two.example.com"}).serve(t, path)
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "two.example.com") || one.isLive() {
		t.Errorf("another driver: %v", err)
	}
}
