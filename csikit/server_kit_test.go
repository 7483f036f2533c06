package csikit

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	endpoints "github.com/csi-windows/csi-windows/test/endpoint"
)

// testWait is how long tests wait for what has to come.
const testWait = 20 * time.Second

// fakeServices answer with functions; those that are nil answer at once.
type fakeServices struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	csi.UnimplementedSnapshotMetadataServer

	probe     func(context.Context) error
	stage     func(context.Context, *csi.NodeStageVolumeRequest) error
	stats     func(context.Context) error
	allocated func(csi.SnapshotMetadata_GetMetadataAllocatedServer) error
}

func (f *fakeServices) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	if f.probe != nil {
		return &csi.ProbeResponse{}, f.probe(ctx)
	}
	return &csi.ProbeResponse{}, nil
}

func (f *fakeServices) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if f.stage != nil {
		return &csi.NodeStageVolumeResponse{}, f.stage(ctx, r)
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

func (f *fakeServices) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (f *fakeServices) NodeGetVolumeStats(ctx context.Context, _ *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if f.stats != nil {
		return &csi.NodeGetVolumeStatsResponse{}, f.stats(ctx)
	}
	return &csi.NodeGetVolumeStatsResponse{}, nil
}

func (f *fakeServices) GetMetadataAllocated(_ *csi.GetMetadataAllocatedRequest, stream csi.SnapshotMetadata_GetMetadataAllocatedServer) error {
	return f.allocated(stream)
}

// syncBuffer is a log that many write and the test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// lines are the lines of the log that hold a text.
func (s *syncBuffer) lines(text string) (found []string) {
	for line := range strings.Lines(s.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// testServer is a server that runs, and a connection to it.
type testServer struct {
	server *Server
	conn   *grpc.ClientConn
	log    *syncBuffer
	stop   func() error // ends Run and returns its error; may be called again
}

// serve runs a server of some services until the end of the test.
func serve(t testing.TB, f *fakeServices, change func(*ServerConfig)) *testServer {
	t.Helper()
	s := &testServer{log: &syncBuffer{}}
	listening := make(chan struct{})
	config := ServerConfig{
		Endpoint: endpoints.New(t), DriverName: "test.csi",
		Services:    Services{Identity: f, Controller: f, Node: f, SnapshotMetadata: f},
		Logger:      slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OnListening: func(net.Addr) { close(listening) },
	}
	if change != nil {
		change(&config)
	}
	server, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	s.server = server
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	s.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	select {
	case <-listening:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	s.conn = endpoints.Dial(t, config.Endpoint)
	t.Cleanup(func() {
		_ = s.conn.Close()
		_ = s.stop() // tests that care look themselves
	})
	return s
}

func (s *testServer) node() csi.NodeClient { return csi.NewNodeClient(s.conn) }

func (s *testServer) stage(ctx context.Context, id string) error {
	_, err := s.node().NodeStageVolume(ctx, stageRequest(id))
	return err
}

func (s *testServer) probe(ctx context.Context) error {
	_, err := csi.NewIdentityClient(s.conn).Probe(ctx, &csi.ProbeRequest{})
	return err
}

func stageRequest(id string) *csi.NodeStageVolumeRequest {
	return &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: `C:\stage\` + id, VolumeCapability: mountCapability()}
}

func mountCapability() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(testWait); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %s: not %s", testWait, what)
		}
	}
}
