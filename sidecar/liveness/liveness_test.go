package liveness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/csi-windows/csi-windows/internal/freeport"
	"github.com/csi-windows/csi-windows/sidecar"
)

// testWait bounds waits that a good run ends in milliseconds.
const testWait = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeDriver is the identity service of a driver on a real socket.
type fakeDriver struct {
	csi.UnimplementedIdentityServer
	t      *testing.T
	path   string
	probe  atomic.Pointer[func(context.Context) (*csi.ProbeResponse, error)]
	probes atomic.Int64
	server *grpc.Server
	served chan struct{}
}

func newDriver(t *testing.T) *fakeDriver {
	t.Helper()
	// The name of a test would make the path too long.
	top, err := os.MkdirTemp("", "l")
	if err != nil {
		t.Fatal(err)
	}
	d := &fakeDriver{t: t, path: filepath.Join(top, "csi.sock")}
	d.answer(func(context.Context) (*csi.ProbeResponse, error) { return &csi.ProbeResponse{}, nil })
	t.Cleanup(func() { d.stop(); _ = os.RemoveAll(top) })
	return d
}

func (d *fakeDriver) answer(probe func(context.Context) (*csi.ProbeResponse, error)) {
	d.probe.Store(&probe)
}

func (d *fakeDriver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "driver.example.com", VendorVersion: "1"}, nil
}

func (d *fakeDriver) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	d.probes.Add(1)
	return (*d.probe.Load())(ctx)
}

func (d *fakeDriver) start() {
	d.t.Helper()
	listener, err := net.Listen("unix", d.path)
	if err != nil {
		d.t.Fatal(err)
	}
	server, served := grpc.NewServer(), make(chan struct{})
	d.server, d.served = server, served
	csi.RegisterIdentityServer(server, d)
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
}

func (d *fakeDriver) stop() {
	if d.server != nil {
		d.server.Stop()
		<-d.served
		d.server = nil
	}
}

// running is a liveness probe that runs.
type running struct {
	*Liveness
	t    *testing.T
	base string // URL without a path
	stop func() error
}

func start(t *testing.T, config Config) *running {
	t.Helper()
	if config.HTTPEndpoint == "" {
		config.HTTPEndpoint = freeport.Address(t)
	}
	l, err := New(&sidecar.Env{Log: slog.New(slog.DiscardHandler)}, config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(testWait):
			return errors.New("Run does not return")
		}
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	r := &running{l, t, "http://" + config.HTTPEndpoint, stop}
	r.eventually(func() error { _, _, err := r.get("/none"); return err })
	return r
}

func (r *running) get(path string) (code int, text string, err error) {
	answer, err := http.Get(r.base + path) //nolint:noctx // bounded by the server
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

func (r *running) eventually(check func() error) {
	r.t.Helper()
	deadline := time.Now().Add(testWait)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// expect asks once.
func (r *running) expect(code int, text string) {
	r.t.Helper()
	gotCode, gotText, err := r.get("/healthz")
	if err != nil || gotCode != code || !strings.Contains(gotText, text) {
		r.t.Errorf("it answers %d %q, %v; not %d %q", gotCode, gotText, err, code, text)
	}
}

func TestC075_WhatADriverAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		probe func(context.Context) (*csi.ProbeResponse, error)
		code  int
		text  string
	}{
		"ready": {func(context.Context) (*csi.ProbeResponse, error) {
			return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
		}, 200, "ok"},
		"nothing": {func(context.Context) (*csi.ProbeResponse, error) { return &csi.ProbeResponse{}, nil }, 200, "ok"},
		"not ready": {func(context.Context) (*csi.ProbeResponse, error) {
			return &csi.ProbeResponse{Ready: wrapperspb.Bool(false)}, nil
		}, 500, "not ready"},
		"an error": {func(context.Context) (*csi.ProbeResponse, error) {
			return nil, status.Error(codes.FailedPrecondition, "no disk")
		}, 500, "no disk"},
		"an error for terminals": {func(context.Context) (*csi.ProbeResponse, error) {
			return nil, status.Error(codes.Internal, "\x1b[2Jgone"+strings.Repeat(" and gone", 1<<20))
		}, 500, "?[2Jgone and gone"},
		"unimplemented": {func(context.Context) (*csi.ProbeResponse, error) { return nil, status.Error(codes.Unimplemented, "") }, 500, "Unimplemented"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			d.answer(test.probe)
			d.start()
			start(t, Config{CSIAddress: d.path, ProbeTimeout: testWait}).expect(test.code, test.text)
		})
	}
}

// A server goes on answering on connections that it has, while nobody else can
// reach it.
func TestC075_SocketDeletedWhileConnected(t *testing.T) {
	d := newDriver(t)
	d.start()
	r := start(t, Config{CSIAddress: "unix://" + d.path, ProbeTimeout: testWait})
	r.expect(200, "ok")
	if err := os.Remove(d.path); err != nil {
		t.Fatal(err)
	}
	r.expect(500, d.path)
}

func TestC075_DriverThatCrashesAgainAndAgain(t *testing.T) {
	d := newDriver(t)
	r := start(t, Config{CSIAddress: d.path, ProbeTimeout: testWait})
	r.expect(500, "driver") // it starts before its driver
	for range 50 {
		d.start()
		r.expect(200, "ok")
		d.stop()
		r.expect(500, d.path)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestC075_SlowDriverIsAnErrorAtTheLimit(t *testing.T) {
	d := newDriver(t)
	d.answer(func(ctx context.Context) (*csi.ProbeResponse, error) { <-ctx.Done(); return nil, ctx.Err() })
	d.start()
	r := start(t, Config{CSIAddress: d.path, ProbeTimeout: 20 * time.Millisecond})
	r.expect(500, "DeadlineExceeded")
	// One that takes connections and does nothing with them is no better.
	d.stop()
	listener, err := net.Listen("unix", d.path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	r.expect(500, "DeadlineExceeded")
}

// However many ask, a driver that hangs has one probe.
func TestRequestsShareAProbe(t *testing.T) {
	d := newDriver(t)
	release := make(chan struct{})
	d.answer(func(ctx context.Context) (*csi.ProbeResponse, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return &csi.ProbeResponse{}, nil
	})
	d.start()
	r := start(t, Config{CSIAddress: d.path, ProbeTimeout: testWait})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { r.expect(200, "ok") })
	}
	r.eventually(func() error {
		if n := d.probes.Load(); n != 1 {
			return fmt.Errorf("%d probes", n)
		}
		return nil
	})
	// Who gives up does not take the probe from the others.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for range 50 {
		all.Go(func() { _ = r.Check(t.Context()) })
	}
	close(release)
	all.Wait()
	// Requests that came after the answer have made a probe of their own.
	if n := d.probes.Load(); n > 100 {
		t.Errorf("%d probes", n)
	}
	before := d.probes.Load()
	r.expect(200, "ok")
	if n := d.probes.Load() - before; n != 1 {
		t.Errorf("%d probes for a new request", n)
	}
}

// Run ends while a driver hangs.
func TestRunEndsDuringAProbe(t *testing.T) {
	d := newDriver(t)
	d.answer(func(ctx context.Context) (*csi.ProbeResponse, error) { <-ctx.Done(); return nil, ctx.Err() })
	d.start()
	r := start(t, Config{CSIAddress: d.path, ProbeTimeout: time.Hour})
	asked := make(chan struct{})
	go func() { defer close(asked); _, _, _ = r.get("/healthz") }()
	r.eventually(func() error {
		if d.probes.Load() == 0 {
			return errors.New("not asked yet")
		}
		return nil
	})
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	<-asked
}
