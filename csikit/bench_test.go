package csikit

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// BenchmarkOverhead compares calls through the server, with metrics and a log at
// the usual level, with the same services on a bare gRPC server, both on a unix
// socket in one run. Callers have a deadline, as the kubelet and the sidecars do.
func BenchmarkOverhead(b *testing.B) {
	f := &fakeServices{}
	s := serve(b, f, func(c *ServerConfig) {
		c.Registerer = prometheus.NewRegistry()
		c.Logger = slog.New(slog.NewJSONHandler(&countingWriter{}, nil))
	})
	bare := serveBareCSI(b, f)
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	for _, callers := range []int{1, 32} {
		for _, call := range []struct {
			name string
			of   func(*grpc.ClientConn) error
		}{
			{"Probe", func(conn *grpc.ClientConn) error {
				_, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
				return err
			}},
			{"NodeGetCapabilities", func(conn *grpc.ClientConn) error {
				_, err := csi.NewNodeClient(conn).NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
				return err
			}},
			{"NodeGetVolumeStats", func(conn *grpc.ClientConn) error {
				_, err := csi.NewNodeClient(conn).NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: `C:\v`})
				return err
			}},
		} {
			b.Run(fmt.Sprintf("%s/callers=%d", call.name, callers), func(b *testing.B) {
				ratio := wiretest.Compare(b, callers, func() error { return call.of(s.conn) }, func() error { return call.of(bare) })
				b.ReportMetric(ratio, "x-bare-gRPC")
			})
		}
	}
}

// countingWriter takes a log and keeps nothing of it.
type countingWriter struct{ bytes int }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.bytes += len(p)
	return len(p), nil
}

// serveBareCSI serves with gRPC as it comes.
func serveBareCSI(b *testing.B, f *fakeServices) *grpc.ClientConn {
	b.Helper()
	path := filepath.Join(socketDir(b), "bare.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, f)
	csi.RegisterNodeServer(server, f)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	return conn
}

// BenchmarkChain is what the chain costs alone.
func BenchmarkChain(b *testing.B) {
	server, err := NewServer(ServerConfig{
		Endpoint: "unix:x", Services: Services{Identity: &fakeServices{}}, Registerer: prometheus.NewRegistry(),
		Logger: slog.New(slog.NewJSONHandler(&countingWriter{}, nil)),
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, call := range []struct {
		name    string
		request any
	}{
		{csi.Identity_Probe_FullMethodName, &csi.ProbeRequest{}},
		{csi.Node_NodeGetCapabilities_FullMethodName, &csi.NodeGetCapabilitiesRequest{}},
		{csi.Node_NodeGetVolumeStats_FullMethodName, &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: `C:\v`}},
		{csi.Node_NodeStageVolume_FullMethodName, stageRequest("v")},
	} {
		b.Run(call.name[1:], func(b *testing.B) {
			b.ReportAllocs()
			info := &grpc.UnaryServerInfo{FullMethod: call.name}
			for b.Loop() {
				if _, err := server.chain.unary(b.Context(), call.request, info, func(context.Context, any) (any, error) { return nil, nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
