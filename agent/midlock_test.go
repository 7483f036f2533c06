package agent

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// overdue is a context that, once it is over, has ended for whoever asks, and not
// yet for whoever waits: what a goroutine sees that is not woken at once.
type overdue struct {
	context.Context
	over atomic.Bool
	done chan struct{}
}

func (o *overdue) Deadline() (time.Time, bool) { return time.Now(), true }
func (o *overdue) Done() <-chan struct{}       { return o.done }

func (o *overdue) Err() error {
	if o.over.Load() {
		return context.DeadlineExceeded
	}
	return nil
}

// A call whose time is up while its job waits for a lock stays for the job's answer.
func TestCallThatEndsWhileItsJobWaitsForALock(t *testing.T) {
	t.Parallel()
	a := newTestAgent(t, &diskOnlyOS{}, Policy{CallTimeout: time.Minute})
	taken := []want{exclusive(lockPlace, 0, "taken")}
	if err := a.locks.acquire(t.Context(), "other", taken); err != nil {
		t.Fatal(err)
	}
	ctx := &overdue{Context: t.Context(), done: make(chan struct{})}
	answer := make(chan error, 1)
	go func() {
		c := a.query("GetDiskState", "1")
		answer <- exec(ctx, c, nil, func(ctx context.Context) error {
			return c.lock(ctx, exclusive(lockPlace, 0, "taken"))
		})
	}()
	eventually(t, "the job waits", func() bool {
		a.locks.mu.Lock()
		defer a.locks.mu.Unlock()
		return len(a.locks.locks[taken[0].key].queue) == 1
	})
	ctx.over.Store(true)
	select {
	case err := <-answer:
		t.Fatalf("answered before the job: %v", err)
	case <-time.After(20 * watchInterval):
	}
	close(ctx.done)
	if err := <-answer; err == nil {
		t.Error("a job without its lock has succeeded")
	}
	a.locks.release(taken)
}
