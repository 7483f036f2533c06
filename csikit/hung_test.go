package csikit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// short is a context that ends soon, as that of a caller who has no patience.
func short(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 500*time.Millisecond)
}

// giveUp makes a call whose handler hangs, and whose caller has no patience. On a busy
// machine the caller may be gone before the handler is asked; then he comes again.
func giveUp(t *testing.T, entered *atomic.Int64, call func(context.Context) error) {
	t.Helper()
	for before := entered.Load(); entered.Load() == before; {
		ctx, cancel := short(t)
		err := call(ctx) // Aborted when the handler is asked just now
		if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Aborted {
			t.Fatalf("a call that hangs: %v", err)
		}
		cancel()
	}
}

// A mount that hangs and heeds nothing, and a kubelet that repeats its call. Not
// parallel: it counts goroutines.
func TestC064_AHungCallCostsOneGoroutine(t *testing.T) {
	leave := make(chan error)
	var entered atomic.Int64
	s := serve(t, &fakeServices{stage: func(_ context.Context, r *csi.NodeStageVolumeRequest) error {
		if r.GetVolumeId() == "hung" {
			entered.Add(1)
			return <-leave
		}
		return nil
	}}, nil)
	for _, ending := range []error{nil, errors.New("the mount failed after all")} {
		if err := s.stage(t.Context(), "other"); err != nil { // connections are up
			t.Fatal(err)
		}
		before := settledGoroutines(t)
		giveUp(t, &entered, func(ctx context.Context) error { return s.stage(ctx, "hung") })
		count := map[codes.Code]int{}
		for range 49 {
			ctx, cancel := context.WithTimeout(t.Context(), testWait)
			count[status.Code(s.stage(ctx, "hung"))]++
			cancel()
		}
		if count[codes.Aborted] != 49 {
			t.Errorf("codes: %v", count)
		}
		eventually(t, "one goroutine more at most", func() bool { return settledGoroutines(t) <= before+1 })
		if err := s.stage(t.Context(), "other"); err != nil {
			t.Errorf("another volume: %v", err)
		}
		leave <- ending
		next := make(chan error, 1)
		eventually(t, "free", func() bool { // long before any time limit of the server
			ctx, cancel := context.WithTimeout(t.Context(), testWait)
			defer cancel()
			if _, err := s.node().NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: "hung", StagingTargetPath: "p"}); status.Code(err) != codes.Aborted {
				next <- err
				return true
			}
			return false
		})
		if err := <-next; status.Code(err) != codes.Unimplemented { // the handler of the test services
			t.Errorf("after the end of the mount: %v", err)
		}
		eventually(t, "told by the log", func() bool { return len(s.log.lines("call returned after its caller had gone")) > 0 })
	}
}

// settledGoroutines is the number of goroutines once it no longer falls.
func settledGoroutines(t *testing.T) int {
	t.Helper()
	least := runtime.NumGoroutine()
	for quiet := 0; quiet < 20; quiet++ {
		time.Sleep(10 * time.Millisecond)
		if now := runtime.NumGoroutine(); now < least {
			least, quiet = now, 0
		}
	}
	return least
}

// Reads hold no lock, and yet one that hangs is not made again.
func TestC064_AHungReadIsNotRepeated(t *testing.T) {
	t.Parallel()
	var entered atomic.Int64
	leave := make(chan struct{})
	s := serve(t, &fakeServices{stats: func(context.Context) error {
		entered.Add(1)
		<-leave
		return nil
	}}, nil)
	request := &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: "p"}
	ask := func(ctx context.Context) error {
		_, err := s.node().NodeGetVolumeStats(ctx, request)
		return err
	}
	giveUp(t, &entered, ask)
	eventually(t, "noticed", func() bool { // the server's clock may be behind ours
		return len(s.log.lines(`"code":"DeadlineExceeded"`))+len(s.log.lines(`"code":"Canceled"`)) > 0
	})
	hung := entered.Load()
	count := map[codes.Code]int{}
	for range 9 {
		ctx, cancel := context.WithTimeout(t.Context(), testWait)
		count[status.Code(ask(ctx))]++
		cancel()
	}
	if count[codes.Aborted] != 9 {
		t.Errorf("codes: %v", count)
	}
	close(leave)
	eventually(t, "free", func() bool {
		return ask(t.Context()) == nil
	})
	if n := entered.Load() - hung; n != 1 {
		t.Errorf("the handler was entered %d times more", n)
	}
}

func TestC066_ProbeAnswersWhateverElseHangs(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 8), make(chan struct{})
	s := serve(t, &fakeServices{stage: func(context.Context, *csi.NodeStageVolumeRequest) error {
		entered <- struct{}{}
		<-leave
		return nil
	}}, func(c *ServerConfig) { c.MaxConcurrentCalls = 8 })
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			if err := s.stage(context.Background(), fmt.Sprint("vol-", i)); err != nil {
				t.Error(err)
			}
		})
	}
	for range 8 {
		<-entered
	}
	for range 20 { // while all else waits for good
		ctx, cancel := context.WithTimeout(t.Context(), testWait)
		if err := s.probe(ctx); err != nil {
			t.Errorf("Probe: %v", err)
		}
		cancel()
	}
	// The room is used up, and said to be.
	if err := s.stage(t.Context(), "vol-9"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "8 calls") {
		t.Errorf("a call too many: %v", err)
	}
	close(leave)
	calls.Wait()
	if err := s.stage(t.Context(), "vol-9"); err != nil {
		t.Error(err)
	}
}

// A flood of calls on one connection is refused, keeps nothing, and lets Probe through.
func TestC066_AFloodIsBounded(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	s := serve(t, &fakeServices{stage: func(context.Context, *csi.NodeStageVolumeRequest) error { <-leave; return nil }},
		func(c *ServerConfig) { c.MaxConcurrentCalls = 16 })
	count := map[codes.Code]int{}
	var mu sync.Mutex
	var calls sync.WaitGroup
	for i := range 300 {
		calls.Go(func() {
			code := status.Code(s.stage(context.Background(), fmt.Sprint("vol-", i)))
			mu.Lock()
			defer mu.Unlock()
			count[code]++
		})
	}
	eventually(t, "all others refused", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return count[codes.Unavailable] == 300-16
	})
	if err := s.probe(t.Context()); err != nil {
		t.Error(err)
	}
	close(leave)
	calls.Wait()
	if count[codes.OK] != 16 {
		t.Errorf("codes: %v", count)
	}
}

func TestAHungProbeCostsOneGoroutine(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	entered := 0
	leave := make(chan struct{})
	s := serve(t, &fakeServices{probe: func(context.Context) error {
		mu.Lock()
		entered++
		mu.Unlock()
		<-leave
		return ErrUnavailable
	}}, nil)
	for range 20 {
		ctx, cancel := short(t)
		if err := s.probe(ctx); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	last := make(chan error, 1)
	go func() { last <- s.probe(context.Background()) }()
	close(leave)
	if err := <-last; status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	if entered > 2 { // the last may have begun its own
		t.Errorf("the handler was entered %d times", entered)
	}
}

func TestC066_TheEndWaitsForCallsInFlight(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, &fakeServices{stage: func(ctx context.Context, r *csi.NodeStageVolumeRequest) error {
		if r.GetVolumeId() == "v" {
			close(entered)
			<-leave
		}
		return ctx.Err()
	}}, nil)
	call, end := make(chan error, 1), make(chan error, 1)
	go func() { call <- s.stage(context.Background(), "v") }()
	<-entered
	go func() { end <- s.stop() }()
	eventually(t, "closed to new calls", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), testWait)
		defer cancel()
		return s.stage(ctx, "other") != nil
	})
	select {
	case err := <-end:
		t.Fatalf("ended with a call in flight: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	if err := <-call; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if err := <-end; err != nil {
		t.Errorf("the end: %v", err)
	}
}

func TestTheEndDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 2)
	leave := make(chan struct{})
	s := serve(t, &fakeServices{stage: func(ctx context.Context, r *csi.NodeStageVolumeRequest) error {
		entered <- struct{}{}
		<-ctx.Done()
		if r.GetVolumeId() == "deaf" {
			<-leave
		}
		return ctx.Err()
	}}, func(c *ServerConfig) { c.GraceTime = 50 * time.Millisecond })
	calls := make(chan error, 2)
	for _, id := range []string{"good", "deaf"} {
		go func() { calls <- s.stage(context.Background(), id) }()
		<-entered
	}
	if err := s.stop(); err == nil || !strings.Contains(err.Error(), "1 calls did not end") {
		t.Errorf("the end: %v", err)
	}
	for range 2 {
		if err := <-calls; err == nil {
			t.Error("a call that was cut off succeeded")
		}
	}
	close(leave)
}
