package cim

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// Invariant 7: calls that hang in a provider leave room for the others.
func TestInvariant7_HungCallsLeaveRoom(t *testing.T) {
	t.Parallel()
	const workers = 2
	var living atomic.Int32
	p, err := newPool(workers, func() (int, func(), error) {
		living.Add(1)
		return 0, func() { living.Add(-1) }, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	for range workers {
		ctx, cancel := context.WithCancel(t.Context())
		running := make(chan struct{})
		if err := p.start(ctx, func(int) { close(running); <-release }, nil); err != nil {
			t.Fatal(err)
		}
		<-running
		cancel()
	}
	done := make(chan struct{})
	if err := p.start(t.Context(), func(int) { close(done) }, nil); err != nil {
		t.Fatal(err)
	}
	<-done
	for got := p.stats(); got.Hung < workers || got.HungTotal < workers; got = p.stats() {
		time.Sleep(time.Millisecond) // the ends of the contexts are told beside us
	}
	if got := p.stats(); got.Hung != workers || got.HungTotal != workers || got.Workers == 0 {
		t.Errorf("stats with %d hung calls: %+v", workers, got)
	}
	close(release)
	for living.Load() > workers {
		time.Sleep(time.Millisecond)
	}
	for p.stats().Hung > 0 {
		time.Sleep(time.Millisecond)
	}
	if got := p.stats(); got.HungTotal != workers {
		t.Errorf("stats after the calls came back: %+v", got)
	}
	if err := p.close(); err != nil || living.Load() != 0 {
		t.Errorf("%d workers are left, %v", living.Load(), err)
	}
	if err := p.start(t.Context(), func(int) {}, nil); !errors.Is(err, errClosed) {
		t.Errorf("a closed pool says %v", err)
	}
}

// Calls that only take their time share the workers there are.
func TestPoolIsBounded(t *testing.T) {
	t.Parallel()
	p, err := newPool(1, func() (int, func(), error) { return 0, func() {}, nil })
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	if err := p.start(t.Context(), func(int) { <-release }, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := p.start(ctx, func(int) { t.Error("a job ran beside another") }, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(release)
	if err := p.close(); err != nil {
		t.Error(err)
	}
}

func TestPoolWithoutWorkers(t *testing.T) {
	t.Parallel()
	failure := errors.New("no apartment")
	if _, err := newPool(1, func() (int, func(), error) { return 0, nil, failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

// busyPool makes a pool of two workers at the most. It has one, which is busy until
// release is closed: a second may come only when the first has its job.
func busyPool(t *testing.T, enter func() (int, func(), error)) (p *pool[int], release chan struct{}) {
	t.Helper()
	p, err := newPool(1, enter)
	if err != nil {
		t.Fatal(err)
	}
	release = make(chan struct{})
	if err := p.start(t.Context(), func(int) { <-release }, nil); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.max = 2
	return p, release
}

// A worker that cannot enter fails the call it was started for, and no other.
func TestWorkerThatCannotEnter(t *testing.T) {
	t.Parallel()
	failure := errors.New("no apartment")
	var entered atomic.Int32
	p, release := busyPool(t, func() (int, func(), error) {
		if entered.Add(1) == 2 {
			return 0, nil, failure
		}
		return 0, func() {}, nil
	})
	failed := make(chan error, 1)
	if err := p.start(t.Context(), func(int) { failed <- nil }, func(err error) { failed <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	if err := p.start(t.Context(), func(int) { failed <- nil }, func(err error) { failed <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err != nil {
		t.Errorf("the worker after it: %v", err)
	}
	close(release)
	if err := p.close(); err != nil {
		t.Error(err)
	}
}

// A worker that cannot enter leaves its place to whoever waits for one, and has left
// it when the call that it fails is told.
func TestPlaceOfAWorkerThatCannotEnter(t *testing.T) {
	t.Parallel()
	failure := errors.New("no apartment")
	var entered atomic.Int32
	waits := make(chan struct{})
	p, release := busyPool(t, func() (int, func(), error) {
		if entered.Add(1) == 2 {
			<-waits
			return 0, nil, failure
		}
		return 0, func() {}, nil
	})
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() {
			if err := p.start(t.Context(), func(int) { ended <- nil }, func(err error) { ended <- err }); err != nil {
				ended <- err
			}
		}()
	}
	for both := false; !both; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		both = p.waiting == cap(ended)
		p.mu.Unlock()
	}
	close(waits)
	if first, second := <-ended, <-ended; (first == nil) == (second == nil) {
		t.Errorf("%v and %v, want one failure", first, second)
	}
	close(release)
	if err := p.close(); err != nil || p.waiting != 0 {
		t.Errorf("%d jobs wait, %v", p.waiting, err)
	}
}

// A goroutine on a thread that will not do is replaced, until one will.
func TestWorkerOnAnotherThread(t *testing.T) {
	t.Parallel()
	var entered atomic.Int32
	p, err := newPool(1, func() (int, func(), error) {
		if n := entered.Add(1); n < 4 {
			return 0, nil, errOtherThread
		}
		return 0, func() {}, nil
	})
	if err != nil || p.stats().Workers != 1 {
		t.Fatalf("%+v, %v", p.stats(), err)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
}

// A panic of a job fails that job; the worker stays.
func TestJobThatPanics(t *testing.T) {
	t.Parallel()
	p, err := newPool(1, func() (int, func(), error) { return 0, func() {}, nil })
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	for _, panics := range []bool{true, false} {
		if err := p.start(t.Context(), func(int) {
			if panics {
				panic("a bad answer")
			}
			failed <- nil
		}, func(err error) { failed <- err }); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; (err != nil) != panics {
			t.Errorf("panics %v: %v", panics, err)
		}
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
}

// A job whose context has ended is not run, although a worker stands idle.
func TestJobThatComesTooLate(t *testing.T) {
	t.Parallel()
	p, err := newPool(1, func() (int, func(), error) { return 0, func() {}, nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := p.start(ctx, func(int) { t.Error("it was run") }, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if err := p.close(); err != nil || p.stats().HungTotal != 0 {
		t.Errorf("%+v, %v", p.stats(), err)
	}
}
