package csikit

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
)

// connectionsMax is how many connections there may be at once. Each costs some
// 100 KiB. Sidecars and the kubelet have one each; a client that opens one for every
// call and closes none must not use up memory and handles.
const connectionsMax = 256

// boundedListener closes connections beyond a limit as soon as they come. A limit that
// keeps them waiting would have their owners wait for ever.
type boundedListener struct {
	net.Listener
	max    int64
	open   atomic.Int64
	isFull atomic.Bool
	logger *slog.Logger
}

func newBoundedListener(inner net.Listener, limit int64, logger *slog.Logger) *boundedListener {
	return &boundedListener{Listener: inner, max: limit, logger: logger}
}

// Accept returns the next connection that there is room for.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.max {
			l.isFull.Store(false)
			return &boundedConn{Conn: conn, gone: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		_ = conn.Close()
		if !l.isFull.Swap(true) { // once, not for each of a flood
			l.logger.Warn("too many connections, new ones are closed", "limit", l.max)
		}
	}
}

type boundedConn struct {
	net.Conn
	gone func()
}

// Close makes room for another.
func (c *boundedConn) Close() error {
	c.gone()
	return c.Conn.Close()
}
