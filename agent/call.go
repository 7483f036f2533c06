package agent

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// Observer is told of calls into the operating system that do not come back.
// Its methods must neither block nor call the agent.
type Observer interface {
	// CallHung is called once for an operation that still runs although its
	// caller was given KindTimeout. Its object stays locked until it ends.
	CallHung(op, object string, running time.Duration)
	// HungCallEnded is called when such an operation has come back after all.
	HungCallEnded(op, object string, ran time.Duration)
}

// call is one operation on its way: what it is, and which locks it holds.
type call struct {
	agent   *Agent
	op      string
	object  string
	mutates bool // changes something, so it is in the audit
	caller  host.Caller
	secrets []string // texts of the request for no log and no error
	started time.Time
	places  []want // the locks settle took; used by the job alone

	// The rest belongs to the mutex of the lock table.
	held      []want
	waiting   bool // for a lock
	ended     bool
	abandoned bool
	hung      bool
	hangTimer *time.Timer
}

func (a *Agent) query(op, object string) *call {
	return &call{agent: a, op: op, object: object, started: time.Now()}
}

func (a *Agent) mutation(ctx context.Context, op, object string) *call {
	c := a.query(op, object)
	c.mutates = true
	c.caller, _ = host.CallerOf(ctx)
	return c
}

// refused ends a call that did not get as far as the operating system.
func (c *call) refused(err error) error {
	err = c.named(err)
	c.audit(err)
	return err
}

// named says which call an error is of, without the call's secrets.
func (c *call) named(err error) error { return c.conceal(named(c.op, c.object, err)) }

// run takes the locks, carries out job and returns its result. When ctx or the
// policy's deadline ends first, the caller goes even if the operating system does
// not come back: the job then goes on alone with its locks, and later calls on
// its objects wait for it no longer than their own deadline.
func run[T any](ctx context.Context, c *call, wants []want, job func(context.Context) (T, error)) (T, error) {
	var none T
	bounded, cancel := c.agent.bounded(ctx)
	defer cancel()
	if err := c.agent.locks.acquire(bounded, c.op, wants); err != nil {
		return none, c.refused(err)
	}
	c.held = wants
	if leave := c.agent.leaver(ctx, bounded); leave != nil {
		return inPlace(bounded, c, leave, job)
	}
	return handedOver(bounded, c, job)
}

// handedOver runs job in another goroutine, which is left behind when ctx ends first.
func handedOver[T any](ctx context.Context, c *call, job func(context.Context) (T, error)) (T, error) {
	var value, none T
	var err error
	wake := make(chan bool, 2) // true from the job, false from the watch, once each
	c.agent.workers.start(func() {
		value, err = guarded(ctx, c, job)
		err = c.named(err)
		c.end(err)
		wake <- true
	})
	c.agent.watch.add(ctx, c, func() { wake <- false })
	if ended := <-wake; !ended {
		if c.abandon() {
			// value and err are the job's alone now.
			return none, c.named(ctx.Err())
		}
		<-wake // the job has ended, or gives up waiting for a lock
	}
	c.agent.watch.remove(c)
	return value, err
}

// inPlace runs job in the caller's goroutine, whose caller leaves by itself when
// ctx ends: waking two goroutines for each call is most of what a cheap call
// would cost.
func inPlace[T any](ctx context.Context, c *call, leave func(), job func(context.Context) (T, error)) (T, error) {
	c.agent.watch.add(ctx, c, func() {
		if c.abandon() {
			leave()
		}
	})
	value, err := guarded(ctx, c, job)
	err = c.named(err)
	c.agent.watch.remove(c)
	if c.end(err) {
		var none T
		return none, c.named(ctx.Err()) // what its caller was told
	}
	return value, err
}

// leaver returns the Leave of the caller when the job may run in the caller's
// goroutine: its deadline is the one that counts, and no call hangs at present.
// While one does, goroutines of callers are not risked.
func (a *Agent) leaver(ctx, bounded context.Context) func() {
	if ctx != bounded || a.leftBehind.Load() > 0 {
		return nil
	}
	caller, _ := host.CallerOf(ctx)
	return caller.Leave
}

// Pauses between the attempts of retryBusy.
const (
	busyPauseMin = 2 * time.Millisecond
	busyPauseMax = 64 * time.Millisecond
)

// retryBusy repeats what another call stood in the way of, for a few moments:
// objects are held open while they are looked at, and one that is held cannot
// be deleted.
func retryBusy(ctx context.Context, do func() error) error {
	for pause := busyPauseMin; ; pause *= 2 {
		err := do()
		if !host.IsKind(err, host.KindBusy) || pause > busyPauseMax {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// exec is run for operations without a result.
func exec(ctx context.Context, c *call, wants []want, job func(context.Context) error) error {
	_, err := run(ctx, c, wants, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, job(ctx)
	})
	return err
}

// guarded turns a panic below the agent into an error, so that one bad answer
// of the operating system does not end every call of the node.
func guarded[T any](ctx context.Context, c *call, job func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			text := fmt.Sprint(cause)
			if c.repeatsSecret(text) {
				text = errWithheld.Error()
			}
			c.agent.log.Error("panic in operation", "op", c.op, "object", c.object,
				"panic", text, "stack", string(debug.Stack()))
			err = refuse(host.KindInternal, "panic: %s", text)
		}
	}()
	return job(ctx)
}

// bounded gives ctx the deadline of the policy unless it has a nearer one.
func (a *Agent) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= a.policy.CallTimeout {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, a.policy.CallTimeout)
}

// lock takes further locks in the middle of a job. They must come after those
// the call holds in the order of lockClass.
func (c *call) lock(ctx context.Context, wants ...want) error {
	t := c.agent.locks
	c.setWaiting(true)
	err := t.acquire(ctx, c.op, wants)
	c.setWaiting(false)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.held = append(c.held[:len(c.held):len(c.held)], wants...)
	if c.abandoned {
		c.markStuckLocked(wants)
	}
	// A caller that saw this call wait stays for its answer, so nothing that
	// could hang may begin once the context has ended.
	return ctx.Err()
}

func (c *call) setWaiting(waiting bool) {
	c.agent.locks.mu.Lock()
	c.waiting = waiting
	c.agent.locks.mu.Unlock()
}

// unlock gives back the locks that lock took last.
func (c *call) unlock(wants []want) {
	t := c.agent.locks
	t.mu.Lock()
	defer t.mu.Unlock()
	c.held = c.held[:len(c.held)-len(wants)]
	for _, w := range wants {
		t.releaseOneLocked(w, c.abandoned)
	}
}

// end gives the locks back and writes the audit line. It reports whether the
// caller has gone before.
func (c *call) end(err error) (abandoned bool) {
	t := c.agent.locks
	t.mu.Lock()
	c.ended = true
	if c.hangTimer != nil {
		c.hangTimer.Stop()
	}
	for _, w := range c.held {
		t.releaseOneLocked(w, c.abandoned)
	}
	hung, abandoned := c.hung, c.abandoned
	t.mu.Unlock()
	c.audit(err)
	if abandoned {
		c.agent.leftBehind.Add(-1)
	}
	if hung {
		c.agent.hungCalls.Add(-1)
		c.agent.observer.HungCallEnded(c.op, c.object, time.Since(c.started))
	}
	return abandoned
}

// abandon notes that the caller goes while the job still runs. It reports false
// when the answer is there or about to be: the job has ended, or waits for a
// lock, which it gives up by itself.
func (c *call) abandon() bool {
	t := c.agent.locks
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.ended || c.waiting {
		return false
	}
	c.abandoned = true
	c.agent.leftBehind.Add(1)
	c.markStuckLocked(c.held)
	// A call that obeys its context ends within moments; only what goes on
	// after that hangs.
	c.hangTimer = time.AfterFunc(c.agent.policy.HangGrace, c.reportHung)
	return true
}

func (c *call) markStuckLocked(wants []want) {
	for _, w := range wants {
		l := c.agent.locks.locks[w.key]
		l.stuck++
		l.holder, l.since = c.op, c.started
	}
}

func (c *call) reportHung() {
	t := c.agent.locks
	t.mu.Lock()
	if c.ended {
		t.mu.Unlock()
		return
	}
	c.hung = true
	c.agent.hungCalls.Add(1)
	running := time.Since(c.started)
	c.agent.observer.CallHung(c.op, c.object, running) // before end, which reports that it came back, can go on
	t.mu.Unlock()
	c.agent.log.Warn("operation hangs in the operating system", "op", c.op, "object", c.object, "running", running)
}

// audit writes the one line every change of the node leaves behind. It says how
// the change ended, in one word: why it failed goes to the caller with the error,
// and into the log where that arrives.
func (c *call) audit(err error) {
	ctx := context.Background()
	if !c.mutates || !c.agent.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	result := "ok"
	if err != nil {
		result = host.KindOf(err).String()
	}
	c.agent.log.LogAttrs(ctx, slog.LevelInfo, "audit",
		slog.String("op", c.op), slog.String("object", c.object),
		slog.String("result", result), slog.Duration("duration", time.Since(c.started)),
		slog.Uint64("callerPID", uint64(c.caller.PID)), slog.String("callerImage", c.caller.Image))
}

// silentObserver is used when the policy names no Observer.
type silentObserver struct{}

func (silentObserver) CallHung(string, string, time.Duration)      {}
func (silentObserver) HungCallEnded(string, string, time.Duration) {}
