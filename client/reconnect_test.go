package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// start starts a server that the test stops itself.
func start(t *testing.T, h host.Host, place pipe.Place, names ...string) (stop func()) {
	t.Helper()
	server, err := wire.NewServer(wire.ServerConfig{Host: h, Place: place, APIs: apis(t, names...)})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := server.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	}
}

// C061: after an upgrade or a downgrade of the agent the same client goes on by
// itself, with whatever versions there are now.
func TestC061_ReconnectsWithOtherVersions(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	c := open(t, client.Options{Place: place})
	for _, step := range []struct{ served, want string }{
		{"disk/v1beta2", "v1beta2"}, {"disk/v1", "v1"}, {"disk", "v1"}, {"disk/v1alpha1", "v1alpha1"}, {"disk/v1alpha1", "v1alpha1"},
	} {
		stop := start(t, richHost(), place, step.served)
		for range 3 {
			if err := c.PartitionDisk(t.Context(), 1); err != nil {
				t.Errorf("%s: %v", step.served, err)
			}
		}
		if got := c.Chosen()["disk"]; got != step.want {
			t.Errorf("%s: chose %q, want %s", step.served, got, step.want)
		}
		stop()
		wantKind(t, c.PartitionDisk(t.Context(), 1), host.KindUnavailable)
	}
}

// Callers that keep calling through a restart see only success and
// KindUnavailable, and success in the end.
func TestManyCallersThroughARestart(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	stop := start(t, richHost(), place, "disk")
	c := open(t, client.Options{Place: place, DialTimeout: time.Minute}) // the callers wait for one another
	done := make(chan struct{})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for stopped := false; !stopped; {
				select {
				case <-done:
					stopped = true // one more call, which must succeed
				default:
				}
				err := c.Rescan(t.Context())
				if err != nil && (stopped || !host.IsKind(err, host.KindUnavailable)) {
					t.Errorf("after the restart: %t, error %v", stopped, err)
				}
			}
		})
	}
	for range 3 {
		time.Sleep(2 * time.Millisecond)
		stop()
		stop = start(t, richHost(), place, "disk")
	}
	close(done)
	callers.Wait()
	stop()
}

// A call in flight when the agent dies is KindUnavailable, never sent twice.
func TestCallInFlightIsNotRepeated(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	entered := make(chan struct{}, 2)
	h := &wiretest.Host{Before: func(ctx context.Context, _ string) error {
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}}
	server, err := wire.NewServer(wire.ServerConfig{Host: h, Place: place, APIs: apis(t, "disk")})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := open(t, client.Options{Place: place})
	result := make(chan error, 1)
	go func() { result <- c.Rescan(t.Context()) }()
	<-entered
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	_ = server.Shutdown(cut)
	wantKind(t, <-result, host.KindUnavailable)
	if calls := h.Calls(); len(calls) != 1 {
		t.Errorf("the host was asked %d times", len(calls))
	}
}

// A pipe that opens and stays silent is given up in time.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	listener, err := place.Listen(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			defer conn.Close()
		}
	}()
	defer func() {
		_ = listener.Close()
		<-accepted
	}()
	c := open(t, client.Options{Place: place, DialTimeout: time.Second})
	err = c.Rescan(t.Context())
	wantKind(t, err, host.KindUnavailable)
	if !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v", err)
	}
}

// The caller's deadline holds, and a call without one has the client's.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	h := &wiretest.Host{Before: func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }}
	wiretest.Serve(t, wire.ServerConfig{Host: h, Place: place, APIs: apis(t, "disk")})
	c := open(t, client.Options{Place: place, CallTimeout: 20 * time.Millisecond})
	err := c.Rescan(t.Context())
	wantKind(t, err, host.KindTimeout)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = c.Rescan(ctx)
	wantKind(t, err, host.KindTimeout)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not context.Canceled", err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	entered := make(chan struct{})
	h := &wiretest.Host{Before: func(ctx context.Context, _ string) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	}}
	wiretest.Serve(t, wire.ServerConfig{Host: h, Place: place, APIs: apis(t, "disk")})
	c := open(t, client.Options{Place: place})
	result := make(chan error, 1)
	go func() { result <- c.Rescan(t.Context()) }()
	<-entered
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	wantKind(t, <-result, host.KindUnavailable)
	wantKind(t, c.Rescan(t.Context()), host.KindUnavailable)
	if err := c.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// A text that is no UTF-8 never leaves the client and is the caller's fault.
func TestBadTextIsInvalid(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	h := richHost()
	wiretest.Serve(t, wire.ServerConfig{Host: h, Place: place})
	wantKind(t, open(t, client.Options{Place: place}).Mkdir(t.Context(), "C:\\bad\xff"), host.KindInvalid)
	if len(h.Calls()) > 0 {
		t.Errorf("the host was asked %v", h.Calls())
	}
}

// Upstream's server answers every failure with code Unknown and a text.
func TestForeignFailures(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	serveForeign(t, place, func(string) error { return status.Error(codes.Unknown, "rescan failed: Access is denied.") })
	err := open(t, client.Options{Place: place}).Rescan(t.Context())
	wantKind(t, err, host.KindInternal)
	if got := err.Error(); got != "Rescan: internal error: rescan failed: Access is denied." {
		t.Errorf("got %q", got)
	}
}

// serveForeign serves disk/v1 with a server that fails every call.
func serveForeign(t *testing.T, place pipe.Place, fail func(method string) error) {
	t.Helper()
	listener, err := place.Listen(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		return fail(method)
	}))
	served := make(chan error, 1)
	go func(l net.Listener) { served <- server.Serve(l) }(listener)
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("foreign server: %v", err)
		}
	})
}
