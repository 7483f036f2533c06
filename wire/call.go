package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/host"
)

// Call names one call of a pipe.
type Call struct {
	API    API
	Method string // as this version names it
	// PID is the process id of the caller, 0 when it is not known.
	PID uint32
}

// Observer is told of every call. Its methods run on the way of the call: they
// must not block, and are called by many goroutines at once.
type Observer interface {
	CallStarted(call Call)
	CallEnded(call Call, code codes.Code, duration time.Duration)
}

// noObserver is the Observer of a server that has none.
type noObserver struct{}

func (noObserver) CallStarted(Call)                          {}
func (noObserver) CallEnded(Call, codes.Code, time.Duration) {}

// panicError is a panic of a job. Only the log sees what it says.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// errServerFailed is what a caller is told of a panic.
var errServerFailed = errors.New("the server failed; its log says how")

// handler makes the gRPC handler of a method. Everything that happens to a call
// happens in handle, without a chain of interceptors.
func (p *pipeServer) handler(m method) grpc.MethodHandler {
	call := Call{API: p.version.api, Method: m.name}
	return func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		return p.handle(ctx, &m, call, decode)
	}
}

// handle is the way of one call: decode, count, serve, make the status, log.
func (p *pipeServer) handle(ctx context.Context, m *method, call Call, decode func(any) error) (any, error) {
	from := callerOf(ctx)
	call.PID = from.pid
	request, err := m.decodeRequest(decode)
	p.observer.CallStarted(call)
	started := time.Now()
	var answer proto.Message
	if err == nil {
		answer, err = p.limited(ctx, m, request, from)
		err = conceal(err, request)
	}
	if err == nil {
		duration := time.Since(started)
		p.observer.CallEnded(call, codes.OK, duration)
		if p.logger.Enabled(ctx, slog.LevelDebug) {
			p.logger.LogAttrs(ctx, slog.LevelDebug, "call", call.attrs(codes.OK, duration)...)
		}
		return answer, nil
	}
	failed := m.statusOf(ctx, err)
	duration := time.Since(started)
	p.observer.CallEnded(call, failed.Code(), duration)
	p.logFailure(ctx, call, failed.Code(), duration, err)
	return nil, failed.Err()
}

// limited serves a call if the pipe is not at its limit, and gives it a deadline.
func (p *pipeServer) limited(ctx context.Context, m *method, request proto.Message, from callerInfo) (proto.Message, error) {
	f := flight{pipe: p}
	defer f.end()
	if p.calls.Add(1) > int64(p.limits.MaxConcurrentCallsPerPipe) {
		return nil, errTooManyCalls
	}
	caller := host.Caller{PID: from.pid, Image: from.image}
	bounded, end := withTimeout(ctx, p.limits.CallTimeout)
	defer end()
	switch {
	case p.version.api.Group == GroupNode:
		defer f.watchTask(ctx, bounded, m)()
	case bounded == ctx: // the client's deadline, at which gRPC lets it go
		caller.Leave = f.leave
	}
	return m.serve(host.WithCaller(bounded, caller), p.site, request)
}

// errTooManyCalls is a call beyond Limits.MaxConcurrentCallsPerPipe.
var errTooManyCalls = errors.New("too many calls at once on this pipe; try again")

// decodeRequest reads a request into the newest message. An error of decode is
// gRPC's own, such as a message that is too large, and stands.
func (m *method) decodeRequest(decode func(any) error) (proto.Message, error) {
	read := reading{request: m.newRequest()}
	if err := decode(&read); err != nil {
		return nil, err
	}
	if read.err != nil {
		return nil, m.malformed(errors.New("the request is no such message"))
	}
	if err := checkPairing(read.request); err != nil {
		return nil, m.malformed(err)
	}
	if m.request == nil {
		return read.request, nil
	}
	return m.request.upgrade(read.request, m.label)
}

func (m *method) newRequest() proto.Message {
	if m.request != nil {
		return m.request.new()
	}
	return m.job.newRequest()
}

func (m *method) newResponse() proto.Message {
	if m.response != nil {
		return m.response.new()
	}
	return m.job.newResponse()
}

func (m *method) malformed(cause error) error {
	return &host.Error{Op: "Decode", Object: m.label, Kind: host.KindInvalid, Cause: cause}
}

// serve does the job and writes the answer in this version's shape.
func (m *method) serve(ctx context.Context, s *site, request proto.Message) (answer proto.Message, err error) {
	defer func() {
		if value := recover(); value != nil {
			answer, err = nil, &panicError{value: value, stack: debug.Stack()}
		}
	}()
	answer, err = m.job.serve(ctx, s, request)
	if err != nil || m.response == nil {
		return answer, err
	}
	return m.response.downgrade(answer)
}

// statusOf makes the status of a failed call.
func (m *method) statusOf(ctx context.Context, err error) *status.Status {
	var panicked *panicError
	switch {
	case errors.As(err, &panicked):
		return statusOf(m.op, &host.Error{Op: m.op, Kind: host.KindInternal, Cause: errServerFailed})
	case errors.Is(err, errTooManyCalls):
		// gRPC's word for a full server, whatever the kind's own code is.
		return statusWithCode(codes.ResourceExhausted, &host.Error{Op: m.op, Kind: host.KindBusy, Cause: err})
	case errors.Is(ctx.Err(), context.Canceled):
		return status.New(codes.Canceled, "the caller has gone")
	}
	if s, ok := status.FromError(err); ok {
		return s
	}
	return statusOf(m.op, err)
}

// attrs are what a record says of a call.
func (c Call) attrs(code codes.Code, duration time.Duration) []slog.Attr {
	return []slog.Attr{
		slog.String("api", c.API.String()), slog.String("method", c.Method), slog.String("code", code.String()),
		slog.Duration("duration", duration), slog.Uint64("callerPID", uint64(c.PID)),
	}
}

// logFailure writes the one record of a failed call.
func (p *pipeServer) logFailure(ctx context.Context, call Call, code codes.Code, duration time.Duration, err error) {
	level := slog.LevelInfo
	switch code {
	case codes.Internal, codes.Unknown:
		level = slog.LevelError
	case codes.ResourceExhausted, codes.DeadlineExceeded, codes.Unavailable:
		level = slog.LevelWarn
	}
	attrs := append(call.attrs(code, duration), slog.Any("error", err))
	var panicked *panicError
	if errors.As(err, &panicked) {
		attrs = append(attrs, slog.String("stack", string(panicked.stack)))
	}
	p.logger.LogAttrs(ctx, level, "call failed", attrs...)
}

// callerOf returns what is known of the caller.
func callerOf(ctx context.Context) callerInfo {
	caller, ok := peer.FromContext(ctx)
	if !ok {
		return callerInfo{}
	}
	info, _ := caller.AuthInfo.(callerInfo)
	return info
}
