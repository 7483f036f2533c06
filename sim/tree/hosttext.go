package tree

import (
	"context"
	"path"
	"strings"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// spareName is the name under which a host link is made before it takes the
// place of another.
const spareName = ".csi-windows-link"

// hostText is the text of the host link for a link in folder. remoteFolder is
// the host path of a target on a share, empty when that cannot be reached. A
// target that is not there now, or would lead out of the volumes, becomes a
// place where nothing can ever be.
func (t *Tree) hostText(folder *node, l *Link, remoteFolder string) string {
	if l.Relative {
		if text, ok := relativeText(folder, l.Substitute); ok {
			return text
		}
		return voidPath
	}
	target, ok := l.targetPath()
	if !ok {
		return voidPath
	}
	loc, code := parsePath(target)
	if code == 0 && loc.kind == rootRemote && remoteFolder != "" {
		return remoteFolder
	}
	if code != 0 || loc.kind == rootRemote {
		return voidPath
	}
	key := loc.volume
	if loc.kind == rootDrive {
		key = volumeKey(t.drives[loc.letter])
	}
	v := t.volumes[key]
	if v == nil || v.root == nil {
		return voidPath
	}
	return path.Join(v.Folder, t.hostNames(v, loc.names))
}

// relativeText translates the target of a relative link.
func relativeText(folder *node, target string) (string, bool) {
	up, names, code := relativeNames(target)
	if code != 0 {
		return "", false
	}
	up = min(up, folder.depth())
	for i, name := range names {
		names[i] = hostName(name)
	}
	if strings.HasPrefix(target, `\`) {
		return path.Join(folder.vol.Folder, path.Join(names...)), true
	}
	if up+len(names) == 0 {
		return ".", true
	}
	return strings.Repeat("../", up) + strings.Join(names, "/"), true
}

// hostNames translates names below a root, in the case and length the host
// knows them by, as far as they exist without following a link.
func (t *Tree) hostNames(v *volume, names []string) string {
	at := v.root
	at.refs++
	known := 0
	for ; known < len(names); known++ {
		next, code := t.child(at, names[known])
		if code != 0 {
			break
		}
		t.unref(at)
		at = next
	}
	hosts := []string{at.hostPath()}
	t.unref(at)
	for _, name := range names[known:] {
		hosts = append(hosts, hostName(name))
	}
	return path.Join(hosts...)
}

// remoteTarget asks the redirector for the host path of a link's target on a
// share; empty when the link does not lead to one, or to none that answers.
func (t *Tree) remoteTarget(ctx context.Context, l *Link) string {
	target, ok := l.targetPath()
	if l.Relative || !ok || !hostLinks {
		return ""
	}
	loc, code := parsePath(target)
	if code != 0 || loc.kind != rootRemote {
		return ""
	}
	folder, code := t.remoteFolder(ctx, loc.server, loc.share)
	if code != 0 {
		return ""
	}
	for i, name := range loc.names {
		loc.names[i] = hostName(name)
	}
	return path.Join(folder, path.Join(loc.names...))
}

// isRemote reports whether the link leads to a share.
func (l *Link) isRemote() bool {
	return !l.Relative && strings.HasPrefix(strings.ToUpper(l.Substitute), ntPrefix+`UNC\`)
}

// Refresh asks the redirector anew for every link that leads to a share, and
// points the host's links at what it answers. The node calls it after its
// mappings have changed.
func (t *Tree) Refresh(ctx context.Context) {
	if !hostLinks {
		return
	}
	t.mu.Lock()
	var remote []*Link
	for _, row := range t.links {
		if row.isRemote() {
			remote = append(remote, row)
		}
	}
	t.unlock()
	folders := make(map[*Link]string, len(remote))
	for _, row := range remote {
		folders[row] = t.remoteTarget(ctx, row)
	}
	t.mu.Lock()
	defer t.unlock()
	t.repointAll(folders)
}

// repointAll brings the text of every host link up to date, those that lead to
// shares only when folders says where they are.
func (t *Tree) repointAll(folders map[*Link]string) {
	if !hostLinks {
		return
	}
	for _, row := range t.links {
		folder, known := folders[row]
		if row.HostText == "" || (row.isRemote() && !known) {
			continue
		}
		if n, code := t.nodeOf(row); code == 0 {
			_ = t.repoint(n, row, folder) // a link that cannot be changed stays as it is
			t.unref(n)
		}
	}
}

// repoint changes the text of a host link.
func (t *Tree) repoint(n *node, row *Link, remoteFolder string) uint32 {
	text := t.hostText(n.parent, row, remoteFolder)
	if text == row.HostText && n.link == row {
		return 0
	}
	parent := n.parent.object
	_ = parent.remove(spareName, false) // left over by a crash
	if err := parent.symlink(text, spareName); err != nil {
		return hostCode(err)
	}
	if err := parent.rename(spareName, parent, n.name); err != nil {
		_ = parent.remove(spareName, false)
		return hostCode(err)
	}
	row.HostText = text
	t.dirty = true
	return t.replace(n)
}

// nodeOf opens the object of a row, with a reference. A row whose object is
// another one by now is dropped: ErrFileNotFound.
func (t *Tree) nodeOf(row *Link) (*node, uint32) {
	v := t.volumeNamed(row.Volume)
	if v == nil {
		return nil, win32.ErrPathNotFound
	}
	n, code := t.exactNode(v, row.Path)
	if code == 0 && n.link == row {
		return n, 0
	}
	if code == 0 {
		t.unref(n)
	}
	t.dropLink(row)
	return nil, win32.ErrFileNotFound
}
