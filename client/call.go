package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
)

// call does one operation of a group, given as its newest request. Every error is
// a *host.Error.
func call[A proto.Message](ctx context.Context, c *Client, group string, request proto.Message) (A, error) {
	var none A
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.callTimeout)
		defer cancel()
	}
	answer, err := c.call(ctx, group, request)
	if err != nil {
		return none, err
	}
	return answer.(A), nil
}

// call tries a second time when the first try found only a broken pipe: then no
// server has seen the request.
func (c *Client) call(ctx context.Context, group string, request proto.Message) (proto.Message, error) {
	answer, reached, err := c.try(ctx, group, request)
	if err != nil && !reached {
		answer, _, err = c.try(ctx, group, request)
	}
	return answer, err
}

// try makes one try. reached is false when the try found a broken pipe.
func (c *Client) try(ctx context.Context, group string, request proto.Message) (answer proto.Message, reached bool, err error) {
	op := wire.Op(request)
	l, err := c.acquire(ctx, op, group)
	if err != nil {
		return nil, true, err
	}
	defer l.release()
	method, ok := c.protocol.Method(l.api, request)
	if !ok {
		return nil, true, &host.Error{Op: op, Kind: host.KindUnsupported, Cause: fmt.Errorf("%s has no such method", l.api)}
	}
	var server peer.Peer
	answer, err = method.Invoke(ctx, l.conn, request, grpc.Peer(&server))
	if err == nil {
		return answer, true, nil
	}
	if status.Code(err) == codes.Unavailable && server.Addr == nil {
		c.groups[group].drop(l)
		return nil, false, wire.ErrorFromStatus(op, err)
	}
	return nil, true, failure(ctx, op, request, err)
}

// acquire returns the link of a group with the caller counted in.
func (c *Client) acquire(ctx context.Context, op, name string) (*link, error) {
	g := c.groups[name]
	if g == nil {
		return nil, &host.Error{Op: op, Object: "group " + name, Kind: host.KindUnsupported, Cause: errors.New("the group is not in use")}
	}
	l, err := g.acquire(ctx)
	if err == nil {
		return l, nil
	}
	kind := kindOfChoice(err)
	if isUnserved(err) {
		others := c.lookElsewhere(ctx, g)
		switch {
		case others == served && errors.Is(err, errNoPipe):
			kind = host.KindUnsupported // the server is there, the group is not
		case others == unserved:
			err = fmt.Errorf("%w: %w", ErrNoServer, err)
		}
	}
	if ctx.Err() != nil {
		kind = host.KindTimeout // the caller's time was up, or the caller has gone
	}
	return nil, &host.Error{Op: op, Object: "group " + name, Kind: kind, Cause: err}
}

// What lookElsewhere finds.
type finding int

const (
	unknown  finding = iota // something else went wrong
	served                  // the server offers another group
	unserved                // nobody serves any
)

// lookElsewhere finds out whether any group but one is served.
func (c *Client) lookElsewhere(ctx context.Context, but *group) finding {
	found := unserved
	for _, g := range c.groups {
		if g == but {
			continue
		}
		l, err := g.acquire(ctx)
		switch {
		case err == nil:
			l.release()
			return served
		case !isUnserved(err):
			found = unknown
		}
	}
	return found
}

// failure makes the error of a call that reached a server.
func failure(ctx context.Context, op string, request proto.Message, err error) error {
	var known *host.Error
	if errors.As(err, &known) {
		return known
	}
	failed := wire.ErrorFromStatus(op, err)
	switch status.Code(err) {
	case codes.Canceled:
		if ctx.Err() == nil {
			failed.Kind = host.KindUnavailable // not the caller but the client ended it
		}
	case codes.Internal:
		if _, err := proto.Marshal(request); err != nil {
			failed.Kind = host.KindInvalid // a text that is no UTF-8 was never sent
		}
	}
	return failed
}

// do is call for operations whose answer is empty.
func do[A proto.Message](ctx context.Context, c *Client, group string, request proto.Message) error {
	_, err := call[A](ctx, c, group, request)
	return err
}
