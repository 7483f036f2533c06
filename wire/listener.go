package wire

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/wire/pipe"
)

// greetingBytes is the length of what every HTTP/2 client sends first: the
// preface and the header of its settings.
//
// Source: RFC 9113, 3.4 and 4.1.
const greetingBytes = 24 + 9

// servedListener bounds the connections of a pipe, and knows those that have not
// said anything yet. csi-proxy's own client leaves one such connection behind for
// each client: it opens the pipe once to see whether it is there.
type servedListener struct {
	net.Listener
	max     int
	refused func() // told when a connection is refused, once for each time the limit is reached

	mu       sync.Mutex
	conns    map[*servedConn]struct{}
	accepted uint64 // so far
	closing  bool
	full     bool
}

func newServedListener(inner net.Listener, max int, refused func()) *servedListener {
	return &servedListener{Listener: inner, max: max, refused: refused, conns: map[*servedConn]struct{}{}}
}

// Accept returns the next connection that is within the limit. Failures other
// than a closed listener are temporary: gRPC waits and asks again.
func (l *servedListener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil:
			return nil, temporaryError{err}
		}
		conn := &servedConn{Conn: inner, listener: l}
		if l.add(conn) {
			return conn, nil
		}
		_ = inner.Close()
	}
}

// temporaryError is a failure that leaves the listener open.
type temporaryError struct{ error }

func (temporaryError) Temporary() bool { return true }
func (e temporaryError) Unwrap() error { return e.error }

// add counts a connection in. At the limit it takes the place of the oldest one
// that has not said anything: whoever only opens pipes keeps nobody out.
func (l *servedListener) add(conn *servedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return false
	}
	if len(l.conns) >= l.max {
		if !l.full {
			l.full = true
			l.refused()
		}
		silent := l.oldestSilentLocked()
		if silent == nil {
			return false
		}
		delete(l.conns, silent)
		_ = silent.Conn.Close() // gRPC reads the end of it
	} else {
		l.full = false
	}
	l.accepted++
	conn.number = l.accepted
	l.conns[conn] = struct{}{}
	return true
}

// oldestSilentLocked returns nil when every connection has said something.
func (l *servedListener) oldestSilentLocked() *servedConn {
	var oldest *servedConn
	for conn := range l.conns {
		if !conn.greeted() && (oldest == nil || conn.number < oldest.number) {
			oldest = conn
		}
	}
	return oldest
}

func (l *servedListener) remove(conn *servedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
}

// drain takes no more connections and closes the silent ones, which gRPC would
// wait for until their time is up.
func (l *servedListener) drain() { l.closeConns(func(c *servedConn) bool { return !c.greeted() }) }

// cut closes every connection.
func (l *servedListener) cut() { l.closeConns(func(*servedConn) bool { return true }) }

func (l *servedListener) closeConns(which func(*servedConn) bool) {
	l.mu.Lock()
	l.closing = true
	var found []*servedConn
	for conn := range l.conns {
		if which(conn) {
			found = append(found, conn)
		}
	}
	l.mu.Unlock()
	for _, conn := range found {
		_ = conn.Close()
	}
}

// servedConn counts what was read until the greeting is complete.
type servedConn struct {
	net.Conn
	listener *servedListener
	number   uint64 // in the order of arrival
	read     atomic.Int64
}

func (c *servedConn) greeted() bool { return c.read.Load() >= greetingBytes }

func (c *servedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.greeted() {
		c.read.Add(int64(n))
	}
	return n, err
}

// Close closes the connection. A named pipe whose client never spoke is taken
// away from it first: a client that forgot the connection, as csi-proxy's does,
// would otherwise keep the pipe's name in use after its server has gone.
//
// Source: DisconnectNamedPipe, Windows API. It discards what the client has not
// read, which is nothing here.
func (c *servedConn) Close() error {
	c.listener.remove(c)
	if named, ok := c.Conn.(interface{ Disconnect() error }); ok && !c.greeted() {
		_ = named.Disconnect()
	}
	return c.Conn.Close()
}

// callerCredentials encrypt nothing: a pipe does not leave the node, and its
// access list says who may open it. They note who did.
type callerCredentials struct {
	credentials.TransportCredentials
}

func newCallerCredentials() credentials.TransportCredentials {
	return callerCredentials{insecure.NewCredentials()}
}

// ServerHandshake notes the process at the other end of the pipe.
func (callerCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	inner := conn
	if served, ok := conn.(*servedConn); ok {
		inner = served.Conn
	}
	pid, known := pipe.PeerPID(inner)
	if !known {
		return conn, callerInfo{}, nil
	}
	return conn, callerInfo{pid: pid, image: pipe.ProcessImage(pid)}, nil
}

// callerInfo is who opened a connection; zero values are not known.
type callerInfo struct {
	pid   uint32
	image string // path of its program
}

// AuthType names the way of authentication in gRPC's terms.
func (callerInfo) AuthType() string { return "pipe" }

// listen opens a pipe for serving.
func (p *pipeServer) listen(ctx context.Context, place pipe.Place) error {
	api := p.version.api
	inner, err := place.Listen(ctx, api.Group, api.Version)
	if err != nil {
		return err
	}
	p.listener = newServedListener(inner, p.limits.MaxConnectionsPerPipe, func() {
		p.logger.Warn("pipe has too many connections; silent ones are closed, then new ones", "api", api.String(), "limit", p.limits.MaxConnectionsPerPipe)
	})
	return nil
}
