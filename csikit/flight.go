package csikit

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// lateAnswerGrace is how long a call whose context has ended may still answer. A
// handler that heeds its context says more than that the time was up.
const lateAnswerGrace = 100 * time.Millisecond

// outcome is what a handler returned.
type outcome struct {
	answer any
	err    error
}

// panicError is a handler that panicked. The stack is for the log alone.
type panicError struct {
	value string
	stack []byte
}

func (e *panicError) Error() string { return "the driver panicked: " + e.value }

// protect runs a handler and makes an error of its panic.
func protect(handler func() (any, error)) (o outcome) {
	defer func() {
		if value := recover(); value != nil {
			o = outcome{err: &panicError{value: fmt.Sprint(value), stack: debug.Stack()}}
		}
	}()
	answer, err := handler()
	return outcome{answer, err}
}

// flight names calls of which one that hangs keeps others out.
type flight struct {
	method  string
	subject string
}

// flights run handlers. Each has a goroutine of its own, so that its caller gets an
// answer in time even if it never returns. Until it does, calls of the same flight
// are refused: a call that hangs costs one goroutine, however often it is repeated.
type flights struct {
	grace time.Duration // lateAnswerGrace
	hung  atomic.Int64  // handlers that outlive their context

	mu      sync.Mutex
	waiting map[flight]int // how many of hung, by flight
}

func newFlights() *flights { return &flights{grace: lateAnswerGrace, waiting: map[flight]int{}} }

// admit refuses a call while one like it hangs.
func (f *flights) admit(key flight) error {
	if f.hung.Load() == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting[key] > 0 {
		return fmt.Errorf("%w: an earlier %s of %q has not returned", ErrBusy, key.method, key.subject)
	}
	return nil
}

// run runs a handler and returns what it returned, or the end of ctx. ended is
// called once, when the handler has returned, before its caller knows; late then
// says that nobody waited for it.
func (f *flights) run(ctx context.Context, key flight, handler func() (any, error), ended func(o outcome, late bool)) outcome {
	done := make(chan outcome, 1)
	var abandoned atomic.Bool
	go func() {
		o := protect(handler)
		late := !abandoned.CompareAndSwap(false, true)
		if late {
			f.count(key, -1)
		}
		ended(o, late)
		done <- o
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	f.count(key, +1) // from now on: who repeats the call at once is refused too
	grace := time.NewTimer(f.grace)
	defer grace.Stop()
	select {
	case o := <-done:
		f.count(key, -1)
		return o
	case <-grace.C:
	}
	if !abandoned.CompareAndSwap(false, true) {
		f.count(key, -1)
		return <-done
	}
	return outcome{err: context.Cause(ctx)}
}

func (f *flights) count(key flight, by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hung.Add(int64(by))
	if f.waiting[key] += by; f.waiting[key] == 0 {
		delete(f.waiting, key)
	}
}

// probes run one Probe at a time, and give its answer to all who ask meanwhile:
// Probe needs no room and no lock, and still costs one goroutine when it hangs.
type probes struct {
	mu      sync.Mutex
	running *probe
}

type probe struct {
	done chan struct{}
	outcome
}

// run joins the Probe that runs, or starts one that may last for a time limit.
func (p *probes) run(ctx context.Context, limit time.Duration, handler func(context.Context) (any, error)) outcome {
	p.mu.Lock()
	current := p.running
	if current == nil {
		current = &probe{done: make(chan struct{})}
		p.running = current
		// The first who asks may leave; the others still want the answer.
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		go func() {
			defer cancel()
			current.outcome = protect(func() (any, error) { return handler(own) })
			p.mu.Lock()
			p.running = nil
			p.mu.Unlock()
			close(current.done)
		}()
	}
	p.mu.Unlock()
	select {
	case <-current.done:
		return current.outcome
	case <-ctx.Done():
		return outcome{err: context.Cause(ctx)}
	}
}

// idle returns a channel that is closed when no Probe runs.
func (p *probes) idle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		return p.running.done
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}
