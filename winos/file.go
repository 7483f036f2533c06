package winos

import (
	"cmp"
	"context"
	"sync"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// Rights and share modes of a held object. The right to list (to read, for a
// file) is asked for because a handle without any data right does not take part
// in sharing: only with one does the missing ShareDelete keep everybody from
// renaming or deleting the object while it is held. Source: CreateFile, dwShareMode;
// IoCheckShareAccess.
const (
	holdAccess   = win32.FileListDir | win32.FileReadAttr | win32.Synchronize
	removeAccess = holdAccess | win32.AccessDelete
	lookAccess   = win32.FileReadAttr | win32.Synchronize
	holdShare    = win32.ShareRead | win32.ShareWrite
)

// node is one open object and the path of open folders that leads to it. The
// folders stay open as long as something below them is: an object cannot move
// while the folders above it cannot.
type node struct {
	os     *OS
	parent *node
	name   string // of the object in its parent; the root's path for a root

	mu     sync.Mutex
	handle win32.Handle // 0 once released
	users  int          // Files and children that need the node
}

// newNode wraps an open handle; the parent, if any, gains a user.
func newNode(os *OS, parent *node, name string, h win32.Handle) *node {
	if parent != nil {
		parent.mu.Lock()
		parent.users++
		parent.mu.Unlock()
	}
	return &node{os: os, parent: parent, name: name, handle: h, users: 1}
}

// release drops one user; the last one closes the object and lets go of the
// folder above.
func (n *node) release() error {
	n.mu.Lock()
	n.users--
	last := n.users == 0
	h := n.handle
	if last {
		n.handle = 0
	}
	n.mu.Unlock()
	if !last {
		return nil
	}
	var err error
	if h != 0 {
		err = n.os.api.CloseHandle(h)
	}
	if n.parent != nil {
		if parentErr := n.parent.release(); err == nil {
			err = parentErr
		}
	}
	return err
}

// file is an open node. It implements agent.File.
type file struct {
	*node
	closed sync.Once
}

var _ agent.File = (*file)(nil)

// OpenDrive opens the root folder of a drive.
func (o *OS) OpenDrive(ctx context.Context, letter byte) (agent.File, error) {
	return o.openRoot(ctx, "OpenDrive", `\\?\`+string(rune(letter))+`:\`)
}

// OpenVolume opens the root folder of a volume.
func (o *OS) OpenVolume(ctx context.Context, id string) (agent.File, error) {
	return o.openRoot(ctx, "OpenVolume", withBackslash(id))
}

func (o *OS) openRoot(ctx context.Context, op, path string) (agent.File, error) {
	h, err := o.api.CreateFile(ctx, path, win32.Open{Access: holdAccess, Share: holdShare, Directory: true})
	if err != nil {
		return nil, fail(op, path, err)
	}
	return &file{node: newNode(o, nil, path, h)}, nil
}

// SystemDrive returns the letter of the drive that holds Windows.
func (o *OS) SystemDrive() byte {
	if directory := o.api.SystemDirectory(); directory != "" {
		return directory[0] &^ 0x20
	}
	return 'C'
}

// Info describes the object, read from the handle.
func (f *file) Info(ctx context.Context) (agent.FileInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := f.os.fileInfo(ctx, f.handle)
	if err != nil {
		return agent.FileInfo{}, fail("Info", f.name, err)
	}
	return info, nil
}

// Open opens a child; the child may be a link and is not followed.
func (f *file) Open(ctx context.Context, name string) (agent.File, error) {
	f.mu.Lock()
	h, err := f.openChild(ctx, name)
	f.mu.Unlock()
	if err != nil {
		return nil, fail("Open", name, err)
	}
	return &file{node: newNode(f.os, f.node, name, h)}, nil
}

// openChild opens a child for holding. A regular file that another process keeps
// for itself is opened just to look at it: it exists, and nobody can move it away
// under that process either.
func (f *file) openChild(ctx context.Context, name string) (win32.Handle, error) {
	h, err := f.os.api.OpenAt(ctx, f.handle, name, win32.Open{Access: holdAccess, Share: holdShare})
	if !isWin32(err, win32.ErrSharingViolation) {
		return h, err
	}
	look, lookErr := f.os.api.OpenAt(ctx, f.handle, name, win32.Open{Access: lookAccess, Share: holdShare | win32.ShareDelete})
	if lookErr != nil {
		return 0, err
	}
	info, lookErr := f.os.api.Info(ctx, look)
	if lookErr == nil && info.Attributes&(win32.AttrDirectory|win32.AttrReparse) == 0 {
		return look, nil
	}
	_ = f.os.api.CloseHandle(look) // the sharing violation is what there is to report
	return 0, err
}

// Mkdir makes a child folder and opens it.
func (f *file) Mkdir(ctx context.Context, name string) (agent.File, error) {
	f.mu.Lock()
	open := win32.Open{Access: holdAccess, Share: holdShare, Create: true, Directory: true}
	h, err := f.os.api.OpenAt(ctx, f.handle, name, open)
	f.mu.Unlock()
	if err != nil {
		return nil, fail("Mkdir", name, err)
	}
	return &file{node: newNode(f.os, f.node, name, h)}, nil
}

// Symlink makes a child symbolic link.
func (f *file) Symlink(ctx context.Context, name, target string, folder bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.os.api.CreateSymlink(ctx, f.handle, name, target, folder); err != nil {
		return fail("Symlink", name, err)
	}
	return nil
}

// Names returns the names of the children.
func (f *file) Names(ctx context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	names, err := f.os.api.ReadDir(ctx, f.handle)
	if err != nil {
		return nil, fail("Names", f.name, err)
	}
	return names, nil
}

// Path returns the path of the object with long names.
func (f *file) Path(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path, err := f.os.api.FinalPath(ctx, f.handle)
	if err != nil {
		return "", fail("Path", f.name, err)
	}
	return plainPath(path), nil
}

// Close releases the object. A second Close does nothing.
func (f *file) Close() (err error) {
	f.closed.Do(func() {
		if err = f.release(); err != nil {
			err = fail("Close", f.name, err)
		}
	})
	return err
}

// Remove deletes the object itself. A held object cannot be deleted, not even
// through its own handle, which lacks the right; it is opened again with that
// right inside its folder, which is held, and deleted only if it is still the
// same object.
func (f *file) Remove(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.remove(ctx); err != nil {
		return fail("Remove", f.name, err)
	}
	return nil
}

func (f *file) remove(ctx context.Context) error {
	if f.parent == nil {
		return failAs(host.KindPrecondition, "Remove", f.name, errRoot)
	}
	info, err := f.os.fileInfo(ctx, f.handle)
	if err != nil {
		return err
	}
	if info.Kind == agent.FileMountPoint {
		if err := f.deleteMountPoint(ctx); err != nil {
			return err
		}
	}
	if err := f.reopen(ctx, removeAccess, nil); err != nil {
		return err
	}
	return f.os.api.Delete(ctx, f.handle)
}

// reopen trades the handle for one with other rights, or, with meanwhile, does
// something for which Windows must have the object alone. The folder above stays
// held, so the name can lead to another object only if the object itself was
// moved; that is found out, and is KindBusy. The caller holds n.mu.
func (n *node) reopen(ctx context.Context, access uint32, meanwhile func() error) error {
	before, err := n.os.api.Info(ctx, n.handle)
	if err != nil {
		return err
	}
	closing := n.handle
	n.handle = 0
	err = n.os.api.CloseHandle(closing)
	if err == nil && meanwhile != nil {
		err = meanwhile()
	}
	n.parent.mu.Lock()
	h, openErr := n.os.api.OpenAt(ctx, n.parent.handle, n.name, win32.Open{Access: access, Share: holdShare})
	n.parent.mu.Unlock()
	if openErr != nil {
		return cmp.Or(err, openErr)
	}
	n.handle = h
	after, infoErr := n.os.api.Info(ctx, h)
	switch {
	case err != nil || infoErr != nil:
		return cmp.Or(err, infoErr)
	case identityOf(after) != identityOf(before):
		return failAs(host.KindBusy, "Reopen", n.name, errReplaced)
	}
	return nil
}
