package e2e_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// stagedDisk is a stack with a staged disk, on which calls into the operating system
// that hang are reported at once.
func stagedDisk(t *testing.T, change ...func(*stack.Config)) (*stack.Stack, node.Source) {
	t.Helper()
	change = append(change, func(cfg *stack.Config) { cfg.Policy.HangGrace = time.Millisecond })
	s := stack.New(t, change...)
	source := nodeSources()["disk"].arrange(s)
	s.OK(s.Tasks.Stage(s.Context(), stageRequest(source)))
	return s, source
}

// Invariant 7 for the node tasks: whatever call into the operating system hangs, deaf
// to every deadline, every task is answered in time, by the server's clock or the
// caller's, and none of them holds the pipe. Once the system lets go, all is as before.
func TestInvariant7_NodeTasksAnswerInTime(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]struct{ server, caller time.Duration }{
		"the server's clock": {50 * time.Millisecond, stack.CallTimeout},
		"the caller's clock": {stack.CallTimeout, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, source := stagedDisk(t, func(cfg *stack.Config) {
				cfg.Limits = wire.Limits{MaxConcurrentCallsPerPipe: 64, CallTimeout: limits.server}
			})
			s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "*", Count: -1, Hang: true}))
			for range 3 { // more tasks than the pipe has places, one after another
				askEveryTask(s, limits.caller)
			}
			conn := s.Conn(wire.GroupNode, "v1alpha1")
			answer, err := healthpb.NewHealthClient(conn).Check(s.Context(), &healthpb.HealthCheckRequest{})
			if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("the pipe says %v, %v", answer, err)
			}
			s.OK(s.Node.ClearFaults(context.Background()))
			hungCalls(s, 0)
			s.OK(s.Tasks.Publish(s.Context(), publishRequest()))
			s.OK(s.Tasks.Unpublish(s.Context(), unpublishRequest()))
			s.OK(s.Tasks.Unstage(s.Context(), unstageRequest(source)))
			mustBeLetGo(s)
		})
	}
}

// askEveryTask sends every request of the node tasks at once while everything hangs.
func askEveryTask(s *stack.Stack, timeout time.Duration) {
	s.Helper()
	conn := s.Conn(wire.GroupNode, "v1alpha1")
	var all sync.WaitGroup
	for method, requests := range nodeRequests() {
		for _, request := range append(requests, proto.Clone(requests[0])) {
			all.Go(func() {
				started := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), timeout)
				defer cancel()
				err := conn.Invoke(ctx, "/v1alpha1.Node/"+method, request, &wirepb.StageResponse{})
				if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Aborted {
					s.Errorf("%s: %v", method, err)
				}
				if took := time.Since(started); took > stack.CallTimeout/2 {
					s.Errorf("%s took %v", method, took)
				}
			})
		}
	}
	all.Wait()
}

// C064 and C066: a kubelet that asks again and again for a task whose primitive hangs
// is turned away and costs nothing, and its volume is free as soon as the call comes
// back. Other volumes are not held up.
func TestC064_C066_RetriedTasksDoNotPileUp(t *testing.T) { // counts goroutines, so alone
	s, source := stagedDisk(t)
	c := s.Client()
	entered := make(chan struct{})
	s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "win32.FlushFileBuffers", Hook: func() { close(entered) }, Hang: true}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Unstage(ctx, unstageRequest(source)) }()
	<-entered
	cancel() // as a kubelet that stops
	if err := <-ended; err == nil {
		t.Error("an unstage that hangs has succeeded")
	}
	hungCalls(s, 1)
	before := runtime.NumGoroutine()
	for range 50 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		if err := c.Unstage(ctx, unstageRequest(source)); err == nil {
			t.Error("a retry has succeeded while the volume hangs")
		}
		cancel()
	}
	s.Attach(sim.DiskSpec{Bus: "NVMe", Serial: "other"})
	other := node.StageRequest{VolumeID: "vol-2", StagingPath: stack.Root + `\other`, Source: node.Source{Disk: &node.DiskSource{SerialNumber: "other"}}}
	s.OK(c.Stage(s.Context(), other))
	hungCalls(s, 1)
	if after := settled(before + 25); after > before+25 {
		t.Errorf("%d goroutines before the retries, %d after", before, after)
	}
	s.OK(s.Node.ClearFaults(context.Background()))
	s.OK(c.Unstage(s.Context(), unstageRequest(source)))
	s.OK(c.Unstage(s.Context(), node.UnstageRequest{VolumeID: "vol-2", StagingPath: stack.Root + `\other`}))
	mustBeLetGo(s)
}
