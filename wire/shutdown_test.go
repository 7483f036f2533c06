package wire_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
	"github.com/csi-windows/csi-windows/wire/wiretest"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
)

// startDisk starts a server of disk/v1 that the test stops itself.
func startDisk(t *testing.T, h *wiretest.Host) (*wire.Server, wire.ServerConfig) {
	t.Helper()
	cfg := wire.ServerConfig{Host: h, Place: wiretest.Place(t), APIs: []wire.API{diskV1}}
	server, err := wire.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server, cfg
}

// Calls in flight finish within the grace time.
func TestShutdownWaitsForCalls(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	h := &wiretest.Host{Before: func(context.Context, string) error {
		close(entered)
		<-leave
		return nil
	}}
	server, cfg := startDisk(t, h)
	conn := dial(t, cfg.Place, diskV1)
	result := make(chan error, 1)
	go func() { result <- rescan(t.Context(), conn) }()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- server.Shutdown(t.Context()) }()
	waitUntil(t, "the pipe takes no more callers", func() bool {
		// On Windows the name lives as long as a connection, and is busy.
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		probe, err := cfg.Place.Dial(ctx, "disk", "v1")
		if err == nil {
			_ = probe.Close()
		}
		return err != nil
	})
	close(leave)
	if err := <-result; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	wantCode(t, rescan(t.Context(), conn), codes.Unavailable)
}

// Calls that outlast the grace time get Unavailable, and their contexts end.
func TestShutdownCutsCallsOff(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	h := &wiretest.Host{Before: func(ctx context.Context, _ string) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	}}
	server, cfg := startDisk(t, h)
	conn := dial(t, cfg.Place, diskV1)
	result := make(chan error, 1)
	go func() { result <- rescan(t.Context(), conn) }()
	<-entered
	grace, cancel := context.WithCancel(t.Context())
	cancel()
	err := server.Shutdown(grace)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "pipe csi-proxy-disk-v1: 1 calls were cut off") {
		t.Errorf("shutdown: %v", err)
	}
	wantCode(t, <-result, codes.Unavailable)
}

// Neither a silent connection, nor one that sent half a request, nor an open
// reflection stream holds a stopping server back.
func TestShutdownIgnoresIdlePeers(t *testing.T) {
	t.Parallel()
	server, cfg := startDisk(t, &wiretest.Host{})
	silent, err := cfg.Place.Dial(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	conn := dial(t, cfg.Place, diskV1)
	if err := rescan(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}
	if err := stream.Send(ask); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if _, err := stream.Recv(); err == nil {
		t.Error("the stream outlived its server")
	}
	// The client that never spoke still holds its end. The names are free all the same.
	_ = conn.Close()
	wiretest.Serve(t, cfg)
}

// A host that does not heed its context is named, and Shutdown still returns.
func TestShutdownNamesACallThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	defer close(leave)
	h := &wiretest.Host{Before: func(context.Context, string) error {
		close(entered)
		<-leave
		return nil
	}}
	server, cfg := startDisk(t, h)
	conn := dial(t, cfg.Place, diskV1)
	go func() { _ = conn.Invoke(t.Context(), rescanPath, &wirepb.RescanRequest{}, &wirepb.RescanResponse{}) }()
	<-entered
	grace, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Shutdown(grace); err == nil || !strings.Contains(err.Error(), "1 calls do not end") {
		t.Errorf("shutdown: %v", err)
	}
}

// waitUntil waits for a condition.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitTimeout); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", waitTimeout, what)
		}
	}
}
