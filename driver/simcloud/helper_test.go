package simcloud

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/internal/leaktest"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/cloud"
	"github.com/csi-windows/csi-windows/sim/control"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDirEnv); dir != "" {
		if err := killedChild(dir); err != nil {
			fmt.Println("child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	leaktest.Main(m)
}

func openNode(t *testing.T) *sim.Node {
	t.Helper()
	n, err := sim.Open(ctx, sim.Config{Dir: t.TempDir(), ArrivalPolls: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// serveNode is a node behind a control socket.
func serveNode(t *testing.T) (n *sim.Node, address string, stop func()) {
	t.Helper()
	n = openNode(t)
	folder, err := os.MkdirTemp("", "simcloud-") // a socket's path has little room
	if err != nil {
		t.Fatal(err)
	}
	address = filepath.Join(folder, "c")
	listener, err := control.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	serving, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- control.Serve(serving, listener, n) }()
	stopped := false
	stop = func() {
		if cancel(); stopped {
			return
		}
		stopped = true
		if err := errors.Join(<-done, os.RemoveAll(folder)); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return n, address, stop
}

// openBackend is a backend with nodes one and two in this process. Both are in the
// default zone.
func openBackend(t *testing.T) (*Backend, map[string]*sim.Node) {
	t.Helper()
	nodes := map[string]*sim.Node{"one": openNode(t), "two": openNode(t)}
	b, err := New(Config{
		Dir:     t.TempDir(),
		Nodes:   []cloud.Node{{Name: "one"}, {Name: "two"}},
		Connect: func(n cloud.Node) (sim.DiskController, error) { return insideProcess{nodes[n.Name]}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, nodes
}

// insideProcess hides a node's Close from the backend.
type insideProcess struct{ sim.DiskController }

func mustVolume(t *testing.T, b *Backend, request csikit.CreateVolumeRequest) csikit.Volume {
	t.Helper()
	make := b.CreateVolume
	if s := request.Source; s != nil && s.SnapshotID != "" {
		make = b.RestoreSnapshot
	} else if s != nil {
		make = b.CloneVolume
	}
	v, err := make(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
