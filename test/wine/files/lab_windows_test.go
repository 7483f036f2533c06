package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/test/wine/standin"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/win32"
)

const (
	mib = int64(1) << 20
	// waitMax bounds every wait of a test; long, as the machine may be busy.
	waitMax = time.Minute
)

// Rights and share modes, as the product opens things.
const (
	lookAccess   = win32.FileReadAttr | win32.Synchronize
	holdAccess   = win32.FileListDir | win32.FileReadAttr | win32.Synchronize
	removeAccess = holdAccess | win32.AccessDelete
	holdShare    = win32.ShareRead | win32.ShareWrite
	anyShare     = holdShare | win32.ShareDelete
)

// nodeAPI is the node past Wine, with links.
type nodeAPI struct{ bed.Direct }

// CreateSymlink does at the node what the product does on Windows: an object with the
// link's reparse buffer.
func (n nodeAPI) CreateSymlink(ctx context.Context, folder win32.Handle, name, target string, directory bool) error {
	buffer, err := win32.EncodeSymlink(target)
	if err != nil {
		return &win32.Error{Call: "CreateSymlink", Code: win32.ErrInvalidParameter}
	}
	h, err := n.OpenAt(ctx, folder, name, win32.Open{Access: win32.FileWriteAttr, Share: anyShare, Create: true, Directory: directory})
	if err != nil {
		return err
	}
	_, err = n.DeviceIoControl(ctx, h, win32.FsctlSetReparsePoint, buffer, nil)
	return errors.Join(err, n.CloseHandle(h))
}

// lab is the node, for one test.
type lab struct {
	*bed.Node
	api    win32.API // Windows, as the product calls it
	node   nodeAPI   // the same node, past Wine
	past   *winos.OS // over node
	folder string    // of the test, on the node's drive C; empty at the beginning
}

// open connects to the node. At the end of the test its folder is removed, and no
// handle may be open that was not open before.
func open(t testing.TB) *lab {
	t.Helper()
	l := &lab{Node: bed.Connect(t), api: win32.System()}
	l.node = nodeAPI{l.Dial()}
	l.past = winos.New(l.node, l.node, winos.Options{})
	l.Reset()
	before, err := l.Control.HandleCount(t.Context())
	l.OK(err)
	l.folder = fmt.Sprintf(`C:\csi-files\%d`, time.Now().UnixNano())
	l.OK(l.Control.MakeDir(t.Context(), l.folder))
	t.Cleanup(func() {
		l.Reset()
		l.wipe(`\\?\` + l.folder)
		if after, err := l.Control.HandleCount(context.Background()); err != nil || after != before {
			t.Errorf("%d handles are open, %v; there were %d before", after, err, before)
		}
	})
	return l
}

// stats are the counts of the link.
func (l *lab) stats() (stats standin.Stats) {
	l.Helper()
	l.OK(json.Unmarshal(l.Post("stats", ""), &stats))
	return stats
}

// wipe removes a tree past Wine, and follows no link.
func (l *lab) wipe(path string) {
	l.Helper()
	ctx := context.Background()
	h, err := l.node.CreateFile(ctx, path, win32.Open{Access: removeAccess, Share: anyShare})
	l.OK(err)
	l.empty(h)
	l.OK(errors.Join(l.node.Delete(ctx, h), l.node.CloseHandle(h)))
}

func (l *lab) empty(folder win32.Handle) {
	l.Helper()
	ctx := context.Background()
	names, err := l.node.ReadDir(ctx, folder)
	l.OK(err)
	for _, name := range names {
		h, err := l.node.OpenAt(ctx, folder, name, win32.Open{Access: removeAccess, Share: anyShare})
		l.OK(err)
		info, err := l.node.Info(ctx, h)
		l.OK(err)
		if info.Attributes&(win32.AttrDirectory|win32.AttrReparse) == win32.AttrDirectory {
			l.empty(h)
		}
		l.OK(errors.Join(l.node.Delete(ctx, h), l.node.CloseHandle(h)))
	}
}

// same runs a question through Windows and at the node, which must give the same
// answer, or fail with the same number. It returns what Windows said.
func same[T any](l *lab, what string, ask func(api win32.API) (T, error)) (T, error) {
	l.Helper()
	got, err := ask(l.api)
	want, wantErr := ask(l.node)
	if l.CodeOf(err) != l.CodeOf(wantErr) || fmt.Sprint(got) != fmt.Sprint(want) {
		l.Errorf("%s: Windows says %v, %v; the node %v, %v", what, got, err, want, wantErr)
	}
	return got, err
}

// with opens an object by path, through whichever API, for one question.
func with[T any](l *lab, api win32.API, path string, access uint32, ask func(h win32.Handle) (T, error)) (T, error) {
	l.Helper()
	var zero T
	h, err := api.CreateFile(l.Context(), path, win32.Open{Access: access, Share: anyShare})
	if err != nil {
		return zero, err
	}
	answer, err := ask(h)
	l.OK(api.CloseHandle(h))
	return answer, err
}

// on opens an object through Windows until the test ends.
func (l *lab) on(path string, access uint32) win32.Handle {
	l.Helper()
	h, err := l.api.CreateFile(l.Context(), path, win32.Open{Access: access, Share: anyShare})
	l.OK(err)
	l.Cleanup(func() {
		if err := l.api.CloseHandle(h); err != nil {
			l.Error(err)
		}
	})
	return h
}

// path is a path below the test's folder that opens things with CreateFile.
func (l *lab) path(names ...string) string { return `\\?\` + l.below(names...) }

// below is a path below the test's folder for the node's control.
func (l *lab) below(names ...string) string {
	return strings.Join(append([]string{l.folder}, names...), `\`)
}

// mkdir makes a folder through Windows.
func (l *lab) mkdir(path string) error {
	l.Helper()
	h, err := l.api.CreateFile(l.Context(), path, win32.Open{Access: holdAccess, Share: anyShare, Create: true, Directory: true})
	if err != nil {
		return err
	}
	return l.api.CloseHandle(h)
}

// write makes a file as a program on the node does.
func (l *lab) write(path, content string) {
	l.Helper()
	l.OK(l.Control.WriteFile(l.Context(), path, []byte(content)))
}

// holds fails the test unless a file of the node has the content.
func (l *lab) holds(path, content string) {
	l.Helper()
	if got, err := l.Control.ReadFile(l.Context(), path); err != nil || string(got) != content {
		l.Errorf("%s holds %q, %v; want %q", path, got, err, content)
	}
}

// raw attaches a disk with one volume without a file system. Everything is done past
// Wine: the driver for devices is not what this package tests.
func (l *lab) raw() (disk uint32, id string) {
	l.Helper()
	disk, err := l.Control.AttachDisk(l.Context(), sim.DiskSpec{
		Image: fmt.Sprintf("files-%d.img", time.Now().UnixNano()), SizeBytes: 96 * mib,
	})
	l.OK(err)
	l.Cleanup(func() { _ = l.Control.DetachDisk(context.Background(), disk) }) // tests detach some themselves
	l.OK(l.past.InitializeDisk(l.Context(), disk))
	l.OK(l.past.CreateDataPartition(l.Context(), disk))
	ids, err := l.past.VolumeIDs(l.Context(), disk, 0)
	l.OK(err)
	if len(ids) != 1 {
		l.Fatalf("volumes %q on disk %d, want one", ids, disk)
	}
	return disk, ids[0]
}

// volume is raw with a file system, NTFS when none is named.
func (l *lab) volume(fileSystem string) (disk uint32, id string) {
	l.Helper()
	disk, id = l.raw()
	l.OK(l.past.FormatVolume(l.Context(), id, host.FormatOptions{FileSystem: fileSystem, Label: "data"}))
	return disk, id
}
