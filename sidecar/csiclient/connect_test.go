package csiclient_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// driver is one run of a driver.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	name     string
	services []csi.PluginCapability_Service_Type
	rpcs     []csi.ControllerServiceCapability_RPC_Type
	notReady int // so many probes

	mu    sync.Mutex
	calls []string
}

func (d *driver) call(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, name)
}

func (d *driver) called() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	d.call("Probe")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notReady--
	switch {
	case d.notReady < 0:
		return &csi.ProbeResponse{}, nil
	case d.notReady%2 == 0:
		return nil, status.Error(codes.FailedPrecondition, "not yet")
	}
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(false)}, nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	d.call("GetPluginInfo")
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	answer := &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: &csi.PluginCapability_VolumeExpansion_{
		VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE},
	}}, {}}}
	for _, one := range d.services {
		answer.Capabilities = append(answer.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: one}}})
	}
	return answer, nil
}

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	answer := &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{}}}
	for _, one := range d.rpcs {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: one}}})
	}
	return answer, nil
}

func (d *driver) DeleteVolume(context.Context, *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return nil, status.Error(codes.Internal, "no luck")
}

// serve runs a driver at a socket until the function given back is called.
func (d *driver) serve(t *testing.T, path string) (stop func()) {
	t.Helper()
	return serveAt(t, path, d)
}

func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") // short, as sockets need
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "csi.sock")
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(data)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func connect(t *testing.T, config csiclient.Config) (*csiclient.Driver, *lines) {
	t.Helper()
	log := &lines{}
	config.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	d, err := csiclient.Connect(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, log
}

func until(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !isSo(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within 30 s: " + what)
		}
	}
}

func TestADriverIsWaitedForAndAskedWhatItIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		services []csi.PluginCapability_Service_Type
		rpcs     int
	}{
		{"controller", []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE}, 1},
		{"node only", nil, 0},
		// It claims a service that it does not have.
		{"no group controller", []csi.PluginCapability_Service_Type{
			csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE,
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := &driver{name: "one.example.com", services: c.services, notReady: 2, rpcs: []csi.ControllerServiceCapability_RPC_Type{
				csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
			}}
			path := socket(t)
			d.serve(t, path)
			got, log := connect(t, csiclient.Config{Address: "unix://" + path})
			info := got.Info()
			if got.Name() != "one.example.com" || info.VendorVersion != "1" || len(info.Controller) != c.rpcs || len(info.GroupController) != 0 ||
				!info.Expansion[csi.PluginCapability_VolumeExpansion_ONLINE] || len(info.Plugin) != len(c.services) {
				t.Errorf("info: %+v", info)
			}
			if n := strings.Count(log.String(), "The driver is waited for"); n != 1 {
				t.Errorf("the wait is logged %d times:\n%s", n, log)
			}
		})
	}
}

func TestTheWaitForADriverEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	log := &lines{}
	ended := make(chan error, 1)
	path := socket(t)
	go func() {
		_, err := csiclient.Connect(ctx, csiclient.Config{Address: path, Log: slog.New(slog.NewTextHandler(log, nil))})
		ended <- err
	}()
	until(t, "the wait is logged", func() bool { return strings.Contains(log.String(), "waited for") })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path) {
		t.Errorf("end: %v", err)
	}
	if _, err := csiclient.Connect(t.Context(), csiclient.Config{Address: "ftp://x"}); err == nil || !strings.Contains(err.Error(), "ftp") {
		t.Errorf("address: %v", err)
	}
}

func TestCallsAreCountedAndLoggedWithoutSecrets(t *testing.T) {
	t.Parallel()
	path := socket(t)
	(&driver{name: "one.example.com"}).serve(t, path)
	counter := metrics.NewCSIMetricsManagerForSidecar("")
	d, log := connect(t, csiclient.Config{Address: path, Metrics: counter})
	_, err := csi.NewControllerClient(d.Conn()).DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "v-17", Secrets: map[string]string{"key": "hush-hush"}})
	if status.Code(err) != codes.Internal {
		t.Errorf("call: %v", err)
	}
	if text := log.String(); strings.Contains(text, "hush-hush") || !strings.Contains(text, "v-17") || !strings.Contains(text, "Internal") {
		t.Errorf("log:\n%s", text)
	}
	families, err := counter.GetRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found bool
	for _, family := range families {
		for _, m := range family.GetMetric() {
			text := m.String()
			found = found || family.GetName() == "csi_sidecar_operations_seconds" && strings.Contains(text, "/csi.v1.Controller/DeleteVolume") &&
				strings.Contains(text, "one.example.com") && strings.Contains(text, "Internal")
		}
	}
	if !found {
		t.Errorf("not counted: %v", families)
	}
}
