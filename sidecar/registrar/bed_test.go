package registrar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/utils/clock"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

const driverName = "driver.example.com"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a folder for the kubelet, one for the driver, and a driver.
type bed struct {
	*testing.T
	registry string // the kubelet's plugins_registry
	plugin   string // the driver's own folder
	config   Config
	env      *sidecar.Env
	log      *logText
	driver   *fakeDriver
}

func newBed(t *testing.T) *bed {
	t.Helper()
	// The name of a test would make the paths of sockets too long.
	top, err := os.MkdirTemp("", "r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	b := &bed{T: t, registry: filepath.Join(top, "reg"), plugin: filepath.Join(top, "plugin"), log: &logText{}}
	for _, folder := range []string{b.registry, b.plugin} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.config = Config{
		PluginRegistrationPath:  b.registry,
		KubeletRegistrationPath: filepath.Join(b.plugin, "csi.sock"),
		WatchInterval:           5 * time.Millisecond,
		Timeout:                 testWait,
		RegistrationTimeout:     testWait,
	}
	b.driver = &fakeDriver{t: t, path: b.config.KubeletRegistrationPath, name: driverName}
	b.driver.start()
	t.Cleanup(b.driver.stop)
	b.env = &sidecar.Env{
		Log:   slog.New(slog.NewTextHandler(b.log, nil)),
		Clock: clock.RealClock{},
	}
	b.connect()
	return b
}

// connect connects to the driver, which runs.
func (b *bed) connect() {
	b.Helper()
	driver, err := csiclient.Connect(b.Context(), csiclient.Config{Address: b.driver.path, NameOnly: true, Log: b.env.Log})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = driver.Close() })
	b.env.Driver = driver
}

func (b *bed) socketPath() string { return filepath.Join(b.registry, driverName+"-reg.sock") }
func (b *bed) markerPath() string { return filepath.Join(b.plugin, "registration") }

func (b *bed) registrar() *Registrar {
	b.Helper()
	r, err := New(b.env, b.config)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// running is a registrar that runs.
type running struct {
	*Registrar
	t      *testing.T
	cancel context.CancelFunc
	done   chan error
}

func (b *bed) start() *running {
	b.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	r := &running{Registrar: b.registrar(), t: b.T, cancel: cancel, done: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.done <- r.Run(ctx)
	}()
	b.Cleanup(func() { cancel(); <-ended })
	return r
}

// stop ends the registrar and gives its error.
func (r *running) stop() error {
	r.cancel()
	return r.wait()
}

// wait waits for the end of the registrar and gives its error.
func (r *running) wait() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(testWait):
		r.t.Fatal("Run does not return")
		return nil
	}
}

func exists(path string) error {
	_, err := os.Lstat(path)
	return err
}

func isGone(path string) error {
	if err := exists(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there: %w", path, err)
	}
	return nil
}

// fakeDriver is the identity service of a driver on a real socket.
type fakeDriver struct {
	csi.UnimplementedIdentityServer
	t       *testing.T
	path    string
	options []grpc.ServerOption

	mu       sync.Mutex
	name     string
	notReady bool
	// needs is the least time a call must leave it for an answer.
	needs  time.Duration
	server *grpc.Server
	served chan struct{}
}

func (d *fakeDriver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

func (d *fakeDriver) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d.needs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(!d.notReady)}, nil
}

func (d *fakeDriver) start() {
	d.t.Helper()
	listener, err := net.Listen("unix", d.path)
	if err != nil {
		d.t.Fatal(err)
	}
	server, served := grpc.NewServer(d.options...), make(chan struct{})
	csi.RegisterIdentityServer(server, d)
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	d.mu.Lock()
	d.server, d.served = server, served
	d.mu.Unlock()
}

// stop ends the driver, as a crash does.
func (d *fakeDriver) stop() {
	d.mu.Lock()
	server, served := d.server, d.served
	d.server = nil
	d.mu.Unlock()
	if server != nil {
		server.Stop()
		<-served
	}
}

func (d *fakeDriver) set(name string, notReady bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.name, d.notReady = name, notReady
}

// slowDown has calls fail that leave less time for an answer.
func (d *fakeDriver) slowDown(needs time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.needs = needs
}

// logText keeps what was logged.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
