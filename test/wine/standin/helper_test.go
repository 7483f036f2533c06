package standin

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/internal/leaktest"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const gib = int64(1) << 30

// link is a server on a node, for one test.
type link struct {
	*testing.T
	node   *sim.Node
	server *Server
	addr   string
}

// open starts a server on a node; it ends with the test.
func open(t *testing.T) *link {
	t.Helper()
	node, err := sim.Open(t.Context(), sim.Config{Dir: t.TempDir(), ArrivalPolls: -1, ServicePolls: -1})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{t, node, NewServer(node, Config{DiskFolder: t.TempDir(), DriverWait: 30 * time.Second}), listener.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		l.ok(node.ClearFaults(context.Background()))
		l.ok(<-ended)
		l.ok(node.Close())
	})
	return l
}

// dial connects a client, which ends with the test.
func (l *link) dial() *Client {
	l.Helper()
	c, err := Dial(l.Context(), l.addr)
	l.ok(err)
	l.Cleanup(func() { _ = c.Close() })
	return c
}

func (l *link) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// attach plugs an empty disk in.
func (l *link) attach(spec sim.DiskSpec) uint32 {
	l.Helper()
	spec.Image, spec.SizeBytes = filepath.Join(l.TempDir(), "disk.img"), 5*gib
	number, err := l.node.AttachDisk(l.Context(), spec)
	l.ok(err)
	l.server.Settle(l.Context())
	return number
}

// one runs a query of the storage classes for one row.
func (l *link) one(c *Client, wql string) cim.Instance {
	l.Helper()
	rows, err := c.Query(l.Context(), cim.NamespaceStorage, wql)
	l.ok(err)
	if len(rows) != 1 {
		l.Fatalf("%s: %d rows", wql, len(rows))
	}
	return rows[0]
}

// exec runs a method that must return 0.
func (l *link) exec(c *Client, path, method string, in cim.Values) cim.Values {
	l.Helper()
	r, err := c.Exec(l.Context(), cim.NamespaceStorage, path, method, in)
	l.ok(err)
	if r.ReturnValue != 0 {
		l.Fatalf("%s returned %d", method, r.ReturnValue)
	}
	return r.Out
}

// hresult demands a failure of WMI.
func (l *link) hresult(err error, want uint32) {
	l.Helper()
	var failure *cim.Error
	if !errors.As(err, &failure) || failure.HRESULT != want {
		l.Errorf("%v, want HRESULT %#x", err, want)
	}
}

// code demands a Windows error.
func (l *link) code(err error, want uint32) {
	l.Helper()
	var failure *win32.Error
	if !errors.As(err, &failure) || failure.Code != want {
		l.Errorf("%v, want Windows error %d", err, want)
	}
}
