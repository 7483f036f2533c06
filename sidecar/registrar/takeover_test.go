package registrar

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// logged waits until the log has a text n times.
func (b *bed) logged(text string, n int) {
	b.Helper()
	eventually(b.T, func() error {
		if got := strings.Count(b.log.String(), text); got < n {
			return fmt.Errorf("%d times %q, not %d, in the log:\n%s", got, text, n, b.log)
		}
		return nil
	})
}

// A driver that comes back is registered again by the registrar whose socket the
// kubelet knows, not by the one that has been replaced.
func TestC071_DriverThatComesBackIsLeftToTheNewerRegistrar(t *testing.T) {
	b := newBed(t)
	k := startKubelet(t, b.registry, v1{}, nil)
	r := b.start()
	k.await(b.registered(), 1)
	// In one step, so that there is never none, which would be made anew.
	newer, err := net.Listen("unix", b.socketPath()+".new")
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Close()
	if err := os.Rename(b.socketPath()+".new", b.socketPath()); err != nil {
		t.Fatal(err)
	}
	there, err := os.Lstat(b.socketPath())
	if err != nil {
		t.Fatal(err)
	}
	b.logged("Another registrar has taken over", 1)
	// A loss is seen only when the return before it was taken: after the third,
	// two were, and had the first made a socket, its life took the second.
	for n := range 3 {
		b.driver.stop()
		b.logged("connection to the driver is lost", n+1)
		b.driver.start()
		b.logged("The driver is back", n+1)
	}
	if now, err := os.Lstat(b.socketPath()); err != nil || !os.SameFile(there, now) || !now.ModTime().Equal(there.ModTime()) {
		t.Errorf("the socket of the newer one is gone: %v, %v", now, err)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// Some drivers close connections that are idle or old. A new registration for that
// would have the kubelet forget and find the driver every few minutes.
func TestC071_DriverThatOnlyClosesConnectionsIsNotRegisteredAgain(t *testing.T) {
	b := newBed(t)
	b.driver.stop()
	b.driver.options = []grpc.ServerOption{grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 20 * time.Millisecond})}
	b.driver.start()
	b.connect()
	k := startKubelet(t, b.registry, v1{}, nil)
	r := b.start()
	k.await(b.registered(), 1)
	b.logged("connection to the driver is lost", 4)
	if n := k.count("seen"); n != 1 {
		t.Errorf("the kubelet saw %d sockets: %q", n, k.all())
	}
	b.driver.stop()
	b.driver.options = nil
	b.driver.start()
	k.await(b.registered(), 2)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// A driver that is slow after its restart is waited for, whatever the limit of
// one call is.
func TestC071_SlowDriverThatComesBackIsRegisteredAgain(t *testing.T) {
	b := newBed(t)
	b.config.Timeout = 20 * time.Millisecond
	k := startKubelet(t, b.registry, v1{}, nil)
	b.start()
	k.await(b.registered(), 1)
	b.driver.stop()
	b.driver.slowDown(50 * time.Millisecond)
	b.driver.start()
	k.await(b.registered(), 2)
}

// The kubelet is answered before its connection ends: a refusal whose answer is
// lost is one that it tells of again and again.
func TestC071_KubeletIsAnsweredBeforeTheServerEnds(t *testing.T) {
	b := newBed(t)
	listener, err := net.Listen("unix", b.socketPath())
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	rpc := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		close(entered)
		<-leave
		return handle(ctx, request)
	}))
	over := make(chan struct{})
	close(over) // nobody takes the call
	registration.RegisterRegistrationServer(rpc, newServer(driverName, "/csi.sock", over))
	served := make(chan error, 1)
	go func() { served <- rpc.Serve(listener) }()
	conn, err := grpc.NewClient("unix:"+b.socketPath(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	told := make(chan error, 1)
	go func() { told <- v1{}.notify(ctx, conn, false, "no handler for it") }()
	<-entered
	stopped := make(chan struct{})
	go func() { defer close(stopped); stopServing(rpc, testWait) }()
	// Nobody is let in any more: it is stopping.
	eventually(t, func() error { return isGone(b.socketPath()) })
	close(leave)
	if err := <-told; err != nil {
		t.Errorf("the kubelet is not answered: %v", err)
	}
	<-stopped
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A call that hangs does not hold the end up.
func TestServerEndsWithoutACallThatHangs(t *testing.T) {
	b := newBed(t)
	listener, err := net.Listen("unix", b.socketPath())
	if err != nil {
		t.Fatal(err)
	}
	entered, gone := make(chan struct{}), make(chan struct{})
	rpc := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
		close(entered)
		<-ctx.Done()
		close(gone)
		return nil, ctx.Err()
	}))
	registration.RegisterRegistrationServer(rpc, newServer(driverName, "/csi.sock", nil))
	go func() { _ = rpc.Serve(listener) }()
	conn, err := grpc.NewClient("unix:"+b.socketPath(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	told := make(chan error, 1)
	go func() { told <- v1{}.notify(t.Context(), conn, true, "") }()
	<-entered
	stopServing(rpc, time.Millisecond)
	<-gone
	if err := <-told; err == nil {
		t.Error("the call was answered")
	}
}
