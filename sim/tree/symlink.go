package tree

import (
	"context"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// CreateSymlink is win32.API.CreateSymlink. Failures: ErrAlreadyExists,
// ErrInvalidName, ErrInvalidParameter for an empty target, errInvalidReparseData
// for one that does not fit a reparse buffer, those of CreateFile.
func (t *Tree) CreateSymlink(ctx context.Context, folder win32.Handle, name, target string, directory bool) error {
	link, code := encodedLink(target)
	if code == 0 {
		link.Folder = directory
		code = cancelled(ctx)
	}
	if code == 0 {
		code = t.createSymlink(ctx, folder, name, link)
	}
	return fail("CreateSymlink", name, code)
}

// encodedLink makes a link as winos/win32 does on Windows: it lays out the buffer by
// itself, so that the limit of paths without a prefix does not hold for the target.
func encodedLink(target string) (*Link, uint32) {
	if target == "" {
		return nil, win32.ErrInvalidParameter
	}
	buffer, err := win32.EncodeSymlink(target)
	if err != nil {
		return nil, errInvalidReparseData
	}
	return decodeReparse(buffer)
}

// checkTarget checks that a link's target makes a reparse buffer.
func checkTarget(l *Link) uint32 {
	if l.Substitute == "" {
		return win32.ErrInvalidParameter
	}
	if utf16Len(l.Substitute)+utf16Len(l.Print) > win32.ReparseBufferMaxBytes/2 {
		return errInvalidReparseData
	}
	_, code := decodeReparse(encodeReparse(l))
	return code
}

func (t *Tree) createSymlink(ctx context.Context, folder win32.Handle, name string, link *Link) uint32 {
	remoteFolder := t.remoteTarget(ctx, link)
	t.mu.Lock()
	defer t.unlock()
	open, code := t.opened(folder)
	if code != 0 {
		return code
	}
	return t.makeLink(open.node, name, link, remoteFolder)
}

// makeLink makes a new reparse point in a folder.
func (t *Tree) makeLink(folder *node, name string, link *Link, remoteFolder string) uint32 {
	if code := makeable(folder, name); code != 0 {
		return code
	}
	if n, code := t.child(folder, name); code == 0 {
		t.unref(n)
		return win32.ErrAlreadyExists
	} else if code != win32.ErrFileNotFound {
		return code
	}
	host := hostName(name)
	if code := t.makeLinkObject(folder, host, link, remoteFolder); code != 0 {
		return code
	}
	t.enterLink(folder, host, link)
	return 0
}

// enterLink enters the row of a link called host in folder.
func (t *Tree) enterLink(folder *node, host string, link *Link) {
	at := &node{vol: folder.vol, parent: folder, name: host}
	link.Volume, link.Path = folder.vol.linkVolume(), at.hostPath()
	t.addLink(folder.vol, link)
}

// makeLinkObject makes the host object of a link: a host link, or an empty
// folder or file that stands for it.
func (t *Tree) makeLinkObject(folder *node, host string, link *Link, remoteFolder string) uint32 {
	switch {
	case hostLinks:
		link.HostText = t.hostText(folder, link, remoteFolder)
		return createCode(folder.object.symlink(link.HostText, host))
	default:
		return makePlain(folder, host, link.Folder)
	}
}

// makePlain makes an empty folder or file.
func makePlain(folder *node, host string, asFolder bool) uint32 {
	if asFolder {
		return createCode(folder.object.mkdir(host))
	}
	return createCode(folder.object.create(host))
}
