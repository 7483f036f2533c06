package wire_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// connected is a connection on which a call was answered, so that the time of the
// next one is all its own.
func connected(t *testing.T, place pipe.Place) *grpc.ClientConn {
	t.Helper()
	conn := dial(t, place, diskV1)
	if err := rescan(t.Context(), conn); err != nil { // waits for its answer: no Leave
		t.Fatal(err)
	}
	return conn
}

// A call that goes on after its client has gone takes nobody's place on the pipe.
func TestHungCallTakesNoPlace(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	entered := make(chan struct{}, 1)
	h := &wiretest.Host{Before: func(ctx context.Context, _ string) error {
		caller, ok := host.CallerOf(ctx)
		if !ok {
			t.Error("nobody calls")
		}
		if caller.Leave == nil {
			return nil
		}
		entered <- struct{}{}
		<-ctx.Done()
		caller.Leave()
		<-release
		return nil
	}}
	place := serveDisk(t, wire.ServerConfig{Host: h, Limits: wire.Limits{MaxConcurrentCallsPerPipe: 1}})
	conn := connected(t, place)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wantCode(t, rescan(ctx, conn), codes.DeadlineExceeded)
	<-entered
	waitUntil(t, "the place of the hung call is free", func() bool {
		return rescan(t.Context(), conn) == nil // waits for its answer: no Leave
	})
}

// A call whose client has gone is nobody's, so a stopping server does not use up its
// grace time on it.
func TestShutdownWaitsForNoDesertedCall(t *testing.T) {
	t.Parallel()
	release, gone := make(chan struct{}), make(chan struct{})
	defer close(release)
	h := &wiretest.Host{Before: func(ctx context.Context, _ string) error {
		caller, _ := host.CallerOf(ctx)
		if caller.Leave == nil {
			return nil
		}
		<-ctx.Done()
		caller.Leave()
		close(gone)
		<-release
		return nil
	}}
	server, cfg := startDisk(t, h)
	conn := connected(t, cfg.Place)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wantCode(t, rescan(ctx, conn), codes.DeadlineExceeded)
	<-gone
	grace, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if err := server.Shutdown(grace); err == nil || !strings.Contains(err.Error(), "1 calls do not end") {
		t.Errorf("shutdown: %v", err)
	}
	if grace.Err() != nil {
		t.Error("the grace time was used up")
	}
}
