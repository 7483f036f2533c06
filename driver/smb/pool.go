package smb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	smb2 "github.com/cloudsoda/go-smb2"

	"github.com/csi-windows/csi-windows/csikit"
)

const (
	idleTime    = time.Minute
	idleMax     = 4  // sessions kept for one user of one server
	openMax     = 16 // sessions at one time with one server
	dialTimeout = 15 * time.Second
	endAtMost   = time.Second // what ending a session waits for the server
)

// pool keeps sessions for the next call. A session serves one call at a time: a call
// that is given up may leave half a packet behind, so its session ends with it.
type pool struct {
	encrypt bool // nothing leaves unencrypted
	mutex   sync.Mutex
	idle    map[sessionKey][]*session
	slots   map[string]chan struct{} // by address
	closed  bool
}

// sessionKey tells sessions apart. A new password is another key, so a session of
// the old one never serves it.
type sessionKey struct {
	address string
	account account
}

// session is an authenticated connection.
type session struct {
	key    sessionKey
	conn   *serverConn
	smb    *smb2.Session
	expire *time.Timer // of an idle one
}

func newPool(encrypt bool) *pool {
	return &pool{encrypt: encrypt, idle: map[sessionKey][]*session{}, slots: map[string]chan struct{}{}}
}

// do calls use with a session. When a kept one turns out to be lost, it is called
// once more with a new one; so use can be repeated.
func (p *pool) do(ctx context.Context, key sessionKey, use func(*smb2.Session) error) error {
	if ctx.Value(hasSlot{}) == nil {
		slot := p.slot(key.address)
		select {
		case slot <- struct{}{}:
			defer func() { <-slot }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		s := p.take(key)
		kept := s != nil
		if !kept {
			var err error
			if s, err = p.dial(ctx, key); err != nil {
				return fmt.Errorf("server %s: %w", key.address, err)
			}
		}
		err := kindOf(use(s.smb.WithContext(ctx)))
		switch {
		case ctx.Err() != nil:
			s.abandon()
		case errors.Is(err, errLost) || errors.Is(err, errPlain) || errors.Is(err, csikit.ErrUnavailable):
			// A server that cannot do what it should may be able to in another session:
			// some have a process of its own for each connection.
			s.close()
		case errors.Is(err, csikit.ErrUnauthenticated) || errors.Is(err, csikit.ErrDenied):
			s.close()
			p.forget(key)
		default:
			p.put(s)
		}
		if !kept || ctx.Err() != nil || !errors.Is(err, errLost) {
			return err
		}
		p.forget(key) // those kept beside it are lost as well
	}
}

// hasSlot marks the context of a call that holds a slot. What it needs of a second
// server or share it gets at once: if it waited, calls would wait for each other.
type hasSlot struct{}

func withSlot(ctx context.Context) context.Context { return context.WithValue(ctx, hasSlot{}, true) }

func (p *pool) slot(address string) chan struct{} {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.slots[address] == nil {
		p.slots[address] = make(chan struct{}, openMax)
	}
	return p.slots[address]
}

func (p *pool) dial(ctx context.Context, key sessionKey) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout, fmt.Errorf("no session within %s: %w", dialTimeout, csikit.ErrUnavailable))
	defer cancel()
	var dialer net.Dialer
	plain, err := dialer.DialContext(ctx, "tcp", key.address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, csikit.ErrUnavailable)
	}
	server := newServerConn(plain)
	var conn net.Conn = server
	if p.encrypt {
		conn = &guardedConn{Conn: conn}
	}
	login := smb2.Dialer{
		// A guest cannot sign, so nobody becomes one for want of a right password.
		Negotiator: smb2.Negotiator{RequireMessageSigning: true},
		Initiator:  &smb2.NTLMInitiator{User: key.account.user, Domain: key.account.domain, Password: key.account.password},
	}
	// What the login waits for ends with the connection.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	s, err := login.DialConn(ctx, conn, key.address)
	if err != nil {
		_ = conn.Close()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, kindOf(err)
	}
	return &session{key: key, conn: server, smb: s}, nil
}

func (p *pool) take(key sessionKey) *session {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for kept := p.idle[key]; len(kept) > 0; kept = p.idle[key] {
		s := kept[len(kept)-1]
		p.removeLocked(s)
		if s.expire.Stop() {
			return s
		}
	}
	return nil
}

// put keeps a session for the next call, or ends it when enough are kept. The end may
// take its time, and nobody waits for it with the pool.
func (p *pool) put(s *session) {
	if !p.keep(s) {
		s.close()
	}
}

func (p *pool) keep(s *session) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.closed || len(p.idle[s.key]) >= idleMax {
		return false
	}
	s.expire = time.AfterFunc(idleTime, func() {
		p.mutex.Lock()
		p.removeLocked(s)
		p.mutex.Unlock()
		s.close()
	})
	p.idle[s.key] = append(p.idle[s.key], s)
	return true
}

func (p *pool) removeLocked(s *session) {
	kept := p.idle[s.key]
	for i := range kept {
		if kept[i] == s {
			p.idle[s.key] = append(kept[:i:i], kept[i+1:]...)
			break
		}
	}
	if len(p.idle[s.key]) == 0 {
		delete(p.idle, s.key)
	}
}

// forget ends the kept sessions of a key.
func (p *pool) forget(key sessionKey) {
	for s := p.take(key); s != nil; s = p.take(key) {
		s.close()
	}
}

func (p *pool) close() {
	p.mutex.Lock()
	p.closed = true
	var keys []sessionKey
	for key := range p.idle {
		keys = append(keys, key)
	}
	p.mutex.Unlock()
	for _, key := range keys {
		p.forget(key)
	}
}

// close tells the server and ends the connection, whatever it answers.
func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), endAtMost)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() })
	defer stop()
	_ = s.smb.WithContext(ctx).Logoff()
	_ = s.conn.Close()
}

// abandon ends a session whose context has ended. A request that is given up returns
// while the SMB client may still be writing it, and the client makes the next request
// in the same memory: a logoff would change the packet that is on its way. So nothing
// is sent anymore, and the server learns of the end from the connection.
func (s *session) abandon() { s.conn.end(endAtMost) }

// serverConn is a connection that knows when the server has ended it.
type serverConn struct {
	net.Conn
	once  sync.Once
	ended chan struct{}
}

func newServerConn(conn net.Conn) *serverConn {
	return &serverConn{Conn: conn, ended: make(chan struct{})}
}

// Read implements net.Conn. The SMB client reads all the time.
func (c *serverConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.once.Do(func() { close(c.ended) })
	}
	return n, err
}

// end sends no more, and waits a while until the server has ended its side too: then
// what was asked of it last does not go on beside the next call.
func (c *serverConn) end(atMost time.Duration) {
	defer func() { _ = c.Close() }()
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	select {
	case <-c.ended:
	case <-time.After(atMost):
	}
}
