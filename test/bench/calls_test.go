package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// side is one of two ways to make a call.
type side func(ctx context.Context) error

// BenchmarkCall compares calls through pipe server, agent, winos and simulated
// node with a bare gRPC server that answers the same messages at once, over
// sockets of the same kind.
func BenchmarkCall(b *testing.B) {
	conn := newStack(b)
	bare := diskv1.NewDiskClient(newBareServer(b))
	request := &diskv1.GetDiskStateRequest{}
	echo := func(ctx context.Context) error { _, err := bare.GetDiskState(ctx, request); return err }

	disks := diskv1.NewDiskClient(conn("disk", "v1"))
	state := func(ctx context.Context) error { _, err := disks.GetDiskState(ctx, request); return err }
	stats := func(ctx context.Context) error {
		_, err := disks.GetDiskStats(ctx, &diskv1.GetDiskStatsRequest{})
		return err
	}
	for _, callers := range []int{1, 32} {
		b.Run(fmt.Sprintf("GetDiskState/callers=%d", callers), func(b *testing.B) {
			reportRatio(b, callers, state, echo, "stack/echo")
		})
		b.Run(fmt.Sprintf("GetDiskStats/callers=%d", callers), func(b *testing.B) {
			reportRatio(b, callers, stats, echo, "stack/echo")
		})
	}
}

// reportRatio reports how much longer one side takes than the other.
func reportRatio(b *testing.B, callers int, measured, reference side, unit string) {
	// With a deadline, as the calls of every node plugin come: kubelet sets one.
	bound := func(call side) func() error {
		return func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			return call(ctx)
		}
	}
	for _, call := range []side{measured, reference} {
		if err := call(b.Context()); err != nil { // the connection is up from here on
			b.Fatal(err)
		}
	}
	b.ReportMetric(wiretest.Compare(b, callers, bound(measured), bound(reference)), unit)
}

// newStack starts the whole product over a simulated node and returns how to
// connect to it. Nothing is logged, as on a node at the usual verbosity.
func newStack(b *testing.B) func(group, version string) *grpc.ClientConn {
	b.Helper()
	node, err := sim.Open(b.Context(), sim.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = node.Close() })
	host, err := agent.New(winos.New(node, node, winos.Options{}), agent.Policy{
		Roots: []string{`C:\var\lib\kubelet`}, RequirePrivacy: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	place := wiretest.Place(b)
	wiretest.Serve(b, wire.ServerConfig{
		Host: host, Place: place, Limits: wire.Limits{CallTimeout: agent.DefaultCallTimeout}, // as csi-proxy does
	})
	return func(group, version string) *grpc.ClientConn {
		return dial(b, func(ctx context.Context) (net.Conn, error) { return place.Dial(ctx, group, version) })
	}
}

// bareServer answers at once.
type bareServer struct {
	*diskv1.UnimplementedDiskServer
}

func (bareServer) GetDiskState(context.Context, *diskv1.GetDiskStateRequest) (*diskv1.GetDiskStateResponse, error) {
	return &diskv1.GetDiskStateResponse{IsOnline: true}, nil
}

// newBareServer starts a gRPC server with nothing around its handler.
func newBareServer(b *testing.B) *grpc.ClientConn {
	b.Helper()
	path := filepath.Join(wiretest.Place(b).Dir, "bare.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer()
	diskv1.RegisterDiskServer(server, bareServer{})
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }()
	b.Cleanup(func() { server.Stop(); <-served })
	return dial(b, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	})
}

func dial(b *testing.B, connect func(context.Context) (net.Conn, error)) *grpc.ClientConn {
	b.Helper()
	conn, err := grpc.NewClient("passthrough:///bench", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return connect(ctx) }))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}
