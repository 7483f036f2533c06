package agent

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// goroutineOf names the goroutine that runs it.
func goroutineOf() string {
	var stack [64]byte
	name, _, _ := strings.Cut(string(stack[:runtime.Stack(stack[:], false)]), " [")
	return name
}

// A caller that leaves by itself lends its goroutine, except while a call hangs:
// then the next one gets a goroutine of its own, as does everybody who waits.
func TestCallInTheCallersGoroutine(t *testing.T) {
	t.Parallel()
	var ran atomic.Value
	release := make(chan struct{})
	os := &diskOnlyOS{disk: func(_ context.Context, number uint32) (OSDisk, error) {
		ran.Store(goroutineOf())
		if number == 1 {
			<-release // deaf to its context
		}
		return OSDisk{Number: number}, nil
	}}
	watch := &hangWatch{}
	a := newTestAgent(t, os, Policy{CallTimeout: time.Minute, HangGrace: time.Millisecond, Observer: watch})
	left := make(chan struct{})
	leaving := host.WithCaller(t.Context(), host.Caller{Leave: func() { close(left) }})

	ask := func(ctx context.Context, number uint32, inPlace bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		if _, err := a.GetDiskState(ctx, number); err != nil {
			t.Fatal(err)
		}
		if same := ran.Load() == goroutineOf(); same != inPlace {
			t.Errorf("disk %d: the job ran in the caller's goroutine: %v, want %v", number, same, inPlace)
		}
	}
	ask(leaving, 2, true)
	ask(t.Context(), 2, false)

	hung := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(leaving, 30*time.Millisecond)
		defer cancel()
		_, err := a.GetDiskState(ctx, 1)
		hung <- err
	}()
	<-left
	ask(leaving, 2, false)
	ctx, cancel := context.WithTimeout(leaving, 300*time.Millisecond)
	defer cancel()
	if _, err := a.GetDiskState(ctx, 1); !host.IsKind(err, host.KindBusy) {
		t.Errorf("the same disk: %v, want KindBusy", err)
	}
	for watch.hung.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	if err := <-hung; !host.IsKind(err, host.KindTimeout) {
		t.Errorf("the hung call: %v, want KindTimeout", err)
	}
	if a.HungCalls() != 0 || watch.ended.Load() != 1 || len(a.locks.locks) != 0 {
		t.Errorf("%d calls hang, %d ends reported, %d locks left", a.HungCalls(), watch.ended.Load(), len(a.locks.locks))
	}
	ask(leaving, 1, true)
}

// A caller with a deadline beyond the policy's is answered at the policy's, so
// its goroutine is not used.
func TestCallWithADistantDeadlineIsHandedOver(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	os := &diskOnlyOS{disk: func(context.Context, uint32) (OSDisk, error) {
		<-release
		return OSDisk{}, nil
	}}
	a := newTestAgent(t, os, Policy{CallTimeout: 30 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	ctx = host.WithCaller(ctx, host.Caller{Leave: func() { t.Error("the caller leaves by itself") }})
	if _, err := a.GetDiskState(ctx, 1); !host.IsKind(err, host.KindTimeout) {
		t.Errorf("got %v, want KindTimeout", err)
	}
	close(release)
}

// orderWatch is an Observer that lets the call go on while it is told that it hangs.
type orderWatch struct {
	release chan struct{}
	hung    atomic.Bool
	inOrder chan bool
}

func (w *orderWatch) CallHung(string, string, time.Duration) {
	close(w.release)
	time.Sleep(20 * time.Millisecond) // for the call to end too soon, if it can
	w.hung.Store(true)
}

func (w *orderWatch) HungCallEnded(string, string, time.Duration) { w.inOrder <- w.hung.Load() }

// That a call hangs is told before it is told that it has come back.
func TestHungCallIsReportedInOrder(t *testing.T) {
	t.Parallel()
	watch := &orderWatch{release: make(chan struct{}), inOrder: make(chan bool, 1)}
	os := &diskOnlyOS{disk: func(context.Context, uint32) (OSDisk, error) {
		<-watch.release
		return OSDisk{}, nil
	}}
	a := newTestAgent(t, os, Policy{CallTimeout: time.Millisecond, HangGrace: time.Millisecond, Observer: watch})
	if _, err := a.GetDiskState(t.Context(), 1); !host.IsKind(err, host.KindTimeout) {
		t.Errorf("got %v, want KindTimeout", err)
	}
	if !<-watch.inOrder {
		t.Error("its end was told first")
	}
}
