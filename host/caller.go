package host

import "context"

// Caller is who stands behind a call that a server makes on a Host.
type Caller struct {
	// PID is the caller's process id, 0 when it is not known.
	PID uint32
	// Image is the path of the caller's program, empty when it is not known.
	Image string
	// Leave is set when the caller goes by itself as soon as the context ends,
	// as a gRPC client with a deadline of its own does. The Host may then return
	// later than the context ends; it calls Leave, at most once and from any
	// goroutine, when it sees that this is so. Nil means that somebody waits for
	// the return.
	Leave func()
}

type callerKey struct{}

// callerContext is a context with its caller in one piece.
type callerContext struct {
	context.Context
	caller Caller
}

func (c *callerContext) Value(key any) any {
	if key == (callerKey{}) {
		return &c.caller
	}
	return c.Context.Value(key)
}

// WithCaller returns a context that says who calls.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return &callerContext{ctx, caller}
}

// CallerOf returns who calls, and false when nobody said.
func CallerOf(ctx context.Context) (Caller, bool) {
	caller, ok := ctx.Value(callerKey{}).(*Caller)
	if !ok {
		return Caller{}, false
	}
	return *caller, true
}
