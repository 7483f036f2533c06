package standin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// Node is what the stand-ins ask: a whole Windows node. *sim.Node is one.
type Node interface {
	cim.Session
	win32.API
	// DescribeClass declares a class; failures are *cim.Error.
	DescribeClass(namespace, name string) (sim.ClassDescription, error)
	// CheckNamespace fails with cim.InvalidNamespace.
	CheckNamespace(namespace string) error
	// DeviceNames are the NT names of the disks and volumes there are now.
	DeviceNames() []string
	// ReportService takes over a service's state.
	ReportService(ctx context.Context, name string, running bool) error
	// AttachDisk and DetachDisk plug and pull disks.
	AttachDisk(ctx context.Context, spec sim.DiskSpec) (number uint32, err error)
	DetachDisk(ctx context.Context, number uint32) error
	// GrowDisk makes a disk's medium larger, and CorruptDisk overwrites bytes of it.
	GrowDisk(ctx context.Context, number uint32, sizeBytes int64) error
	CorruptDisk(ctx context.Context, number uint32, offsetBytes int64, data []byte) error
	// ReadFile and WriteFile read and make whole files by node path.
	ReadFile(ctx context.Context, path string) ([]byte, error)
	WriteFile(ctx context.Context, path string, data []byte) error
}

var _ Node = (*sim.Node)(nil)

// Config describes a Server.
type Config struct {
	// Logger takes what goes wrong with the link; nil discards it.
	Logger *slog.Logger
	// DiskFolder is where the media of virtual disks are made; needed for OpCreateDisk.
	DiskFolder string
	// DriverWait is how long an answer waits for the driver to have the devices
	// that the answer tells of; 0 means 5 s.
	DriverWait time.Duration
}

// Server answers stand-ins. It is safe for concurrent use.
type Server struct {
	log        *slog.Logger
	diskFolder string
	operations map[Op]operation
	devices    devices
	faults     faults
	handles    handles
	programs   programs
	disks      virtualDisks
	stats      stats

	mu   sync.Mutex
	node Node
}

// operation answers one request: it reads the request and writes the answer's
// body. Its error becomes the status.
type operation struct {
	name string
	wmi  bool // failures are HRESULTs
	run  func(c *call) error
}

// call is a request that is being answered.
type call struct {
	server *Server
	ctx    context.Context
	node   Node
	conn   *connection
	op     Op
	in     reader
	out    body
	// subject is the class, and method the method, that faults are told by.
	subject, method string
	fault           *Fault // the one that applies, nil for none
}

// NewServer makes a server for a node. The node stays the caller's, who closes
// it after Serve has returned.
func NewServer(node Node, config Config) *Server {
	s := &Server{log: config.Logger, diskFolder: config.DiskFolder, node: node, operations: operations()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	wait := config.DriverWait
	if wait == 0 {
		wait = 5 * time.Second
	}
	s.devices.init(wait)
	s.faults.init()
	s.Settle(context.Background())
	return s
}

func operations() map[Op]operation {
	all := map[Op]operation{}
	for _, part := range []map[Op]operation{wmiOperations(), fileOperations(), volumeOperations(), deviceOperations(), diskOperations(),
		writeOperations()} {
		for op, o := range part {
			all[op] = o
		}
	}
	return all
}

// SetNode puts another node in the place of the present one. Handles of the old
// one stay those of the old one.
func (s *Server) SetNode(ctx context.Context, node Node) {
	s.mu.Lock()
	s.node = node
	s.mu.Unlock()
	s.disks.clear()
	s.Settle(ctx)
}

func (s *Server) current() Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node
}

// Settle takes notice of the devices that came and went, and waits until the
// driver, when there is one, has them too. For whoever changes the node past
// the server.
func (s *Server) Settle(ctx context.Context) {
	if !s.devices.settle(ctx, s.current().DeviceNames()) {
		s.log.Warn("the driver does not have all devices", "wait", s.devices.wait)
	}
}

// Serve answers on the listener until ctx ends, closes the listener, and
// returns when every connection has ended. A call that hangs in the node ends
// when the node lets it go.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	var connections sync.WaitGroup
	defer connections.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("stand-in link: %w", err)
		}
		connections.Go(func() { s.serve(ctx, conn) })
	}
}

// connection is one client.
type connection struct {
	conn   net.Conn
	driver bool // it has asked for devices
	// program is whose it is, 0 when it has not said so; with its life connection
	// the program ends.
	program uint64
	life    bool
}

// serve answers one connection until it or ctx ends.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	s.stats.connected(1)
	defer s.stats.connected(-1)
	c := &connection{conn: conn}
	defer func() {
		_ = conn.Close()
		if c.driver {
			s.devices.leave()
		}
		if c.life {
			s.endProgram(c.program)
		}
	}()
	for {
		frame, err := readFrame(conn, 2, requestMaxBytes)
		if err == nil {
			err = s.answer(ctx, c, frame)
		}
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, errDie) {
				s.log.Warn("connection ended", "error", err)
			}
			return
		}
	}
}

// answer answers one request. An error ends the connection.
func (s *Server) answer(ctx context.Context, conn *connection, frame []byte) error {
	c := &call{
		server: s, ctx: ctx, node: s.current(), conn: conn,
		op: Op(binary.LittleEndian.Uint16(frame)), in: reader{data: frame[2:]},
	}
	o, ok := s.operations[c.op]
	if !ok {
		return fmt.Errorf("no operation %d", c.op)
	}
	c.out.data = make([]byte, 8, 256) // length and status come last
	s.stats.begin()
	err := o.run(c)
	if err == nil {
		err = c.faultAfter()
	}
	bad := (*badRequest)(nil)
	ends := errors.Is(err, errDie) || errors.As(err, &bad)
	if !ends && !conn.driver {
		s.Settle(ctx)
	}
	s.stats.called(o.name, err != nil)
	if ends {
		return fmt.Errorf("%s: %w", o.name, err)
	}
	if ctx.Err() != nil {
		return ctx.Err() // a call that outlived the end is not answered
	}
	status := c.status(o, err)
	if len(c.out.data) > answerMaxBytes {
		return fmt.Errorf("%s: an answer of %d bytes", o.name, len(c.out.data))
	}
	binary.LittleEndian.PutUint32(c.out.data, uint32(len(c.out.data)-4))
	binary.LittleEndian.PutUint32(c.out.data[4:], status)
	_, err = conn.conn.Write(c.out.data)
	return err
}

// badRequest is a request that cannot be read: its connection ends.
type badRequest struct{ cause error }

func (e *badRequest) Error() string { return "bad request: " + e.cause.Error() }
func (e *badRequest) Unwrap() error { return e.cause }

// read ends the reading of the request.
func (c *call) read() error {
	if err := c.in.end(); err != nil {
		return &badRequest{err}
	}
	return c.faultBefore()
}
