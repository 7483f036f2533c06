package wire

import (
	"context"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// streamTimeout is how long a stream may last. The only streams are those of the
// reflection service, whose clients ask and leave.
const streamTimeout = time.Minute

// boundStream gives every stream an end: a deadline, and the end of serving. It
// is not on the way of the calls of the APIs.
func (p *pipeServer) boundStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	defer func() {
		if value := recover(); value != nil {
			p.logger.Error("stream failed", "api", p.version.api.String(), "error", &panicError{value: value}, "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, errServerFailed.Error())
		}
	}()
	ctx, cancel := context.WithTimeout(stream.Context(), streamTimeout)
	defer cancel()
	return handle(srv, &boundedStream{ServerStream: stream, ctx: ctx, draining: p.draining})
}

// boundedStream is a stream whose RecvMsg ends with its context or its server.
type boundedStream struct {
	grpc.ServerStream
	ctx      context.Context
	draining <-chan struct{}
}

// Context returns the context with the deadline.
func (s *boundedStream) Context() context.Context { return s.ctx }

// RecvMsg waits for the next message, the deadline or the end of serving. The
// goroutine that still waits ends with the stream, which ends when its handler
// returns the error.
func (s *boundedStream) RecvMsg(m any) error {
	received := make(chan error, 1)
	go func() { received <- s.ServerStream.RecvMsg(m) }()
	select {
	case err := <-received:
		return err
	case <-s.draining:
		return status.Error(codes.Unavailable, "the server stops")
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}
