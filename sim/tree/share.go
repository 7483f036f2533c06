package tree

import "github.com/csi-windows/csi-windows/winos/win32"

// The access rights that take part in sharing. Source: IoCheckShareAccess.
const (
	accessExecute = 0x00000020 // FILE_EXECUTE = FILE_TRAVERSE
	genericAll    = 0x10000000

	readRights   = win32.FileListDir | accessExecute
	writeRights  = win32.FileAddFile | win32.FileAddSubdir
	deleteRights = win32.AccessDelete
	shareRights  = readRights | writeRights | deleteRights
)

// handle is an open handle.
type handle struct {
	node   *node
	access uint32 // generic rights mapped to file rights
	share  uint32
}

// mapGeneric replaces generic rights. Source: the file object's GENERIC_MAPPING.
func mapGeneric(access uint32) uint32 {
	if access&(win32.GenericRead|genericAll) != 0 {
		access |= win32.FileListDir | win32.FileReadAttr | win32.Synchronize
	}
	if access&(win32.GenericWrite|genericAll) != 0 {
		access |= writeRights | win32.FileWriteAttr | win32.Synchronize
	}
	if access&genericAll != 0 {
		access |= win32.AccessDelete
	}
	return access
}

// checkShare reports ErrSharingViolation when a new handle of these rights does
// not go with the handles that n has. Handles that can neither read, write nor
// delete take no part. Source: IoCheckShareAccess.
func (n *node) checkShare(access, share uint32) uint32 {
	if access&shareRights == 0 {
		return 0
	}
	for _, other := range n.opens {
		if other.access&shareRights == 0 {
			continue
		}
		if !allows(other.share, access) || !allows(share, other.access) {
			return win32.ErrSharingViolation
		}
	}
	return 0
}

// allows reports whether a share mode lets another handle have such rights.
func allows(share, access uint32) bool {
	return (access&readRights == 0 || share&win32.ShareRead != 0) &&
		(access&writeRights == 0 || share&win32.ShareWrite != 0) &&
		(access&deleteRights == 0 || share&win32.ShareDelete != 0)
}

// newHandle opens a node. The handle takes the caller's reference over, also
// when it fails.
func (t *Tree) newHandle(n *node, access, share uint32) (win32.Handle, uint32) {
	access = mapGeneric(access)
	code := n.usable()
	if code == 0 && n.vol.ReadOnly && access&(writeRights|deleteRights) != 0 {
		code = win32.ErrWriteProtect
	}
	if code == 0 {
		code = n.checkShare(access, share)
	}
	if code != 0 {
		t.unref(n)
		return 0, code
	}
	open := &handle{node: n, access: access, share: share}
	n.opens = append(n.opens, open)
	addBelow(n.parent, 1)
	t.last += HandleStep
	t.handles[t.last] = open
	return t.last, 0
}

// drop closes a handle.
func (t *Tree) drop(h win32.Handle) bool {
	open := t.handles[h]
	if open == nil {
		return false
	}
	delete(t.handles, h)
	n := open.node
	for i, other := range n.opens {
		if other == open {
			n.opens = append(n.opens[:i], n.opens[i+1:]...)
			break
		}
	}
	addBelow(n.parent, -1)
	t.unref(n)
	return true
}

// opened returns an open handle whose volume is there.
func (t *Tree) opened(h win32.Handle) (*handle, uint32) {
	open := t.handles[h]
	if open == nil {
		return nil, win32.ErrInvalidHandle
	}
	if open.node.vol.gone {
		return nil, win32.ErrDevNotConnected
	}
	return open, 0
}
