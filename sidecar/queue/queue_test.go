package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/csi-windows/csi-windows/sidecar/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log keeps what is logged.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(data)
}

func (l *log) lines() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), "\n")
}

// start runs a queue until the function given back is called.
func start(workers int, into *log, handle queue.Handler) (q *queue.Queue, stop func()) {
	q = queue.New(queue.Config{
		Name: "test", Workers: workers, RetryMin: time.Second, RetryMax: 8 * time.Second, Log: slog.New(slog.NewTextHandler(into, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); q.Run(ctx, handle) }()
	return q, func() { cancel(); <-done }
}

func TestAFailedKeyComesBackLaterEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		var times []time.Duration
		begin := time.Now()
		q, stop := start(1, &l, func(context.Context, string) error {
			times = append(times, time.Since(begin).Round(100*time.Millisecond))
			if len(times) < 7 {
				return errors.New("no luck")
			}
			return nil
		})
		q.Add("key")
		time.Sleep(time.Minute)
		stop()
		want := []time.Duration{0, 1, 3, 7, 15, 23, 31}
		if len(times) != len(want) {
			t.Fatalf("handled at %v, want %d times", times, len(want))
		}
		for i := range want {
			if got := times[i].Round(time.Second); got != want[i]*time.Second {
				t.Errorf("time %d: %v, want %v", i, got, want[i]*time.Second)
			}
		}
		if l.lines() != 6 {
			t.Errorf("%d lines were logged, want one for each of 6 failures", l.lines())
		}
	})
}

func TestAKeyThatIsNotReadyCountsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		calls := 0
		q, stop := start(1, &l, func(context.Context, string) error {
			if calls++; calls <= 5 {
				return queue.After(2 * time.Second)
			}
			return nil
		})
		q.Add("key")
		time.Sleep(10*time.Second + time.Millisecond)
		stop()
		if calls != 6 || l.lines() != 0 {
			t.Errorf("%d calls in 10 s, want 6; %d lines logged, want none", calls, l.lines())
		}
	})
}

func TestOneKeyIsNeverHandledTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		var now, most, calls atomic.Int32
		q, stop := start(8, &l, func(context.Context, string) error {
			calls.Add(1)
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		})
		for range 20 {
			q.Add("key")
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		stop()
		if most.Load() != 1 || calls.Load() < 5 {
			t.Errorf("%d at once in %d calls, want 1 and several calls", most.Load(), calls.Load())
		}
	})
}

func TestASlowKeyHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		var quick atomic.Int32
		q, stop := start(2, &l, func(ctx context.Context, key string) error {
			if key == "slow" {
				<-ctx.Done()
				return ctx.Err()
			}
			quick.Add(1)
			return nil
		})
		q.Add("slow")
		for _, key := range []string{"a", "b", "c"} {
			q.Add(key)
		}
		synctest.Wait()
		if quick.Load() != 3 {
			t.Errorf("%d quick keys were handled beside the slow one, want 3", quick.Load())
		}
		stop()
		if l.lines() != 0 {
			t.Errorf("the end was logged as a failure:\n%s", l.text.String())
		}
	})
}

func TestNothingBeginsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		var calls atomic.Int32
		q, stop := start(1, &l, func(ctx context.Context, _ string) error {
			calls.Add(1)
			<-ctx.Done()
			return nil
		})
		for _, key := range []string{"a", "b", "c"} {
			q.Add(key)
		}
		synctest.Wait()
		stop()
		if calls.Load() != 1 {
			t.Errorf("%d keys were begun, want 1", calls.Load())
		}
	})
}
