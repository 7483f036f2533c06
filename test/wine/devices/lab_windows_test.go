package devices

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/win32"
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

// lab is the node behind the stand-ins, for one test.
type lab struct {
	*bed.Node
	ctx    context.Context
	api    win32.API  // Windows, as the product calls it
	direct bed.Direct // the same node, past Wine
}

// open connects to the node and takes away what tests before have left.
func open(t testing.TB) *lab {
	t.Helper()
	// Cleanups need the context too, and a test's own has ended by then.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testMax)
	t.Cleanup(cancel)
	l := &lab{Node: bed.Connect(t), ctx: ctx, api: win32.System()}
	l.Fresh()
	l.direct = l.Dial()
	return l
}

// volume makes a disk with one formatted volume, past Wine.
func (l *lab) volume(spec sim.DiskSpec) (disk uint32, id string) {
	l.Helper()
	disk = l.Attach(spec)
	node := winos.New(l.direct, l.direct, winos.Options{})
	l.OK(node.InitializeDisk(l.ctx, disk))
	l.OK(node.CreateDataPartition(l.ctx, disk))
	ids, err := node.VolumeIDs(l.ctx, disk, 0)
	l.OK(err)
	if len(ids) != 1 {
		l.Fatalf("volumes %q on disk %d, want one", ids, disk)
	}
	l.OK(node.FormatVolume(l.ctx, ids[0], host.FormatOptions{Label: "data"}))
	return disk, ids[0]
}

// drive and device are the paths that open a disk and a volume as devices.
func drive(number uint32) string { return fmt.Sprintf(`\\.\PhysicalDrive%d`, number) }

func device(volumeID string) string { return strings.TrimSuffix(volumeID, `\`) }

// on opens a device through Windows until the test ends.
func (l *lab) on(path string, access uint32) win32.Handle {
	l.Helper()
	h, err := l.api.CreateFile(l.ctx, path, win32.Open{Access: access, Share: both})
	l.OK(err)
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
	l.OK(err)
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
	sub, node := *l, *l.Node
	node.TB, sub.Node = t, &node
	return &sub
}
