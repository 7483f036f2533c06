package wire

import (
	"context"
	"sync"
	"time"
)

// deadlineContext is a context with a deadline that is watched only once somebody
// waits for it. Most calls are answered before that, and a timer for each of them
// would be a good part of what a call costs.
type deadlineContext struct {
	context.Context
	deadline time.Time

	mu      sync.Mutex
	watched context.Context // nil until somebody waits
	cancel  context.CancelFunc
	ended   bool
}

// withTimeout returns a context that ends with ctx or after the timeout, whichever
// is first. end must be called at the end of the call.
func withTimeout(ctx context.Context, timeout time.Duration) (bounded context.Context, end func()) {
	now := time.Now()
	if deadline, ok := ctx.Deadline(); ok && deadline.Sub(now) <= timeout {
		return ctx, func() {}
	}
	c := &deadlineContext{Context: ctx, deadline: now.Add(timeout)}
	return c, c.end
}

func (c *deadlineContext) watch() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched == nil {
		c.watched, c.cancel = context.WithDeadline(c.Context, c.deadline)
	}
	if c.ended {
		c.cancel() // whoever kept the context waits for nothing
	}
	return c.watched
}

// end ends the context, watched or not.
func (c *deadlineContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
	}
}

// Deadline returns when the context ends at the latest.
func (c *deadlineContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done starts the watch.
func (c *deadlineContext) Done() <-chan struct{} { return c.watch().Done() }

// Err starts the watch.
func (c *deadlineContext) Err() error { return c.watch().Err() }

// Value asks the watching context once there is one: that is how contexts made of
// this one find it without a goroutine of their own.
func (c *deadlineContext) Value(key any) any {
	c.mu.Lock()
	watched := c.watched
	c.mu.Unlock()
	if watched == nil {
		return c.Context.Value(key)
	}
	return watched.Value(key)
}
