package csikit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/csikit/internal/rules"
)

// errorBytesMax bounds the text of an error: it travels in a header, and some clients
// take no more than 8 KiB of those.
const errorBytesMax = 4 << 10

// chain is what every call of CSI goes through: limits, rules, locks, a time limit,
// and at the end one status, one line in the log and one observation.
type chain struct {
	methods  map[string]*method
	checker  *rules.Checker
	locks    *locks
	flights  *flights
	probes   *probes
	slots    chan struct{} // one for each handler that has not returned
	stopping atomic.Bool
	timeout  time.Duration
	metrics  *metrics
	logger   *slog.Logger
}

// unary is the interceptor. Calls that are not of CSI, as of the health service,
// go by.
func (c *chain) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	m := c.methods[info.FullMethod]
	message, ok := request.(proto.Message)
	if m == nil || !ok {
		return handler(ctx, request)
	}
	started := time.Now()
	if m.isProbe {
		o := c.probes.run(ctx, c.timeout, func(ctx context.Context) (any, error) { return handler(ctx, request) })
		return o.answer, c.finish(m, message, started, o.err)
	}
	// The request is the handler's, who may take its maps apart, even after his caller
	// has gone. What is written down, and which secrets it had, is told by a copy.
	told := proto.Clone(message)
	bounded, cancel := withDeadline(ctx, c.timeout)
	o := c.run(bounded, cancel, m, told, func() (any, error) { return handler(bounded, request) })
	return o.answer, c.finish(m, told, started, o.err)
}

// run runs a handler within the limits. cancel ends ctx, and is called at the end:
// a handler that is not finished then has outlived ctx anyway.
func (c *chain) run(ctx context.Context, cancel func(), m *method, request proto.Message, handler func() (any, error)) outcome {
	defer cancel()
	if violation := c.checker.Check(request); violation != nil {
		return outcome{err: violation}
	}
	key := flight{method: m.name, subject: subjectOf(request)}
	holds, err := c.admit(key, request)
	if err != nil {
		return outcome{err: err}
	}
	started := time.Now()
	return c.flights.run(ctx, key, func() (any, error) { return interruptible(ctx, handler) }, func(o outcome, late bool) {
		c.locks.release(holds)
		<-c.slots
		if late {
			c.logLate(m, request, time.Since(started), o.err)
		}
	})
}

// admit takes what a call needs, or says why it cannot be now. Too many calls are not
// ErrExhausted: in CSI that says of a node that it takes no more volumes, and of a
// place that nothing can be made there, and callers act on it.
//
// Source: CSI spec.md, ControllerPublishVolume Errors and CreateVolume Errors.
func (c *chain) admit(key flight, request any) ([]hold, error) {
	if c.stopping.Load() {
		return nil, fmt.Errorf("%w: the driver stops", ErrUnavailable)
	}
	if err := c.flights.admit(key); err != nil {
		return nil, err
	}
	holds := holdsOf(request)
	if err := c.locks.acquire(holds); err != nil {
		return nil, err
	}
	select {
	case c.slots <- struct{}{}:
		return holds, nil
	default:
		c.locks.release(holds)
		return nil, fmt.Errorf("%w: %d calls are running, which is the limit", ErrUnavailable, cap(c.slots))
	}
}

// withDeadline bounds a call whose caller did not. gRPC ends the context of one
// whose caller did.
func withDeadline(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// finish makes the status of a call and writes it down. It returns nil for success.
func (c *chain) finish(m *method, request proto.Message, started time.Time, err error) error {
	took := time.Since(started)
	if err == nil {
		c.metrics.observe(m, codes.OK, took)
		c.logSuccess(m, request, took)
		return nil
	}
	code := codeOf(err)
	text := textOf(err, request)
	c.metrics.observe(m, code, took)
	c.logFailure(m, request, took, code, text, err)
	return statusWith(code, text)
}

// textOf is the message of an error without the secrets of its request. A request
// against the rules may be of any size; the text about it holds nothing of it.
func textOf(err error, request proto.Message) string {
	if isViolation(err) {
		return err.Error()
	}
	return cut(strings.ToValidUTF8(secretsOf(request).scrub(messageOf(err)), "?"), errorBytesMax)
}

func isViolation(err error) bool {
	var violation *rules.Violation
	return errors.As(err, &violation)
}

// wait returns when every handler has returned or ctx ends, and how many are left.
func (c *chain) wait(ctx context.Context) (left int) {
	taken := 0
	defer func() {
		for range taken {
			<-c.slots
		}
	}()
	for taken < cap(c.slots) {
		select {
		case c.slots <- struct{}{}:
			taken++
		case <-ctx.Done():
			return len(c.slots) - taken
		}
	}
	select {
	case <-c.probes.idle():
		return 0
	case <-ctx.Done():
		return 1
	}
}
