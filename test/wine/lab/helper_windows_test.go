package lab

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
)

const gib = int64(1) << 30

// node is a fresh node, for one test. Tests take turns: there is one node.
type node struct {
	*testing.T
	control *control.Client
	address string
}

// open puts a fresh node in the place of the one before.
func open(t *testing.T) *node {
	t.Helper()
	n := &node{T: t, address: os.Getenv("CSI_STANDIN_CONTROL")}
	if n.address == "" {
		t.Fatal("CSI_STANDIN_CONTROL is not set: run by test/wine/run lab")
	}
	n.control = control.NewClient(n.address)
	t.Cleanup(n.control.Close)
	n.post("/standin/node/reset")
	return n
}

func (n *node) ok(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// post sends a control request of the link.
func (n *node) post(path string) {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.address+path, nil)
	n.ok(err)
	answer, err := http.DefaultClient.Do(request)
	n.ok(err)
	n.ok(answer.Body.Close())
	if answer.StatusCode != http.StatusNoContent {
		n.Fatalf("%s: %s", path, answer.Status)
	}
}

// attach plugs a disk in.
func (n *node) attach(spec sim.DiskSpec) uint32 {
	n.Helper()
	spec.Image, spec.SizeBytes = "disk.img", 5*gib
	number, err := n.control.AttachDisk(n.Context(), spec)
	n.ok(err)
	return number
}
