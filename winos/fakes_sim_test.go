package winos_test

import (
	"context"
	"encoding/binary"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

func newOS(session cim.Session, api win32.API) *winos.OS { return winos.New(session, api, fast) }

// nullSizes is a node whose GetSupportedSize succeeds and says nothing.
type nullSizes struct{ *sim.Node }

func (s nullSizes) Exec(ctx context.Context, namespace, path, method string, in cim.Values) (cim.Result, error) {
	if method == "GetSupportedSize" {
		return cim.Result{Out: cim.Values{"SizeMin": nil, "SizeMax": nil}}, nil
	}
	return s.Node.Exec(ctx, namespace, path, method, in)
}

// spanningAPI is a node whose volumes lie on the disks 1 and 2.
type spanningAPI struct{ *sim.Node }

func (a spanningAPI) DeviceIoControl(ctx context.Context, h win32.Handle, code uint32, in, out []byte) (int, error) {
	if code != win32.IoctlVolumeGetDiskExtents {
		return a.Node.DeviceIoControl(ctx, h, code, in, out)
	}
	answer := make([]byte, 8+2*24)
	binary.LittleEndian.PutUint32(answer, 2)
	binary.LittleEndian.PutUint32(answer[8:], 1)
	binary.LittleEndian.PutUint32(answer[32:], 2)
	n := copy(out, answer)
	if n < len(answer) {
		return n, &win32.Error{Call: "DeviceIoControl", Code: win32.ErrMoreData}
	}
	return n, nil
}

// elsewhereAPI is a node that gives every object the same path.
type elsewhereAPI struct {
	*sim.Node
	path string
}

func (a elsewhereAPI) FinalPath(context.Context, win32.Handle) (string, error) { return a.path, nil }

func cimText(text string) *cim.Error { return &cim.Error{HRESULT: cim.Failed, Text: text} }

// swappedAPI is a node on which every object that is opened for removal turns
// out to be another one.
type swappedAPI struct {
	*sim.Node
	name string
}

func (a swappedAPI) OpenAt(ctx context.Context, folder win32.Handle, name string, open win32.Open) (win32.Handle, error) {
	if open.Access&win32.AccessDelete != 0 {
		name = a.name
	}
	return a.Node.OpenAt(ctx, folder, name, open)
}
