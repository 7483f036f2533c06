package tree

import (
	"context"
	"strings"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// maxReparsePoints is how many a path may lead through. Source: Reparse Points
// and File Operations, Win32 FileIO.
const maxReparsePoints = 63

// spot is where a walk ended. Its nodes are references that drop must let go.
type spot struct {
	node   *node  // nil when the last name is missing
	folder *node  // holds the last name; nil when the path names a root
	name   string // the last name as it was given
}

// leave lets go of the nodes of a spot.
func (t *Tree) leave(s spot) {
	t.mu.Lock()
	defer t.unlock()
	t.unref(s.node)
	t.unref(s.folder)
}

// walk follows a path name by name. It takes the lock for one name at a time,
// as an operating system does. Links on the way are followed, one that is the
// last name only when follow is set. A missing last name is no failure.
func (t *Tree) walk(ctx context.Context, loc location, follow bool) (spot, uint32) {
	if loc.device {
		return spot{}, win32.ErrFileNotFound // the node has no console and no ports
	}
	at, code := t.openRoot(ctx, loc)
	if code != 0 {
		return spot{}, code
	}
	names := loc.names
	for jumps := 0; len(names) > 0; {
		if code := cancelled(ctx); code != 0 {
			t.leave(spot{node: at})
			return spot{}, code
		}
		last := len(names) == 1
		next, link, code := t.lookUp(at, names[0])
		switch {
		case code == win32.ErrFileNotFound && last:
			return spot{folder: at, name: names[0]}, 0
		case code == win32.ErrFileNotFound:
			code = win32.ErrPathNotFound
			fallthrough
		case code != 0:
			t.leave(spot{node: at})
			return spot{}, code
		case link == nil && !last:
			t.leave(spot{node: at})
			at, names = next, names[1:]
			continue
		case link == nil || (last && !follow):
			return spot{node: next, folder: at, name: names[0]}, 0
		}
		if jumps++; jumps > maxReparsePoints {
			t.leave(spot{node: next, folder: at})
			return spot{}, errCantResolve
		}
		target, more, code := t.jump(ctx, at, link)
		t.leave(spot{node: next, folder: at})
		if code != 0 {
			return spot{}, code
		}
		at, names = target, append(more, names[1:]...)
	}
	return spot{node: at}, 0
}

// lookUp is child under the lock, with the reparse point that it is.
func (t *Tree) lookUp(folder *node, name string) (*node, *Link, uint32) {
	t.mu.Lock()
	defer t.unlock()
	n, code := t.child(folder, name)
	if code != 0 {
		return nil, nil, code
	}
	return n, n.link, 0
}

// openRoot returns the root that a path starts from, with a reference.
func (t *Tree) openRoot(ctx context.Context, loc location) (*node, uint32) {
	if loc.kind == rootRemote {
		return t.openShare(ctx, loc.server, loc.share)
	}
	t.mu.Lock()
	defer t.unlock()
	key := loc.volume
	if loc.kind == rootDrive {
		key = volumeKey(t.drives[loc.letter])
	}
	v := t.volumes[key]
	if v == nil {
		// The object manager knows no such name: STATUS_OBJECT_PATH_NOT_FOUND.
		return nil, win32.ErrPathNotFound
	}
	return v.openRoot()
}

// openRoot returns the root folder with a reference. A volume without a known
// file system has none (STATUS_UNRECOGNIZED_VOLUME).
func (v *volume) openRoot() (*node, uint32) {
	if v.root == nil {
		return nil, win32.ErrUnrecognizedVolume
	}
	v.root.refs++
	return v.root, 0
}

// openShare asks the redirector for a share. A share whose folder changed is
// another share from then on.
func (t *Tree) openShare(ctx context.Context, server, share string) (*node, uint32) {
	folder, code := t.remoteFolder(ctx, server, share)
	if code != 0 {
		return nil, code
	}
	t.mu.Lock()
	defer t.unlock()
	unc := `\\` + server + `\` + share
	known := t.shares[volumeKey(unc)]
	if known != nil && known.asked == folder {
		return known.openRoot()
	}
	opened, code := t.openVolume(Volume{Folder: folder, Serial: shareSerial(unc)})
	if code != 0 {
		return nil, win32.ErrBadNetName
	}
	if known != nil {
		t.retire(known)
	}
	opened.unc, opened.asked = unc, folder
	opened.rows = t.countLinks(unc)
	t.shares[volumeKey(unc)] = opened
	return opened.openRoot()
}

// remoteFolder calls the redirector.
func (t *Tree) remoteFolder(ctx context.Context, server, share string) (string, uint32) {
	t.mu.Lock()
	remote := t.remote
	t.unlock()
	if remote == nil {
		return "", win32.ErrBadNetPath
	}
	folder, code := remote(ctx, server, share)
	if code == 0 && folder == "" {
		code = win32.ErrBadNetName
	}
	return folder, code
}

// shareSerial is a volume serial number for a share: FNV-1a of its name.
func shareSerial(unc string) uint64 {
	sum := uint64(14695981039346656037)
	for _, c := range []byte(volumeKey(unc)) {
		sum = (sum ^ uint64(c)) * 1099511628211
	}
	return sum
}

// jump returns where a link in folder leads: a referenced node to go on from,
// and names to follow there.
func (t *Tree) jump(ctx context.Context, folder *node, link *Link) (*node, []string, uint32) {
	switch {
	case link.Tag != win32.TagSymlink && link.Tag != win32.TagMountPoint:
		return nil, nil, errCantAccessFile
	case link.unmapped:
		return nil, nil, errCantResolve
	case folder.vol.unc != "":
		// Remote-to-local and remote-to-remote links are off unless an
		// administrator turns them on. Source: fsutil behavior set SymlinkEvaluation.
		return nil, nil, errSymlinkClassDisabled
	case link.Relative:
		return t.jumpRelative(folder, link.Substitute)
	}
	path, ok := link.targetPath()
	if !ok {
		return nil, nil, errInvalidReparseData
	}
	loc, code := parsePath(path)
	if code != 0 {
		return nil, nil, missingTarget(code)
	}
	root, code := t.openRoot(ctx, loc)
	return root, loc.names, code
}

// missingTarget makes the failure of a link's target out of that of its text.
func missingTarget(code uint32) uint32 {
	if code == win32.ErrFileNotFound { // a device is no folder
		return win32.ErrPathNotFound
	}
	return code
}

// jumpRelative resolves against the link's own folder, or against the root of
// its volume when the target starts with a backslash. Above the root is the root,
// as in every path that Windows collapses.
func (t *Tree) jumpRelative(folder *node, target string) (*node, []string, uint32) {
	up, names, code := relativeNames(target)
	if code != 0 {
		return nil, nil, code
	}
	t.mu.Lock()
	defer t.unlock()
	if code := folder.usable(); code != 0 {
		return nil, nil, code
	}
	from := folder
	if strings.HasPrefix(target, `\`) {
		from = folder.vol.root
	}
	for ; up > 0 && from.parent != nil; up-- {
		from = from.parent
	}
	from.refs++
	return from, names, 0
}
