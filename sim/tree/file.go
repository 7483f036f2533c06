package tree

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// attrArchive is FILE_ATTRIBUTE_ARCHIVE, which file systems set on new files.
const attrArchive = 0x20

// Info is win32.API.Info.
func (t *Tree) Info(ctx context.Context, h win32.Handle) (win32.FileInfo, error) {
	if code := cancelled(ctx); code != 0 {
		return win32.FileInfo{}, fail("Info", "", code)
	}
	t.mu.Lock()
	defer t.unlock()
	open, code := t.opened(h)
	if code != 0 {
		return win32.FileInfo{}, fail("Info", "", code)
	}
	stat, err := open.node.freshStat()
	if err != nil {
		return win32.FileInfo{}, fail("Info", open.node.hostPath(), hostCode(err))
	}
	info := win32.FileInfo{
		Attributes:   open.node.attributes(stat.readOnly),
		VolumeSerial: open.node.vol.Serial,
		FileID:       t.fileID(open.node),
	}
	if open.node.link != nil {
		info.ReparseTag = open.node.link.Tag
	} else {
		info.SizeBytes = stat.sizeBytes
	}
	return info, nil
}

// freshStat describes the object as it is now. Only of files does anything change
// that Info tells.
func (n *node) freshStat() (hostStat, error) {
	if n.stat.kind != hostFile {
		return n.stat, nil
	}
	return n.object.stat()
}

// attributes are the file attributes. A host file that nobody may write is read-only.
func (n *node) attributes(readOnly bool) uint32 {
	attributes := uint32(attrArchive)
	if n.hasDirectoryAttribute() {
		attributes = win32.AttrDirectory
	} else if n.link == nil && readOnly {
		attributes |= win32.AttrReadOnly
	}
	if n.link != nil {
		attributes |= win32.AttrReparse
	}
	return attributes
}

// ReadDir is win32.API.ReadDir. Failures: ErrAccessDenied without
// FILE_LIST_DIRECTORY, ErrInvalidParameter for a file.
func (t *Tree) ReadDir(ctx context.Context, h win32.Handle) ([]string, error) {
	if code := cancelled(ctx); code != 0 {
		return nil, fail("ReadDir", "", code)
	}
	list, code := t.openList(h)
	if code != 0 || list == nil {
		return nil, fail("ReadDir", "", code)
	}
	names, err := listAndClose(list, nil)
	for i, name := range names {
		names[i] = shownName(name)
	}
	return names, fail("ReadDir", "", hostCode(err))
}

// openList opens a handle's folder for listing outside the lock. What is under
// a reparse point itself is empty: nil.
func (t *Tree) openList(h win32.Handle) (*os.File, uint32) {
	t.mu.Lock()
	defer t.unlock()
	open, code := t.opened(h)
	switch {
	case code != 0:
		return nil, code
	case open.access&win32.FileListDir == 0:
		return nil, win32.ErrAccessDenied
	case !open.node.hasDirectoryAttribute():
		return nil, win32.ErrInvalidParameter
	case open.node.link != nil || open.node.deleted:
		return nil, 0
	}
	list, err := open.node.object.openList()
	return list, hostCode(err)
}

// openData opens a handle's content for work outside the lock. The handle needs
// a right. ErrInvalidFunction for what has no content.
func (t *Tree) openData(h win32.Handle, access uint32) (*os.File, uint32) {
	t.mu.Lock()
	defer t.unlock()
	open, code := t.opened(h)
	switch {
	case code != 0:
		return nil, code
	case open.access&access == 0:
		return nil, win32.ErrAccessDenied
	case open.node.link != nil || open.node.stat.kind != hostFile:
		return nil, win32.ErrInvalidFunction
	}
	file, err := open.node.object.openData(access&writeRights != 0)
	return file, hostCode(err)
}

// ReadAt is win32.API.ReadAt for files. Failures: ErrHandleEOF at and beyond
// the end, ErrAccessDenied without FILE_READ_DATA, ErrInvalidFunction for a folder.
func (t *Tree) ReadAt(ctx context.Context, h win32.Handle, buffer []byte, offsetBytes int64) (int, error) {
	code := cancelled(ctx)
	if code == 0 && offsetBytes < 0 {
		code = win32.ErrInvalidParameter
	}
	if code != 0 {
		return 0, fail("ReadFile", "", code)
	}
	file, code := t.openData(h, win32.FileListDir)
	if code != 0 {
		return 0, fail("ReadFile", "", code)
	}
	defer func() { _ = file.Close() }()
	count, err := file.ReadAt(buffer, offsetBytes)
	switch {
	case errors.Is(err, io.EOF) && count == 0 && len(buffer) > 0:
		code = win32.ErrHandleEOF
	case !errors.Is(err, io.EOF):
		code = hostCode(err)
	}
	return count, fail("ReadFile", "", code)
}

// FlushFileBuffers is win32.API.FlushFileBuffers for files and folders;
// ErrAccessDenied for a handle that cannot write.
func (t *Tree) FlushFileBuffers(ctx context.Context, h win32.Handle) error {
	if code := cancelled(ctx); code != 0 {
		return fail("FlushFileBuffers", "", code)
	}
	file, code := t.openData(h, win32.FileAddFile)
	switch code {
	case 0:
		code = hostCode(errors.Join(file.Sync(), file.Close()))
	case win32.ErrInvalidFunction:
		code = 0 // a folder has nothing of its own to flush
	}
	return fail("FlushFileBuffers", "", code)
}

// FinalPath is win32.API.FinalPath. ErrPathNotFound when a process of the host
// has moved the object or a folder above it, which Windows would not allow.
func (t *Tree) FinalPath(ctx context.Context, h win32.Handle) (string, error) {
	if code := cancelled(ctx); code != 0 {
		return "", fail("GetFinalPathNameByHandle", "", code)
	}
	t.mu.Lock()
	defer t.unlock()
	open, code := t.opened(h)
	if code == 0 && !open.node.inPlace() {
		code = win32.ErrPathNotFound
	}
	if code != 0 {
		return "", fail("GetFinalPathNameByHandle", "", code)
	}
	return extended(t.dosPath(open.node)), nil
}

// extended puts the prefix of a literal path before a full path.
func extended(path string) string {
	if strings.HasPrefix(path, `\\?\`) {
		return path
	}
	if rest, ok := strings.CutPrefix(path, `\\`); ok {
		return `\\?\UNC\` + rest
	}
	return `\\?\` + path
}

// Delete is win32.API.Delete. The name goes at once, other handles keep the
// object. Failures: ErrAccessDenied without DELETE and for a root,
// ErrDirNotEmpty. Source: FileDispositionInformationEx with
// FILE_DISPOSITION_POSIX_SEMANTICS.
func (t *Tree) Delete(ctx context.Context, h win32.Handle) error {
	if code := cancelled(ctx); code != 0 {
		return fail("Delete", "", code)
	}
	t.mu.Lock()
	defer t.unlock()
	open, code := t.opened(h)
	if code != 0 {
		return fail("Delete", "", code)
	}
	if open.access&win32.AccessDelete == 0 {
		code = win32.ErrAccessDenied
	} else {
		code = t.remove(open.node)
	}
	return fail("Delete", open.node.hostPath(), code)
}

// remove takes the name of an object away.
func (t *Tree) remove(n *node) uint32 {
	switch {
	case n.parent == nil || n.deleted:
		return win32.ErrAccessDenied // STATUS_CANNOT_DELETE, STATUS_FILE_DELETED
	case n.vol.ReadOnly:
		return win32.ErrWriteProtect
	}
	if code := n.hasName(); code != 0 {
		return code
	}
	n.object.prepareRemoval()
	if err := n.parent.object.remove(n.name, n.stat.kind == hostFolder); err != nil {
		return hostCode(err)
	}
	n.deleted = true
	delete(t.nodes, n.key()) // a new object may get the number where no descriptor keeps it
	t.dropLink(n.link)
	t.forgetShortName(n.parent, n.name)
	return 0
}

// hasName checks that no other process of the host took the object's name.
func (n *node) hasName() uint32 {
	stat, err := n.parent.object.statChild(n.name)
	if err != nil {
		return hostCode(err)
	}
	if stat.id != n.stat.id {
		return win32.ErrAccessDenied
	}
	return 0
}
