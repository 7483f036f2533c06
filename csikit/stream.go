package csikit

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// stream is the interceptor of calls that are answered in pieces. All of CSI's have
// one request and only read. Without a deadline of the caller the time limit is for
// each piece: a large volume takes as long as it takes.
func (c *chain) stream(server any, inner grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	m := c.methods[info.FullMethod]
	if m == nil {
		return handler(server, inner)
	}
	started := time.Now()
	request := m.request.New().Interface()
	if err := inner.RecvMsg(request); err != nil {
		return err // nothing was asked yet
	}
	ctx, cancel := context.WithCancelCause(inner.Context())
	s := &answerStream{ServerStream: inner, ctx: ctx, request: request, pieceTimeout: c.timeout}
	if _, ok := ctx.Deadline(); !ok {
		s.idle = time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) })
		defer s.idle.Stop()
	}
	o := c.run(ctx, func() { cancel(nil) }, m, request, func() (any, error) { return nil, handler(server, s) })
	s.closed.Store(true)
	return c.finish(m, request, started, o.err)
}

// answerStream gives its handler the request that was received already, and the
// context of the call. A handler that nobody waits for any more sends nothing.
type answerStream struct {
	grpc.ServerStream
	ctx          context.Context
	request      proto.Message
	received     bool
	closed       atomic.Bool
	idle         *time.Timer // nil when the caller has a deadline
	pieceTimeout time.Duration
}

// Context is that of the call, which may end before the caller does.
func (s *answerStream) Context() context.Context { return s.ctx }

// RecvMsg returns the one request.
func (s *answerStream) RecvMsg(into any) error {
	message, ok := into.(proto.Message)
	if !ok || s.received {
		return io.EOF
	}
	s.received = true
	proto.Merge(message, s.request)
	return nil
}

// SendMsg sends one piece.
func (s *answerStream) SendMsg(piece any) error {
	if s.closed.Load() || s.ctx.Err() != nil {
		return fmt.Errorf("the call has ended: %w", context.Cause(s.ctx))
	}
	if s.idle != nil {
		s.idle.Reset(s.pieceTimeout)
	}
	return s.ServerStream.SendMsg(piece)
}
