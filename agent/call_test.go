package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// diskOnlyOS answers for disks only, as its test says.
type diskOnlyOS struct {
	OS
	disk func(ctx context.Context, number uint32) (OSDisk, error)
	set  func(ctx context.Context, number uint32, online bool) error
}

func (o *diskOnlyOS) SystemDrive() byte { return 'C' }

func (o *diskOnlyOS) Disk(ctx context.Context, number uint32) (OSDisk, error) {
	return o.disk(ctx, number)
}

func (o *diskOnlyOS) DiskState(ctx context.Context, number uint32) (offline, readOnly bool, err error) {
	disk, err := o.disk(ctx, number)
	return disk.Offline, disk.ReadOnly, err
}

func (o *diskOnlyOS) SetDiskOnline(ctx context.Context, number uint32, online bool) error {
	return o.set(ctx, number, online)
}

// hangWatch is an Observer that counts.
type hangWatch struct{ hung, ended atomic.Int64 }

func (w *hangWatch) CallHung(string, string, time.Duration)      { w.hung.Add(1) }
func (w *hangWatch) HungCallEnded(string, string, time.Duration) { w.ended.Add(1) }

func newTestAgent(t *testing.T, os OS, policy Policy) *Agent {
	t.Helper()
	policy.Roots = []string{`C:\k`}
	a, err := New(os, policy)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestNewNamesTheField(t *testing.T) {
	t.Parallel()
	for field, policy := range map[string]Policy{
		"Policy.Roots is empty":      {},
		"Policy.Roots[1]":            {Roots: []string{`C:\k`, `relative`}},
		"Policy.MinResizeGainBytes":  {Roots: []string{`C:\k`}, MinResizeGainBytes: -1},
		"Policy.CallTimeout":         {Roots: []string{`C:\k`}, CallTimeout: -1},
		"Policy.ProbeTimeout":        {Roots: []string{`C:\k`}, ProbeTimeout: -1},
		"Policy.HangGrace":           {Roots: []string{`C:\k`}, HangGrace: -1},
		"Policy.PollInterval":        {Roots: []string{`C:\k`}, PollInterval: -1},
		"Policy.Roots[0]: component": {Roots: []string{`C:\k\..\x`}},
	} {
		if a, err := New(&diskOnlyOS{}, policy); err == nil || a != nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: New = %v, %v", field, a, err)
		}
	}
	if _, err := New(nil, Policy{Roots: []string{`C:\k`}}); err == nil {
		t.Error("no operating system was accepted")
	}
}

// eventually waits until something holds, for far longer than it takes.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// Invariant 7, and the kind of fault of C064: an operating system that does not
// come back holds up no other object and piles nothing up. Other tests would be
// counted with its goroutines, so it runs alone.
func TestInvariant7_HungCall(t *testing.T) {
	release := make(chan struct{})
	entered := atomic.Int64{}
	os := &diskOnlyOS{disk: func(_ context.Context, number uint32) (OSDisk, error) {
		if number == 1 {
			entered.Add(1)
			<-release // deaf to its context
		}
		return OSDisk{Number: number}, nil
	}}
	watch := &hangWatch{}
	a := newTestAgent(t, os, Policy{CallTimeout: time.Minute, HangGrace: time.Millisecond, Observer: watch})
	ctx := context.Background()
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}

	if _, err := a.GetDiskState(soon(), 1); !host.IsKind(err, host.KindTimeout) {
		t.Fatalf("first call: %v, want KindTimeout", err)
	}
	before := runtime.NumGoroutine()
	var waiting sync.WaitGroup
	for range 50 {
		waiting.Go(func() {
			if _, err := a.GetDiskState(soon(), 1); !host.IsKind(err, host.KindBusy) || !strings.Contains(err.Error(), "GetDiskState") {
				t.Errorf("retry: %v, want KindBusy that names the holder", err)
			}
		})
	}
	waiting.Wait()
	eventually(t, "50 retries have left no goroutines", func() bool { return runtime.NumGoroutine() <= before+10 })
	eventually(t, "the hung call is reported", func() bool { return entered.Load() > 0 && watch.hung.Load() > 0 })
	if entered.Load() != 1 {
		t.Errorf("%d calls reached the operating system, want 1", entered.Load())
	}
	if _, err := a.GetDiskState(ctx, 2); err != nil {
		t.Errorf("another disk: %v", err)
	}
	if a.HungCalls() != 1 || watch.hung.Load() != 1 {
		t.Errorf("%d hung calls, reported %d times", a.HungCalls(), watch.hung.Load())
	}

	close(release)
	eventually(t, "the end of the hung call is reported", func() bool { return a.HungCalls() == 0 && watch.ended.Load() > 0 })
	if _, err := a.GetDiskState(ctx, 1); err != nil || watch.ended.Load() != 1 {
		t.Errorf("after the end: %v, end reported %d times", err, watch.ended.Load())
	}
	if n := len(a.locks.locks); n != 0 {
		t.Errorf("%d locks left behind", n)
	}
}

func TestPanicBecomesAnError(t *testing.T) {
	t.Parallel()
	os := &diskOnlyOS{disk: func(context.Context, uint32) (OSDisk, error) { panic("bad answer") }}
	a := newTestAgent(t, os, Policy{})
	for range 2 { // the second would wait for ever if the lock had been lost
		_, err := a.GetDiskState(context.Background(), 1)
		if !host.IsKind(err, host.KindInternal) || !strings.Contains(err.Error(), "bad answer") {
			t.Errorf("got %v, want KindInternal", err)
		}
	}
}

// Invariant 5: a writer is alone with its disk, readers are together, and other
// disks do not notice.
func TestInvariant5_CallsOnOneObject(t *testing.T) {
	t.Parallel()
	var inside [3]atomic.Int64
	var overlap atomic.Bool
	os := &diskOnlyOS{
		disk: func(_ context.Context, number uint32) (OSDisk, error) {
			return OSDisk{Number: number, Offline: true}, nil
		},
		set: func(_ context.Context, number uint32, _ bool) error {
			if inside[number].Add(1) != 1 {
				overlap.Store(true)
			}
			time.Sleep(100 * time.Microsecond)
			inside[number].Add(-1)
			return nil
		},
	}
	a := newTestAgent(t, os, Policy{})
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			if err := a.SetDiskState(context.Background(), uint32(i%3), true); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if overlap.Load() {
		t.Error("two changes of one disk ran at once")
	}
}

func TestInvariant5_OtherObjectsDoNotWait(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	os := &diskOnlyOS{disk: func(_ context.Context, number uint32) (OSDisk, error) {
		if number == 1 {
			close(entered)
			<-release
		}
		return OSDisk{Number: number, Offline: true}, nil
	}, set: func(context.Context, uint32, bool) error { return nil }}
	a := newTestAgent(t, os, Policy{})
	done := make(chan error, 1)
	go func() { done <- a.SetDiskState(context.Background(), 1, true) }()
	<-entered
	if err := a.SetDiskState(context.Background(), 2, true); err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestErrorsNameOperationAndObjectOnce(t *testing.T) {
	t.Parallel()
	cause := errors.New("Windows error 5")
	os := &diskOnlyOS{
		disk: func(context.Context, uint32) (OSDisk, error) { return OSDisk{Offline: true}, nil },
		set: func(_ context.Context, number uint32, _ bool) error {
			return &host.Error{Op: "SetDiskOnline", Object: diskObject(number), Kind: host.KindDenied, Cause: cause}
		},
	}
	a := newTestAgent(t, os, Policy{})
	err := a.SetDiskState(context.Background(), 3, true)
	const want = "SetDiskState disk 3: access denied: SetDiskOnline: Windows error 5"
	if err == nil || err.Error() != want || !errors.Is(err, cause) || !host.IsKind(err, host.KindDenied) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestAuditHasOneLineForEachChange(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	os := &diskOnlyOS{
		disk: func(_ context.Context, number uint32) (OSDisk, error) {
			return OSDisk{Offline: true, System: number == 0}, nil
		},
		set: func(context.Context, uint32, bool) error { return nil },
	}
	a := newTestAgent(t, os, Policy{Logger: slog.New(slog.NewTextHandler(&text, nil))})
	ctx := host.WithCaller(context.Background(), host.Caller{PID: 42, Image: `C:\d\driver.exe`})
	_, _ = a.GetDiskState(ctx, 1)
	if err := a.SetDiskState(ctx, 1, true); err != nil {
		t.Error(err)
	}
	if err := a.Mkdir(ctx, "C:\\k\\x\ny"); !host.IsKind(err, host.KindInvalid) {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `op=SetDiskState object="disk 1" result=ok duration=`) ||
		!strings.Contains(lines[1], "op=Mkdir") || !strings.Contains(lines[1], " result=invalid duration=") {
		t.Errorf("audit is:\n%s", text.String())
	}
	for _, line := range lines {
		if !strings.Contains(line, ` callerPID=42 callerImage=C:\d\driver.exe`) {
			t.Errorf("it does not say who called: %s", line)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	os := &diskOnlyOS{disk: func(_ context.Context, number uint32) (OSDisk, error) { return OSDisk{Number: number}, nil }}
	a, err := New(os, Policy{Roots: []string{`C:\k`}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.GetDiskState(context.Background(), 1); err != nil {
			b.Fatal(err)
		}
	}
}
