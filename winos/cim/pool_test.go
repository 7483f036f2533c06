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
		if err := p.start(ctx, func(int) { close(running); <-release }); err != nil {
			t.Fatal(err)
		}
		<-running
		cancel()
	}
	done := make(chan struct{})
	if err := p.start(t.Context(), func(int) { close(done) }); err != nil {
		t.Fatal(err)
	}
	<-done
	close(release)
	for living.Load() > workers {
		time.Sleep(time.Millisecond)
	}
	if err := p.close(); err != nil || living.Load() != 0 {
		t.Errorf("%d workers are left, %v", living.Load(), err)
	}
	if err := p.start(t.Context(), func(int) {}); !errors.Is(err, errClosed) {
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
	if err := p.start(t.Context(), func(int) { <-release }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := p.start(ctx, func(int) { t.Error("a job ran beside another") }); !errors.Is(err, context.DeadlineExceeded) {
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
