package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

const (
	// maxAnswerBytes bounds an answer. Listings of thousands of volumes fit.
	maxAnswerBytes = 16 << 20
	bufferBytes    = 8 << 10
)

// link is one connection to one API. It lives as long as its pipe: when that
// breaks, the server may have come back with other versions, so gRPC must not
// connect again by itself.
type link struct {
	api  wire.API
	conn *grpc.ClientConn
	// opened hands the open pipe over to gRPC, once.
	opened chan net.Conn

	mu      sync.Mutex
	calls   int // in flight
	retired bool
}

// errPipeBroken is what gRPC is told when it wants to connect a second time.
var errPipeBroken = errors.New("the pipe is broken")

// newLink makes a link over an open pipe, which it owns from then on.
func newLink(api wire.API, opened net.Conn) (*link, error) {
	l := &link{api: api, opened: make(chan net.Conn, 1)}
	l.opened <- opened
	conn, err := grpc.NewClient("passthrough:///"+pipe.Name(api.Group, api.Version),
		grpc.WithContextDialer(l.handOver),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswerBytes)),
		grpc.WithReadBufferSize(bufferBytes), grpc.WithWriteBufferSize(bufferBytes),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	l.conn = conn
	return l, nil
}

func (l *link) handOver(context.Context, string) (net.Conn, error) {
	select {
	case conn := <-l.opened:
		return conn, nil
	default:
		return nil, errPipeBroken
	}
}

// ready reports whether the connection stands, as far as is known.
func (l *link) ready() bool { return l.conn.GetState() == connectivity.Ready }

// waitReady waits until the server has answered as a gRPC server does.
func (l *link) waitReady(ctx context.Context) error {
	l.conn.Connect()
	for {
		switch state := l.conn.GetState(); state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return errors.New("the server closed it at once")
		default:
			if !l.conn.WaitForStateChange(ctx, state) {
				return fmt.Errorf("the server does not answer: %w", context.Cause(ctx))
			}
		}
	}
}

// acquire counts a call in, unless the link is retired.
func (l *link) acquire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retired {
		return false
	}
	l.calls++
	return true
}

// release counts a call out.
func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls--
	if l.retired && l.calls == 0 {
		_ = l.close()
	}
}

// retire closes the link when its last call is out: a server that stops
// gracefully still answers the calls it has.
func (l *link) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.retired && l.calls == 0 {
		_ = l.close()
	}
	l.retired = true
}

func (l *link) close() error {
	err := l.conn.Close()
	select {
	case conn := <-l.opened:
		return errors.Join(err, conn.Close()) // gRPC never asked for it
	default:
		return err
	}
}
