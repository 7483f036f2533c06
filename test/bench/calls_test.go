package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1beta2"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	volumev1beta1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// turnCalls is how many calls one side makes before the other has its turn.
const turnCalls = 64

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

// BenchmarkOldVersion compares a call of an old version, whose messages have
// other shapes, with the same call of the newest.
func BenchmarkOldVersion(b *testing.B) {
	conn := newStack(b)
	newDisks, oldDisks := diskv1.NewDiskClient(conn("disk", "v1")), diskv1beta2.NewDiskClient(conn("disk", "v1beta2"))
	newVolumes, oldVolumes := volumev1.NewVolumeClient(conn("volume", "v1")), volumev1beta1.NewVolumeClient(conn("volume", "v1beta1"))

	b.Run("GetDiskState", func(b *testing.B) {
		reportRatio(b, 1,
			func(ctx context.Context) error {
				_, err := oldDisks.GetAttachState(ctx, &diskv1beta2.GetAttachStateRequest{DiskID: "0"})
				return err
			},
			func(ctx context.Context) error {
				_, err := newDisks.GetDiskState(ctx, &diskv1.GetDiskStateRequest{})
				return err
			}, "old/new")
	})
	b.Run("ListVolumesOnDisk", func(b *testing.B) {
		reportRatio(b, 1,
			func(ctx context.Context) error {
				_, err := oldVolumes.ListVolumesOnDisk(ctx, &volumev1beta1.ListVolumesOnDiskRequest{DiskId: "0"})
				return err
			},
			func(ctx context.Context) error {
				_, err := newVolumes.ListVolumesOnDisk(ctx, &volumev1.ListVolumesOnDiskRequest{})
				return err
			}, "old/new")
	})
}

// reportRatio lets both sides take turns until each has made b.N calls, and
// reports the median over all rounds of the ratio of their times.
func reportRatio(b *testing.B, callers int, measured, reference side, unit string) {
	turn(b, callers, turnCalls, measured) // both connections are up before the clock runs
	turn(b, callers, turnCalls, reference)
	var ratios []float64
	b.ResetTimer()
	for done := 0; done < b.N; done += turnCalls {
		calls := min(turnCalls, b.N-done)
		ours := turn(b, callers, calls, measured)
		b.StopTimer()
		theirs := turn(b, callers, calls, reference)
		b.StartTimer()
		ratios = append(ratios, float64(ours)/float64(theirs))
	}
	b.StopTimer()
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], unit)
}

// turn makes calls with some callers at once, and returns the time it took.
func turn(b *testing.B, callers, calls int, call side) time.Duration {
	ctx := context.Background()
	if callers == 1 {
		started := time.Now()
		for range calls {
			if err := call(ctx); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(started)
	}
	var left atomic.Int64
	left.Store(int64(calls) * 8) // or the callers would hardly have met
	var group sync.WaitGroup
	started := time.Now()
	for range callers {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(ctx); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return time.Since(started)
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
