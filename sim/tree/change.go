package tree

import (
	"context"
	"fmt"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// LinkKind says how a link is made.
type LinkKind uint8

// The kinds of links.
const (
	FolderSymlink LinkKind = iota // mklink /D
	FileSymlink                   // mklink
	Junction                      // mklink /J; to a volume id, a mount point
)

// MakeLink makes a link at a path, as a process of the node does.
func (t *Tree) MakeLink(ctx context.Context, path, target string, kind LinkKind) error {
	link, code := newLink(target, kind)
	if code != 0 {
		return fail("MakeLink", path, code)
	}
	remoteFolder := t.remoteTarget(ctx, link)
	loc, code := parsePath(path)
	if code != 0 {
		return fail("MakeLink", path, code)
	}
	at, code := t.walk(ctx, loc, false)
	if code != 0 {
		return fail("MakeLink", path, code)
	}
	defer t.leave(at)
	t.mu.Lock()
	defer t.unlock()
	if at.node != nil {
		return fail("MakeLink", path, win32.ErrAlreadyExists)
	}
	return fail("MakeLink", path, t.makeLink(at.folder, at.name, link, remoteFolder))
}

// newLink makes a link that is not on a volume yet.
func newLink(target string, kind LinkKind) (*Link, uint32) {
	link := &Link{Tag: win32.TagSymlink, Folder: kind != FileSymlink}
	link.Substitute, link.Print, link.Relative = symlinkNames(target)
	if kind == Junction {
		link.Tag = win32.TagMountPoint
		if link.Relative {
			return nil, win32.ErrInvalidParameter
		}
	}
	return link, checkTarget(link)
}

// Rename renames an object within its volume, as MoveFileW does. Failures:
// ErrSharingViolation when a handle does not share DELETE, ErrAccessDenied for
// a folder with open handles below it (Source: FileRenameInformation,
// [MS-FSA] 2.1.5.14.11), ErrAlreadyExists, 17 for another volume.
func (t *Tree) Rename(ctx context.Context, from, to string) error {
	source, code := t.find(ctx, from, false)
	if code != 0 {
		return fail("MoveFile", from, code)
	}
	defer t.leave(source)
	loc, code := parsePath(to)
	if code != 0 {
		return fail("MoveFile", to, code)
	}
	target, code := t.walk(ctx, loc, false)
	if code != 0 {
		return fail("MoveFile", to, code)
	}
	defer t.leave(target)
	t.mu.Lock()
	defer t.unlock()
	if code := source.node.renameable(); code != 0 {
		return fail("MoveFile", from, code)
	}
	switch {
	case target.node != nil:
		code = win32.ErrAlreadyExists
	case target.folder.vol != source.node.vol:
		code = errNotSameDevice
	default:
		if code = makeable(target.folder, target.name); code == 0 {
			code = t.move(source.node, target.folder, hostName(target.name))
		}
	}
	return fail("MoveFile", from, code)
}

// renameable checks what Windows checks before a rename.
func (n *node) renameable() uint32 {
	switch {
	case n.parent == nil || n.deleted || n.below > 0:
		return win32.ErrAccessDenied
	case n.vol.ReadOnly:
		return win32.ErrWriteProtect
	}
	return n.checkShare(win32.AccessDelete, shareAll)
}

// move renames a host object and everything known of it.
func (t *Tree) move(n, folder *node, host string) uint32 {
	if code := n.hasName(); code != 0 {
		return code
	}
	if err := n.parent.object.rename(n.name, folder.object, host); err != nil {
		return hostCode(err)
	}
	from := n.linkKey()
	t.forgetShortName(n.parent, n.name)
	t.relocate(n, folder, host)
	t.moveLinks(from, n.linkKey())
	return 0
}

// ForceSwap replaces an object by a symbolic link to target, as an attacker
// who wins a race does: open handles and share modes do not stop it. The object
// itself goes on under the name returned, in the same folder; handles stay with it.
func (t *Tree) ForceSwap(ctx context.Context, path, target string) (movedTo string, err error) {
	link, code := newLink(target, FolderSymlink)
	if code != 0 {
		return "", fail("ForceSwap", path, code)
	}
	remoteFolder := t.remoteTarget(ctx, link)
	at, code := t.find(ctx, path, false)
	if code != 0 {
		return "", fail("ForceSwap", path, code)
	}
	defer t.leave(at)
	t.mu.Lock()
	defer t.unlock()
	if at.folder == nil {
		return "", fail("ForceSwap", path, win32.ErrAccessDenied)
	}
	name := at.node.name
	if code := t.move(at.node, at.folder, t.freeName(at.folder, name)); code != 0 {
		return "", fail("ForceSwap", path, code)
	}
	movedTo = shownName(at.node.name)
	if code := t.makeLinkObject(at.folder, name, link, remoteFolder); code != 0 {
		return movedTo, fail("ForceSwap", path, code)
	}
	t.enterLink(at.folder, name, link)
	return movedTo, nil
}

// freeName returns a host name like name that nothing has.
func (t *Tree) freeName(folder *node, name string) string {
	for n := 1; ; n++ {
		free := fmt.Sprintf("%s.swapped-%d", name, n)
		if _, err := folder.object.statChild(free); err != nil {
			return free
		}
	}
}
