package bed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/test/wine/standin"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// What test/wine/run sets for the lab lane: the stand-in link and the control
// interface of the node server, each "host:port".
const (
	StandinVariable = "CSI_STANDIN"
	ControlVariable = "CSI_STANDIN_CONTROL"
)

// GiB is 2^30 bytes.
const GiB = int64(1) << 30

// requestTime bounds a request to the node server; long, as the machine may be busy.
const requestTime = time.Minute

// Environment returns a variable that test/wine/run sets.
func Environment(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set; see test/wine/run", name)
	}
	return value
}

// Node is the node server of the lab. There is one, so its tests take turns.
type Node struct {
	testing.TB
	Control *control.Client
	Address string // of the control interface
}

// Connect finds the node server. At the end of the test faults are disarmed.
func Connect(t testing.TB) *Node {
	t.Helper()
	address := Environment(t, ControlVariable)
	n := &Node{TB: t, Control: control.NewClient(address), Address: address}
	t.Cleanup(func() {
		n.Reset()
		n.Control.Close()
	})
	return n
}

// Fresh puts an empty node in the place of the present one. The initiator's service,
// which an earlier test may have left running, tells the new node its state.
func (n *Node) Fresh() {
	n.Helper()
	n.Post("reset", "")
	n.Post("node/reset", "")
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	n.OK(exec.CommandContext(ctx, filepath.Join(os.Getenv("SystemRoot"), "system32", "csiiscsi.exe"), "-report").Run())
}

// Reset disarms every fault, of the link and of the node, and ends the log of calls.
func (n *Node) Reset() {
	n.Helper()
	n.Post("reset", "")
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	n.OK(errors.Join(n.Control.ClearFaults(ctx), n.Control.RecordCalls(ctx, false)))
}

// Post sends a control request of the stand-in link and returns the answer.
func (n *Node) Post(request, body string) []byte {
	n.Helper()
	// Not the test's own context: cleanups post too.
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.Address+"/standin/"+request, strings.NewReader(body))
	n.OK(err)
	reply, err := http.DefaultClient.Do(r)
	n.OK(err)
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode/100 != 2 {
		n.Fatalf("%s: %s", request, reply.Status)
	}
	answer, err := io.ReadAll(reply.Body)
	n.OK(err)
	return answer
}

// Arm arms a fault of the link.
func (n *Node) Arm(fault standin.Fault) {
	n.Helper()
	body, err := json.Marshal(fault)
	n.OK(err)
	n.Post("fault", string(body))
}

// Attach plugs a disk in, of 5 GiB unless the spec says otherwise, on an image
// below the node's own folder.
func (n *Node) Attach(spec sim.DiskSpec) (number uint32) {
	n.Helper()
	if spec.SizeBytes == 0 {
		spec.SizeBytes = 5 * GiB
	}
	spec.Image = fmt.Sprintf("%s-%d.img", strings.NewReplacer("/", "_", "#", "_").Replace(n.Name()), time.Now().UnixNano())
	number, err := n.Control.AttachDisk(context.Background(), spec)
	n.OK(err)
	return number
}

// OK fails the test at once when err is one.
func (n *Node) OK(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// CodeOf is the Windows error number of a failure; 0 for none.
func (n *Node) CodeOf(err error) uint32 {
	n.Helper()
	if err == nil {
		return 0
	}
	var failure *win32.Error
	if !errors.As(err, &failure) {
		n.Fatalf("error %v is none of Windows", err)
	}
	return failure.Code
}

// WantCode fails the test unless err is a failure with a Windows error number.
func (n *Node) WantCode(err error, code uint32) {
	n.Helper()
	if got := n.CodeOf(err); got != code {
		n.Errorf("error %v, want Windows error %d", err, code)
	}
}

// Direct is the node past Wine: the stand-in link from Go, with the calls that
// the link does not have taken from Rest.
type Direct struct {
	*standin.Client
	Rest
}

// Rest is named for its place: what Direct's Client has goes before it.
type Rest struct{ win32.API }

// Dial connects to the node past Wine until the end of the test.
func (n *Node) Dial() Direct {
	n.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	client, err := standin.Dial(ctx, Environment(n, StandinVariable))
	n.OK(err)
	n.Cleanup(func() { _ = client.Close() })
	return Direct{client, Rest{win32.System()}}
}
