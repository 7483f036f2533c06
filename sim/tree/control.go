package tree

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// shareAll is the share mode that forbids nothing.
const shareAll = win32.ShareRead | win32.ShareWrite | win32.ShareDelete

// FileAttributes is win32.API.FileAttributes: links on the way are followed,
// to shares too; of a link that is the last name it gives its own attributes.
func (t *Tree) FileAttributes(ctx context.Context, path string) (uint32, error) {
	at, code := t.find(ctx, path, false)
	if code != 0 {
		return 0, fail("GetFileAttributes", path, code)
	}
	defer t.leave(at)
	t.mu.Lock()
	defer t.unlock()
	stat, err := at.node.freshStat()
	if err != nil {
		return 0, fail("GetFileAttributes", path, hostCode(err))
	}
	return at.node.attributes(stat.readOnly), nil
}

// find is walk to an object that must be there.
func (t *Tree) find(ctx context.Context, path string, follow bool) (spot, uint32) {
	loc, code := parsePath(path)
	if code != 0 {
		return spot{}, code
	}
	at, code := t.walk(ctx, loc, follow)
	if code == 0 && at.node == nil {
		t.leave(at)
		return spot{}, win32.ErrFileNotFound
	}
	return at, code
}

// VolumeAt returns the id of the volume that a path leads to, all links
// followed, or `\\server\share`. A root is named even when the volume has no
// file system that Windows knows.
func (t *Tree) VolumeAt(ctx context.Context, path string) (string, error) {
	if loc, code := parsePath(path); code == 0 && len(loc.names) == 0 && loc.kind != rootRemote {
		return t.rootVolume(loc, path)
	}
	at, code := t.find(ctx, path, true)
	if code != 0 {
		return "", fail("GetVolumePathName", path, code)
	}
	defer t.leave(at)
	return at.node.vol.linkVolume(), nil
}

func (t *Tree) rootVolume(loc location, path string) (string, error) {
	t.mu.Lock()
	defer t.unlock()
	key := loc.volume
	if loc.kind == rootDrive {
		key = volumeKey(t.drives[loc.letter])
	}
	if v := t.volumes[key]; v != nil {
		return v.ID, nil
	}
	return "", fail("GetVolumePathName", path, win32.ErrPathNotFound)
}

// HandleVolume returns the id of the volume that holds an open object, or
// `\\server\share`.
func (t *Tree) HandleVolume(h win32.Handle) (string, error) {
	t.mu.Lock()
	defer t.unlock()
	open, code := t.opened(h)
	if code != 0 {
		return "", fail("HandleVolume", "", code)
	}
	return open.node.vol.linkVolume(), nil
}

// HostPath returns the host path of the object at a path, all links followed.
func (t *Tree) HostPath(ctx context.Context, path string) (string, error) {
	at, code := t.find(ctx, path, true)
	if code != 0 {
		return "", fail("HostPath", path, code)
	}
	defer t.leave(at)
	t.mu.Lock()
	defer t.unlock()
	return filepath.Join(at.node.vol.Folder, filepath.FromSlash(at.node.hostPath())), nil
}

// MakeFolder makes a folder and those above it that are missing, as a process
// of the node does. Links are followed.
func (t *Tree) MakeFolder(ctx context.Context, path string) error {
	loc, code := parsePath(path)
	if code == 0 {
		code = t.makeFolders(ctx, loc)
	}
	return fail("CreateDirectory", path, code)
}

func (t *Tree) makeFolders(ctx context.Context, loc location) uint32 {
	for count := range len(loc.names) {
		part := loc
		part.names = loc.names[:count+1]
		at, code := t.walk(ctx, part, true)
		if code != 0 {
			return code
		}
		code = t.ensureFolder(at)
		t.leave(at)
		if code != 0 {
			return code
		}
	}
	return 0
}

// ensureFolder makes the folder that a walk did not find.
func (t *Tree) ensureFolder(at spot) uint32 {
	t.mu.Lock()
	defer t.unlock()
	if at.node != nil {
		if !at.node.isFolder() {
			return win32.ErrAlreadyExists
		}
		return 0
	}
	n, code := t.make(at.folder, at.name, true)
	if code == win32.ErrAlreadyExists { // made by another meanwhile
		n, code = t.child(at.folder, at.name)
	}
	if code == 0 {
		t.unref(n)
	}
	return code
}

// WriteFile makes a file, and the folders above it that are missing, or
// replaces its content, as a process of the node does. Links are followed.
func (t *Tree) WriteFile(ctx context.Context, path string, data []byte) error {
	loc, code := parsePath(path)
	if code == 0 && len(loc.names) > 0 {
		above := loc
		above.names = loc.names[:len(loc.names)-1]
		code = t.makeFolders(ctx, above)
	}
	if code != 0 {
		return fail("WriteFile", path, code)
	}
	h, code := t.openFollowing(ctx, loc, win32.GenericWrite, true)
	if code != 0 {
		return fail("WriteFile", path, code)
	}
	defer func() { _ = t.CloseHandle(h) }()
	file, code := t.openData(h, win32.FileAddFile)
	if code != 0 {
		return fail("WriteFile", path, code)
	}
	return fail("WriteFile", path, hostCode(overwrite(file, data)))
}

// overwrite replaces the content of a file and closes it.
func overwrite(file *os.File, data []byte) error {
	err := file.Truncate(0)
	if err == nil {
		_, err = file.Write(data)
	}
	return errors.Join(err, file.Close())
}

// ReadFile returns the content of a file. Links are followed.
func (t *Tree) ReadFile(ctx context.Context, path string) ([]byte, error) {
	loc, code := parsePath(path)
	if code != 0 {
		return nil, fail("ReadFile", path, code)
	}
	h, code := t.openFollowing(ctx, loc, win32.GenericRead, false)
	if code != 0 {
		return nil, fail("ReadFile", path, code)
	}
	defer func() { _ = t.CloseHandle(h) }()
	file, code := t.openData(h, win32.FileListDir)
	if code != 0 {
		return nil, fail("ReadFile", path, code)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(file)
	return data, fail("ReadFile", path, hostCode(err))
}

// openFollowing opens what a path leads to, a link as the last name followed too.
func (t *Tree) openFollowing(ctx context.Context, loc location, access uint32, create bool) (win32.Handle, uint32) {
	at, code := t.walk(ctx, loc, true)
	if code != 0 {
		return 0, code
	}
	t.mu.Lock()
	defer t.unlock()
	open := win32.Open{Access: access, Share: shareAll, Create: create && at.node == nil}
	return t.openSpot(at, open, false)
}
