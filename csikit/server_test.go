package csikit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestServerNeedsIdentityAndAnEndpoint(t *testing.T) {
	t.Parallel()
	if _, err := NewServer(ServerConfig{Endpoint: "unix:x"}); err == nil || !strings.Contains(err.Error(), "Identity") {
		t.Errorf("without Identity: %v", err)
	}
	if _, err := NewServer(ServerConfig{Services: Services{Identity: &fakeServices{}}}); err == nil || !strings.Contains(err.Error(), "endpoint") {
		t.Errorf("without an endpoint: %v", err)
	}
}

func TestARequestAgainstTheRulesDoesNotReachItsHandler(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeServices{stage: func(context.Context, *csi.NodeStageVolumeRequest) error {
		t.Error("the handler was called")
		return nil
	}}, nil)
	_, err := s.node().NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "v", StagingTargetPath: "p"})
	if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != "volume_capability: required" {
		t.Errorf("got %v", err)
	}
	if err := s.stage(t.Context(), strings.Repeat("v", 129)); status.Convert(err).Message() != "volume_id: 129 bytes, the limit is 128" {
		t.Errorf("got %v", err)
	}
}

func TestErrorsBecomeOneStatusAndOneLine(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeServices{stage: func(context.Context, *csi.NodeStageVolumeRequest) error {
		return errors.Join(errors.New("disk 7"), ErrInUse)
	}}, nil)
	if err := s.stage(t.Context(), "vol-1"); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "disk 7") {
		t.Errorf("got %v", err)
	}
	lines := s.log.lines("NodeStageVolume")
	if len(lines) != 1 {
		t.Fatalf("the log has %d lines of it: %s", len(lines), s.log)
	}
	for _, part := range []string{`"level":"ERROR"`, `"object":"vol-1"`, `"code":"FailedPrecondition"`, `disk 7`, `"duration"`} {
		if !strings.Contains(lines[0], part) {
			t.Errorf("no %s in %s", part, lines[0])
		}
	}
}

func TestAPanicIsInternalAndItsStackIsInTheLogAlone(t *testing.T) {
	t.Parallel()
	f := &fakeServices{stage: func(context.Context, *csi.NodeStageVolumeRequest) error { panic("marker-of-panic") }}
	f.probe = func(context.Context) error { panic("marker-of-probe") }
	f.allocated = func(csi.SnapshotMetadata_GetMetadataAllocatedServer) error { panic("marker-of-stream") }
	s := serve(t, f, nil)
	for range 2 { // the lock is free again
		err := s.stage(t.Context(), "v")
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "goroutine") {
			t.Errorf("got %v", err)
		}
	}
	if err := s.probe(t.Context()); status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	stream, err := csi.NewSnapshotMetadataClient(s.conn).GetMetadataAllocated(t.Context(), &csi.GetMetadataAllocatedRequest{SnapshotId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	for _, marker := range []string{"marker-of-panic", "marker-of-probe", "marker-of-stream"} {
		if lines := s.log.lines(marker); len(lines) == 0 || !strings.Contains(lines[0], "goroutine") || !strings.Contains(lines[0], "server_test.go") {
			t.Errorf("no stack with %s: %v", marker, lines)
		}
	}
}

func TestACallWithoutADeadlineGetsOne(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeServices{stage: func(ctx context.Context, _ *csi.NodeStageVolumeRequest) error {
		<-ctx.Done()
		return errors.New("gave up") // not known to have failed: DeadlineExceeded
	}}, func(c *ServerConfig) { c.CallTimeout = 50 * time.Millisecond })
	s.server.chain.flights.grace = testWait // a busy machine may need more than the usual one to run a handler
	if err := s.stage(t.Context(), "v"); status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "gave up") {
		t.Errorf("got %v", err)
	}
}

func TestQuietCallsAreLoggedAtDebug(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeServices{}, nil)
	if err := s.probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.node().NodeGetCapabilities(t.Context(), &csi.NodeGetCapabilitiesRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := s.stage(t.Context(), "v"); err != nil {
		t.Fatal(err)
	}
	for name, level := range map[string]string{"Probe": "DEBUG", "NodeGetCapabilities": "DEBUG", "NodeStageVolume": "INFO"} {
		lines := s.log.lines(`"method":"` + name + `"`)
		if len(lines) != 1 || !strings.Contains(lines[0], `"level":"`+level+`"`) {
			t.Errorf("%s: %v", name, lines)
		}
	}
}

func TestMetricsHaveTheCommonNames(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, &fakeServices{stage: func(_ context.Context, r *csi.NodeStageVolumeRequest) error {
		if r.GetVolumeId() == "slow" {
			close(entered)
			<-leave
		}
		return nil
	}}, func(c *ServerConfig) { c.Registerer = registry })
	slow := make(chan error, 1)
	go func() { slow <- s.stage(context.Background(), "slow") }()
	<-entered
	if err := s.stage(t.Context(), "v"); err != nil {
		t.Fatal(err)
	}
	if err := s.stage(t.Context(), ""); err == nil {
		t.Fatal("an empty id was taken")
	}
	counts, gauges := gathered(t, registry)
	const of = "csi_plugin_operations_seconds test.csi /csi.v1.Node/NodeStageVolume "
	if counts[of+"OK"] != 1 || counts[of+"InvalidArgument"] != 1 || len(counts) != 2 {
		t.Errorf("observations: %v", counts)
	}
	if gauges["csi_plugin_operations_in_flight test.csi"] != 1 || gauges["csi_plugin_operations_hung test.csi"] != 0 || len(gauges) != 2 {
		t.Errorf("gauges: %v", gauges)
	}
	close(leave)
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

// gathered returns the counts of histograms and the gauges of a registry, by name
// and the values of the labels in the order driver, method, code.
func gathered(t *testing.T, registry *prometheus.Registry) (counts map[string]uint64, gauges map[string]float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts, gauges = map[string]uint64{}, map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			name := family.GetName() + " " + labels["driver_name"]
			if metric.GetHistogram() != nil {
				counts[name+" "+labels["method_name"]+" "+labels["grpc_status_code"]] = metric.GetHistogram().GetSampleCount()
			} else {
				gauges[name] = metric.GetGauge().GetValue()
			}
		}
	}
	return counts, gauges
}
