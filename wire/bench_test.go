package wire_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"google.golang.org/grpc"

	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wirepb"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// invoke makes a caller of one method.
func invoke(b *testing.B, conn *grpc.ClientConn, path string, request any, answer func() any) func() error {
	return func() error { return conn.Invoke(b.Context(), path, request, answer()) }
}

// BenchmarkWholeStack compares a call through the server with the same messages
// through a bare gRPC server, both on the transport of this OS.
func BenchmarkWholeStack(b *testing.B) {
	for _, callers := range []int{1, 32} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			place := wiretest.Place(b)
			wiretest.Serve(b, wire.ServerConfig{Host: quietHost{}, Place: place, APIs: []wire.API{diskV1}})
			serveBare(b, place)
			request, answer := &wirepb.GetDiskStatsRequest{DiskNumber: 3}, func() any { return new(wirepb.GetDiskStatsResponse) }
			ours := invoke(b, dial(b, place, diskV1), "/v1.Disk/GetDiskStats", request, answer)
			bare := invoke(b, dial(b, place, bareAPI), "/bare.Echo/Call", request, answer)
			b.ReportMetric(wiretest.Compare(b, callers, ours, bare), "x-bare-gRPC")
		})
	}
}

// BenchmarkOldVersion compares an old version's call, with a shape of its own on
// the way, with the newest version's.
func BenchmarkOldVersion(b *testing.B) {
	for _, callers := range []int{1, 32} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			place := wiretest.Place(b)
			old := wire.API{Group: wire.GroupDisk, Version: "v1beta2"}
			wiretest.Serve(b, wire.ServerConfig{Host: quietHost{}, Place: place, APIs: []wire.API{diskV1, old}})
			answer := func() any { return new(wirepb.GetDiskStatsResponse) }
			newest := invoke(b, dial(b, place, diskV1), "/v1.Disk/GetDiskStats", &wirepb.GetDiskStatsRequest{DiskNumber: 3}, answer)
			older := invoke(b, dial(b, place, old), "/v1beta2.Disk/DiskStats", &wirepb.NumberText{DiskId: "3"}, answer)
			b.ReportMetric(wiretest.Compare(b, callers, older, newest), "x-newest")
		})
	}
}

// BenchmarkStart measures the time from nothing to all pipes listening.
func BenchmarkStart(b *testing.B) {
	place := wiretest.Place(b)
	for b.Loop() {
		server, err := wire.NewServer(wire.ServerConfig{Host: quietHost{}, Place: place})
		if err != nil {
			b.Fatal(err)
		}
		if err := server.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := server.Shutdown(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// bareAPI is the name of the pipe of the bare server.
var bareAPI = wire.API{Group: "bare", Version: "v1"}

// serveBare serves one method that answers at once, with gRPC as it comes.
func serveBare(b *testing.B, place pipe.Place) {
	b.Helper()
	listener, err := place.Listen(b.Context(), bareAPI.Group, bareAPI.Version)
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bare.Echo", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			if err := decode(new(wirepb.GetDiskStatsRequest)); err != nil {
				return nil, err
			}
			return &wirepb.GetDiskStatsResponse{TotalBytes: 1 << 40}, nil
		}}},
	}, nil)
	served := make(chan error, 1)
	go func(l net.Listener) { served <- server.Serve(l) }(listener)
	b.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
}
