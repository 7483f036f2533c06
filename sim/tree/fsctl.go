package tree

import (
	"context"
	"encoding/binary"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// changeReparse are the rights of which changing a reparse point
// needs one. Source: [MS-FSCC] 2.3.6, STATUS_ACCESS_DENIED.
const changeReparse = writeRights | win32.FileWriteAttr

// FsctlGetReparsePoint is DeviceIoControl of FSCTL_GET_REPARSE_POINT. Failures:
// ErrNotAReparsePoint, ErrInsufficientBuffer when not even the header fits,
// ErrMoreData with the part that does.
func (t *Tree) FsctlGetReparsePoint(ctx context.Context, h win32.Handle, out []byte) (int, error) {
	const call = "FSCTL_GET_REPARSE_POINT"
	if code := cancelled(ctx); code != 0 {
		return 0, fail(call, "", code)
	}
	t.mu.Lock()
	defer t.unlock()
	open, code := t.opened(h)
	if code == 0 && open.node.link == nil {
		code = win32.ErrNotAReparsePoint
	}
	if code == 0 && len(out) < reparseHeaderBytes {
		code = win32.ErrInsufficientBuffer
	}
	if code != 0 {
		return 0, fail(call, "", code)
	}
	buffer := encodeReparse(open.node.link)
	count := copy(out, buffer)
	if count < len(buffer) {
		code = win32.ErrMoreData
	}
	return count, fail(call, "", code)
}

// FsctlSetReparsePoint is DeviceIoControl of FSCTL_SET_REPARSE_POINT. Failures:
// 4392 for a malformed buffer, ErrReparseTagInvalid, 4394 when there is a point
// of another tag, ErrDirNotEmpty, ErrDirectory for a mount point on a file,
// ErrInvalidFunction where the file system hosts none, ErrWriteProtect,
// ErrAccessDenied. A symbolic link over a file that is not empty is
// ErrNotSupported: the model cannot keep both.
func (t *Tree) FsctlSetReparsePoint(ctx context.Context, h win32.Handle, in []byte) error {
	const call = "FSCTL_SET_REPARSE_POINT"
	link, code := decodeReparse(in)
	if code == 0 {
		code = cancelled(ctx)
	}
	if code != 0 {
		return fail(call, "", code)
	}
	remoteFolder := t.remoteTarget(ctx, link)
	t.mu.Lock()
	defer t.unlock()
	n, code := t.openedForReparse(h)
	if code == 0 {
		code = t.setReparse(n, link, remoteFolder)
	}
	return fail(call, "", code)
}

// openedForReparse returns the node of a handle that may change its reparse point.
func (t *Tree) openedForReparse(h win32.Handle) (*node, uint32) {
	open, code := t.opened(h)
	if code != 0 {
		return nil, code
	}
	n := open.node
	if open.access&changeReparse == 0 || n.parent == nil || n.deleted {
		return nil, win32.ErrAccessDenied
	}
	if n.vol.ReadOnly {
		return nil, win32.ErrWriteProtect
	}
	return n, n.hasName()
}

// setReparse makes a reparse point of an empty folder or file.
func (t *Tree) setReparse(n *node, link *Link, remoteFolder string) uint32 {
	if code := settable(n, link); code != 0 {
		return code
	}
	link.Folder = n.hasDirectoryAttribute()
	isPath := link.Tag == win32.TagSymlink || link.Tag == win32.TagMountPoint
	if hostLinks && isPath {
		if code := t.becomeLink(n, link, remoteFolder); code != 0 {
			return code
		}
	}
	t.dropLink(n.link)
	t.enterLink(n.parent, n.name, link)
	n.link = link
	return 0
}

// settable checks that a reparse point may be set.
func settable(n *node, link *Link) uint32 {
	switch {
	case link.Tag == win32.TagMountPoint && !n.vol.HostsMountPoints:
		return win32.ErrInvalidFunction // STATUS_INVALID_DEVICE_REQUEST
	case n.link != nil && n.link.Tag != link.Tag:
		return errReparseTagMismatch
	case n.link != nil:
		return 0
	case n.stat.kind == hostFolder:
		names, err := n.object.names()
		if err == nil && len(names) > 0 {
			return win32.ErrDirNotEmpty
		}
		return hostCode(err)
	case link.Tag == win32.TagMountPoint:
		return win32.ErrDirectory
	case link.Tag != win32.TagSymlink:
		return 0
	}
	if stat, err := n.object.stat(); err != nil || stat.sizeBytes > 0 {
		return win32.ErrNotSupported
	}
	return 0
}

// becomeLink puts a host link in the place of the host object.
func (t *Tree) becomeLink(n *node, link *Link, remoteFolder string) uint32 {
	if n.stat.kind == hostLink {
		return t.repoint(n, link, remoteFolder)
	}
	parent := n.parent.object
	if err := parent.remove(n.name, n.stat.kind == hostFolder); err != nil {
		return hostCode(err)
	}
	if code := t.makeLinkObject(n.parent, n.name, link, remoteFolder); code != 0 {
		return code
	}
	return t.replace(n)
}

// FsctlDeleteReparsePoint is DeviceIoControl of FSCTL_DELETE_REPARSE_POINT: an
// empty folder or file remains. Failures: ErrNotAReparsePoint, 4392 for a
// malformed buffer, ErrReparseTagInvalid, 4394 for one of another tag. Source:
// [MS-FSCC] 2.3.6.
func (t *Tree) FsctlDeleteReparsePoint(ctx context.Context, h win32.Handle, in []byte) error {
	const call = "FSCTL_DELETE_REPARSE_POINT"
	if code := cancelled(ctx); code != 0 {
		return fail(call, "", code)
	}
	if len(in) != reparseHeaderBytes && len(in) != guidHeaderBytes || binary.LittleEndian.Uint16(in[4:]) != 0 {
		return fail(call, "", errInvalidReparseData)
	}
	tag := binary.LittleEndian.Uint32(in)
	if tag == tagReservedZero || tag == tagReservedOne {
		return fail(call, "", win32.ErrReparseTagInvalid)
	}
	t.mu.Lock()
	defer t.unlock()
	n, code := t.openedForReparse(h)
	switch {
	case code != 0:
	case n.link == nil:
		code = win32.ErrNotAReparsePoint
	case n.link.Tag != tag:
		code = errReparseTagMismatch
	default:
		code = t.becomePlain(n)
	}
	return fail(call, "", code)
}

// becomePlain makes a plain, empty folder or file of a reparse point.
func (t *Tree) becomePlain(n *node) uint32 {
	link := n.link
	if n.stat.kind == hostLink {
		if err := n.parent.object.remove(n.name, false); err != nil {
			return hostCode(err)
		}
		if code := makePlain(n.parent, n.name, link.Folder); code != 0 {
			return code
		}
		if code := t.replace(n); code != 0 {
			return code
		}
	}
	t.dropLink(link)
	n.link = nil
	return 0
}
