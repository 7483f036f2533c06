package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// nodeAPI is the node past Wine: the stand-in link from Go, with what the link does not
// have taken from rest.
type nodeAPI struct {
	*standin.Client
	rest
}

type rest struct{ win32.API }

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
	testing.TB
	api     win32.API // Windows, as the product calls it
	node    nodeAPI   // the same node, past Wine
	past    *winos.OS // over node
	control *control.Client
	address string // of the control interface
	folder  string // of the test, on the node's drive C; empty at the beginning
}

// open connects to the node. At the end of the test its folder is removed, and no
// handle may be open that was not open before.
func open(t testing.TB) *lab {
	t.Helper()
	l := &lab{TB: t, api: win32.System(), address: environment(t, controlVariable)}
	client, err := standin.Dial(t.Context(), environment(t, standinVariable))
	l.ok(err)
	l.node = nodeAPI{client, rest{l.api}}
	l.past = winos.New(l.node, l.node, winos.Options{})
	l.control = control.NewClient(l.address)
	l.reset()
	before, err := l.control.HandleCount(t.Context())
	l.ok(err)
	l.folder = fmt.Sprintf(`C:\csi-files\%d`, time.Now().UnixNano())
	l.ok(l.control.MakeDir(t.Context(), l.folder))
	t.Cleanup(func() {
		l.reset()
		l.wipe(`\\?\` + l.folder)
		if after, err := l.control.HandleCount(context.Background()); err != nil || after != before {
			t.Errorf("%d handles are open, %v; there were %d before", after, err, before)
		}
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

// reset disarms every fault and ends the log of calls.
func (l *lab) reset() {
	l.Helper()
	l.post("reset", "")
	l.ok(errors.Join(l.control.ClearFaults(context.Background()), l.control.RecordCalls(context.Background(), false)))
}

// post sends a control request of the stand-in link and returns the answer.
func (l *lab) post(request, body string) []byte {
	l.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.address+"/standin/"+request, strings.NewReader(body))
	l.ok(err)
	reply, err := http.DefaultClient.Do(r)
	l.ok(err)
	defer reply.Body.Close()
	if reply.StatusCode/100 != 2 {
		l.Fatalf("%s: %s", request, reply.Status)
	}
	answer, err := io.ReadAll(reply.Body)
	l.ok(err)
	return answer
}

// stats are the counts of the link.
func (l *lab) stats() (stats standin.Stats) {
	l.Helper()
	l.ok(json.Unmarshal(l.post("stats", ""), &stats))
	return stats
}

// wipe removes a tree past Wine, and follows no link.
func (l *lab) wipe(path string) {
	l.Helper()
	ctx := context.Background()
	h, err := l.node.CreateFile(ctx, path, win32.Open{Access: removeAccess, Share: anyShare})
	l.ok(err)
	l.empty(h)
	l.ok(errors.Join(l.node.Delete(ctx, h), l.node.CloseHandle(h)))
}

func (l *lab) empty(folder win32.Handle) {
	l.Helper()
	ctx := context.Background()
	names, err := l.node.ReadDir(ctx, folder)
	l.ok(err)
	for _, name := range names {
		h, err := l.node.OpenAt(ctx, folder, name, win32.Open{Access: removeAccess, Share: anyShare})
		l.ok(err)
		info, err := l.node.Info(ctx, h)
		l.ok(err)
		if info.Attributes&(win32.AttrDirectory|win32.AttrReparse) == win32.AttrDirectory {
			l.empty(h)
		}
		l.ok(errors.Join(l.node.Delete(ctx, h), l.node.CloseHandle(h)))
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
	var failure *win32.Error
	if err != nil && !errors.As(err, &failure) {
		l.Fatalf("error %v is none of Windows", err)
	}
	if failure == nil {
		return 0
	}
	return failure.Code
}

func (l *lab) wantCode(err error, code uint32) {
	l.Helper()
	if got := l.codeOf(err); got != code {
		l.Errorf("error %v, want Windows error %d", err, code)
	}
}

// same runs a question through Windows and at the node, which must give the same
// answer, or fail with the same number. It returns what Windows said.
func same[T any](l *lab, what string, ask func(api win32.API) (T, error)) (T, error) {
	l.Helper()
	got, err := ask(l.api)
	want, wantErr := ask(l.node)
	if l.codeOf(err) != l.codeOf(wantErr) || fmt.Sprint(got) != fmt.Sprint(want) {
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
	l.ok(api.CloseHandle(h))
	return answer, err
}

// on opens an object through Windows until the test ends.
func (l *lab) on(path string, access uint32) win32.Handle {
	l.Helper()
	h, err := l.api.CreateFile(l.Context(), path, win32.Open{Access: access, Share: anyShare})
	l.ok(err)
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
	l.ok(l.control.WriteFile(l.Context(), path, []byte(content)))
}

// holds fails the test unless a file of the node has the content.
func (l *lab) holds(path, content string) {
	l.Helper()
	if got, err := l.control.ReadFile(l.Context(), path); err != nil || string(got) != content {
		l.Errorf("%s holds %q, %v; want %q", path, got, err, content)
	}
}

// raw attaches a disk with one volume without a file system. Everything is done past
// Wine: the driver for devices is not what this package tests.
func (l *lab) raw() (disk uint32, id string) {
	l.Helper()
	disk, err := l.control.AttachDisk(l.Context(), sim.DiskSpec{
		Image: fmt.Sprintf("files-%d.img", time.Now().UnixNano()), SizeBytes: 96 * mib,
	})
	l.ok(err)
	l.Cleanup(func() { _ = l.control.DetachDisk(context.Background(), disk) }) // tests detach some themselves
	l.ok(l.past.InitializeDisk(l.Context(), disk))
	l.ok(l.past.CreateDataPartition(l.Context(), disk))
	ids, err := l.past.VolumeIDs(l.Context(), disk, 0)
	l.ok(err)
	if len(ids) != 1 {
		l.Fatalf("volumes %q on disk %d, want one", ids, disk)
	}
	return disk, ids[0]
}

// volume is raw with a file system, NTFS when none is named.
func (l *lab) volume(fileSystem string) (disk uint32, id string) {
	l.Helper()
	disk, id = l.raw()
	l.ok(l.past.FormatVolume(l.Context(), id, host.FormatOptions{FileSystem: fileSystem, Label: "data"}))
	return disk, id
}
