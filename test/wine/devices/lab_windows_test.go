package devices

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/test/wine/standin"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// The environment of an active lab: the stand-in link and the control interface of the
// node server, each "host:port".
const (
	standinVariable = "CSI_STANDIN"
	controlVariable = "CSI_STANDIN_CONTROL"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
	// Bounds of one wait and of a test; long, as the machine may be busy.
	waitMax = time.Minute
	testMax = 5 * time.Minute
)

// both is share mode that a file system on the device does not object to.
const both = win32.ShareRead | win32.ShareWrite

// direct is the node without Wine: the stand-in link from Go, with the calls that the
// link does not have taken from rest.
type direct struct {
	*standin.Client
	rest
}

type rest struct{ win32.API }

// lab is the node behind the stand-ins, for one test.
type lab struct {
	testing.TB
	ctx     context.Context
	api     win32.API // Windows, as the product calls it
	direct  direct    // the same node, past Wine
	control *control.Client
	address string // of the control interface
}

// open connects to the node and takes away what tests before have left.
func open(t testing.TB) *lab {
	t.Helper()
	// Cleanups need the context too, and a test's own has ended by then.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testMax)
	t.Cleanup(cancel)
	l := &lab{TB: t, ctx: ctx, api: win32.System(), address: environment(t, controlVariable)}
	client, err := standin.Dial(l.ctx, environment(t, standinVariable))
	l.ok(err)
	l.direct = direct{client, rest{l.api}}
	l.control = control.NewClient(l.address)
	l.post("reset")
	l.post("node/reset")
	t.Cleanup(func() {
		l.ok(l.control.ClearFaults(l.ctx))
		l.post("reset")
		l.control.Close()
		_ = client.Close()
	})
	return l
}

func environment(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: the lab is not active, see test/wine/run", name)
	}
	return value
}

// post sends a control request of the stand-in link, with a body if it has one.
func (l *lab) post(request string, body ...string) {
	l.Helper()
	r, err := http.NewRequestWithContext(l.ctx, http.MethodPost, "http://"+l.address+"/standin/"+request,
		strings.NewReader(strings.Join(body, "")))
	l.ok(err)
	reply, err := http.DefaultClient.Do(r)
	l.ok(err)
	defer reply.Body.Close()
	if reply.StatusCode/100 != 2 {
		l.Fatalf("%s: %s", request, reply.Status)
	}
}

// ok fails the test at once when err is one.
func (l *lab) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// codeOf is the Windows error number of a failure; 0 for none.
func (l *lab) codeOf(err error) uint32 {
	l.Helper()
	if err == nil {
		return 0
	}
	var failure *win32.Error
	if !errors.As(err, &failure) {
		l.Fatalf("error %v is none of Windows", err)
	}
	return failure.Code
}

func (l *lab) wantCode(err error, code uint32) {
	l.Helper()
	if got := l.codeOf(err); got != code {
		l.Errorf("error %v, want Windows error %d", err, code)
	}
}

// attach plugs an empty disk in.
func (l *lab) attach(spec sim.DiskSpec) (number uint32) {
	l.Helper()
	if spec.SizeBytes == 0 {
		spec.SizeBytes = 5 * gib
	}
	spec.Image = fmt.Sprintf("%s-%d.img", strings.NewReplacer("/", "_", "#", "_").Replace(l.Name()), time.Now().UnixNano())
	number, err := l.control.AttachDisk(l.ctx, spec)
	l.ok(err)
	return number
}

// volume makes a disk with one formatted volume, past Wine.
func (l *lab) volume(spec sim.DiskSpec) (disk uint32, id string) {
	l.Helper()
	disk = l.attach(spec)
	node := winos.New(l.direct, l.direct, winos.Options{})
	l.ok(node.InitializeDisk(l.ctx, disk))
	l.ok(node.CreateDataPartition(l.ctx, disk))
	ids, err := node.VolumeIDs(l.ctx, disk, 0)
	l.ok(err)
	if len(ids) != 1 {
		l.Fatalf("volumes %q on disk %d, want one", ids, disk)
	}
	l.ok(node.FormatVolume(l.ctx, ids[0], host.FormatOptions{Label: "data"}))
	return disk, ids[0]
}

// drive and device are the paths that open a disk and a volume as devices.
func drive(number uint32) string { return fmt.Sprintf(`\\.\PhysicalDrive%d`, number) }

func device(volumeID string) string { return strings.TrimSuffix(volumeID, `\`) }

// on opens a device through Windows until the test ends.
func (l *lab) on(path string, access uint32) win32.Handle {
	l.Helper()
	h, err := l.api.CreateFile(l.ctx, path, win32.Open{Access: access, Share: both})
	l.ok(err)
	l.Cleanup(func() {
		if err := l.api.CloseHandle(h); err != nil {
			l.Error(err)
		}
	})
	return h
}

// at opens a device at the node itself until the test ends.
func (l *lab) at(path string, access uint32) win32.Handle {
	l.Helper()
	h, err := l.direct.CreateFile(l.ctx, path, win32.Open{Access: access, Share: both})
	l.ok(err)
	l.Cleanup(func() { _ = l.direct.CloseHandle(h) }) // the node may have been reset
	return h
}

// eventually waits until something becomes true.
func (l *lab) eventually(what string, is func() bool) {
	l.Helper()
	for end := time.Now().Add(waitMax); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			l.Fatalf("%s: not within %v", what, waitMax)
		}
	}
}

// in is the lab for a subtest.
func (l *lab) in(t *testing.T) *lab {
	sub := *l
	sub.TB = t
	return &sub
}
