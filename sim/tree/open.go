package tree

import (
	"context"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// CreateFile is win32.API.CreateFile for files and folders. A device path (see
// IsDevice) is ErrFileNotFound. Failures: ErrFileNotFound and ErrPathNotFound
// as the last or an earlier name is missing, ErrInvalidName, 206 for a path
// that is too long, ErrFileExists or ErrAlreadyExists, ErrDirectory,
// ErrSharingViolation, ErrWriteProtect, 1920, 1921, and what the redirector says.
func (t *Tree) CreateFile(ctx context.Context, path string, open win32.Open) (win32.Handle, error) {
	h, code := t.createFile(ctx, path, open)
	return h, fail("CreateFile", path, code)
}

func (t *Tree) createFile(ctx context.Context, path string, open win32.Open) (win32.Handle, uint32) {
	loc, code := parsePath(path)
	if code == 0 {
		code = cancelled(ctx)
	}
	if code != 0 {
		return 0, code
	}
	if loc.device && open.Directory {
		return 0, win32.ErrDirectory // a device is no folder
	}
	at, code := t.walk(ctx, loc, false)
	if code != 0 {
		return 0, code
	}
	t.mu.Lock()
	defer t.unlock()
	h, code := t.openSpot(at, open, loc.folder)
	if code == win32.ErrAlreadyExists && !open.Directory {
		code = win32.ErrFileExists // CREATE_NEW
	}
	return h, code
}

// OpenAt is win32.API.OpenAt. The name is taken as it is: no trimming, no DOS
// devices. Failures are those of CreateFile, and ErrInvalidHandle.
func (t *Tree) OpenAt(ctx context.Context, folder win32.Handle, name string, open win32.Open) (win32.Handle, error) {
	t.mu.Lock()
	defer t.unlock()
	h, code := t.openAt(ctx, folder, name, open)
	return h, fail("OpenAt", name, code)
}

func (t *Tree) openAt(ctx context.Context, folder win32.Handle, name string, open win32.Open) (win32.Handle, uint32) {
	if code := cancelled(ctx); code != 0 {
		return 0, code
	}
	parent, code := t.opened(folder)
	if code != 0 {
		return 0, code
	}
	if code := checkName(name); code != 0 {
		return 0, code
	}
	at := spot{folder: parent.node, name: name}
	at.folder.refs++
	n, code := t.child(parent.node, name)
	switch code {
	case 0:
		at.node = n
	case win32.ErrFileNotFound:
	default:
		t.unref(at.folder)
		return 0, code
	}
	return t.openSpot(at, open, false)
}

// openSpot opens or makes what a walk found. It takes the spot over.
// asFolder is set when the path ended in a separator.
func (t *Tree) openSpot(at spot, open win32.Open, asFolder bool) (win32.Handle, uint32) {
	defer t.unref(at.folder)
	if at.node == nil {
		if !open.Create {
			return 0, win32.ErrFileNotFound
		}
		if asFolder && !open.Directory {
			return 0, win32.ErrInvalidName
		}
		n, code := t.make(at.folder, at.name, open.Directory)
		if code != 0 {
			return 0, code
		}
		return t.newHandle(n, open.Access, open.Share)
	}
	if code := openable(at.node, open, asFolder); code != 0 {
		t.unref(at.node)
		return 0, code
	}
	return t.newHandle(at.node, open.Access, open.Share)
}

// openable checks that what is there is what is asked for.
func openable(n *node, open win32.Open, asFolder bool) uint32 {
	switch {
	case n.vol.gone:
		return win32.ErrDevNotConnected
	case open.Create:
		return win32.ErrAlreadyExists
	case n.hasDirectoryAttribute():
		return 0
	case open.Directory:
		return win32.ErrDirectory
	case asFolder:
		return win32.ErrInvalidName // NTFS refuses a final backslash on a file
	}
	return 0
}

// make makes a folder or an empty file and returns it with a reference.
func (t *Tree) make(folder *node, name string, asFolder bool) (*node, uint32) {
	if code := makeable(folder, name); code != 0 {
		return nil, code
	}
	host := hostName(name)
	create := folder.object.create
	if asFolder {
		create = folder.object.mkdir
	}
	if err := create(host); err != nil {
		return nil, createCode(err)
	}
	return t.exactChild(folder, host)
}

// makeable checks that folder can get a new child.
func makeable(folder *node, name string) uint32 {
	if code := folder.usable(); code != 0 {
		return code
	}
	switch {
	case folder.link != nil:
		return win32.ErrAccessDenied // undocumented; refused, so that nothing hides under a link
	case folder.stat.kind != hostFolder:
		return win32.ErrPathNotFound
	case folder.vol.ReadOnly:
		return win32.ErrWriteProtect
	}
	return checkName(name)
}

// createCode is hostCode, but that a folder that is gone is ErrPathNotFound.
func createCode(err error) uint32 {
	code := hostCode(err)
	if code == win32.ErrFileNotFound {
		return win32.ErrPathNotFound
	}
	return code
}

// CloseHandle is win32.API.CloseHandle; ErrInvalidHandle when h is not open.
func (t *Tree) CloseHandle(h win32.Handle) error {
	t.mu.Lock()
	defer t.unlock()
	if !t.drop(h) {
		return fail("CloseHandle", "", win32.ErrInvalidHandle)
	}
	return nil
}

// Owns reports whether h is an open handle of this tree.
func (t *Tree) Owns(h win32.Handle) bool {
	t.mu.Lock()
	defer t.unlock()
	return t.handles[h] != nil
}
