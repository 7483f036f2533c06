package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/test/upstream"
	"github.com/csi-windows/csi-windows/wire"
)

// hangWorld is a stack on which every case has something to work on.
func hangWorld(t *testing.T, callTimeout time.Duration) (*stack.Stack, *strings.Replacer) {
	s := stack.New(t, func(cfg *stack.Config) {
		cfg.Policy.CallTimeout = callTimeout
		cfg.Policy.HangGrace = time.Millisecond
	})
	disk, id := s.Mounted(mountPath)
	words := append(volumeWords(disk, id), connected(s)...)
	s.Share(`dom\u`, `p'w"d`)
	s.MakeDir(objectPath)
	return s, strings.NewReplacer(words...)
}

// Invariant 7: whatever call into the operating system hangs, deaf to every deadline,
// its caller gets an answer in time, in every method of every version. The pipes go on
// answering, and once the system lets go, nothing is left of it.
func TestInvariant7_EveryMethodAnswersInTime(t *testing.T) {
	t.Parallel()
	const callTimeout = 30 * time.Millisecond
	s, replacer := hangWorld(t, callTimeout)
	s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "*", Count: -1, Hang: true}))
	var all sync.WaitGroup
	for _, c := range upstream.Cases() {
		all.Go(func() {
			started := time.Now()
			_, err := s.Call(c.Group, c.Version, c.Method, replacer.Replace(c.Request))
			if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Aborted {
				t.Errorf("%s: %v", c.Name(), err)
			}
			if took := time.Since(started); took > stack.CallTimeout/2 {
				t.Errorf("%s took %v", c.Name(), took)
			}
		})
	}
	all.Wait()
	for _, api := range wire.APIs() {
		conn := s.Conn(api.Group, api.Version)
		answer, err := healthpb.NewHealthClient(conn).Check(s.Context(), &healthpb.HealthCheckRequest{})
		if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%s says %v, %v", api, answer, err)
		}
	}
	s.OK(s.Node.ClearFaults(context.Background()))
	hungCalls(s, 0)
	// The time limit that is so short for hanging calls is one that a busy machine may miss.
	_, err := s.Call("disk", "v1", "ListDiskIDs", `{}`)
	for end := time.Now().Add(stack.CallTimeout); status.Code(err) == codes.DeadlineExceeded && time.Now().Before(end); {
		_, err = s.Call("disk", "v1", "ListDiskIDs", `{}`)
	}
	s.OK(err)
}

// C064 and C066: callers who try again and again while a call hangs are turned away
// and cost nothing; the object is free as soon as the call comes back.
func TestC064_C066_RetriesDoNotPileUp(t *testing.T) {
	t.Parallel()
	s, _ := hangWorld(t, time.Minute)
	_, id := s.Volume(64 * stack.MiB)
	request := fmt.Sprintf(`{"volume_id":%q}`, id)
	ctx, cancel := context.WithTimeout(context.Background(), stack.CallTimeout)
	defer cancel()
	// The first caller gives up as soon as its call hangs.
	s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "cim.Exec MSFT_Volume.Format", Hook: cancel, Hang: true}))
	if _, err := s.CallContext(ctx, "volume", "v1", "FormatVolume", request); status.Code(err) != codes.Canceled {
		t.Errorf("the first call: %v", err)
	}
	hungCalls(s, 1)
	for range 49 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		_, err := s.CallContext(ctx, "volume", "v1", "FormatVolume", request)
		cancel()
		if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Aborted {
			t.Errorf("a retry: %v", err)
		}
	}
	hungCalls(s, 1)
	s.OK(s.Node.ClearFaults(context.Background()))
	s.Must("volume", "v1", "FormatVolume", request)
	if answer := s.Must("volume", "v1", "IsVolumeFormatted", request); answer != `{"formatted":true}` {
		t.Errorf("IsVolumeFormatted = %s", answer)
	}
}

// hungCalls waits until the agent counts so many calls that hang.
func hungCalls(s *stack.Stack, want int) {
	s.Helper()
	for deadline := time.Now().Add(stack.CallTimeout); s.Agent.HungCalls() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("%d calls hang, want %d", s.Agent.HungCalls(), want)
		}
	}
}
