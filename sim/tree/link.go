package tree

import (
	"path"
	"strings"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// Link is one reparse point, as the tree keeps it.
type Link struct {
	// Volume is the id of the volume that holds the reparse point, or
	// `\\server\share`.
	Volume string `json:"volume"`
	// Path is the host path below the volume's folder, separated by '/'.
	Path string `json:"path"`
	// Tag is the reparse tag.
	Tag uint32 `json:"tag"`
	// Folder is set on a reparse point with the directory attribute.
	Folder bool `json:"folder,omitempty"`
	// Relative is the flag SYMLINK_FLAG_RELATIVE.
	Relative bool `json:"relative,omitempty"`
	// Substitute and Print are the names in the reparse buffer.
	Substitute string `json:"substitute,omitempty"`
	Print      string `json:"print,omitempty"`
	// Data is what follows the header of a buffer with any other tag.
	Data []byte `json:"data,omitempty"`
	// HostText is the text of the host's symbolic link. It is empty where a
	// placeholder stands for the link.
	HostText string `json:"hostText,omitempty"`

	// foreign is set on a host link that the tree did not make.
	foreign bool
	// unmapped is set on a foreign link to a place that is on no volume.
	unmapped bool
}

// linkKey is where a reparse point, or a folder with short names, is.
type linkKey struct {
	volume string // in lower case
	path   string
}

func (l *Link) key() linkKey { return linkKey{volume: volumeKey(l.Volume), path: l.Path} }

// mountedVolume returns the id of the volume that a mount point leads to, or "".
func (l *Link) mountedVolume() string {
	if l.Tag != win32.TagMountPoint {
		return ""
	}
	id := `\\?\` + strings.TrimPrefix(l.Substitute, ntPrefix)
	if !isVolumeID(id) {
		return ""
	}
	return id
}

// linkVolume is the name of the volume in its links.
func (v *volume) linkVolume() string {
	if v.unc != "" {
		return v.unc
	}
	return v.ID
}

// linkKey is where a link at n would be.
func (n *node) linkKey() linkKey {
	return linkKey{volume: volumeKey(n.vol.linkVolume()), path: n.hostPath()}
}

// linkOf returns the reparse point that n is, or nil. The row of an object
// that something else has replaced is dropped.
func (t *Tree) linkOf(n *node) *Link {
	if n.stat.kind != hostLink && n.vol.rows == 0 {
		return nil
	}
	row := t.links[n.linkKey()]
	if n.stat.kind == hostLink {
		text, err := n.object.readlink()
		if row != nil && err == nil && row.HostText == text {
			return row
		}
		t.dropLink(row)
		return t.foreignLink(n.vol, text)
	}
	if row == nil || (row.HostText == "" && row.Folder == (n.stat.kind == hostFolder)) {
		return row
	}
	t.dropLink(row)
	return nil
}

// addLink enters a row.
func (t *Tree) addLink(v *volume, row *Link) {
	if t.links[row.key()] == nil {
		v.rows++
	}
	t.links[row.key()] = row
	t.dirty = true
}

// dropLink removes a row, if it is one.
func (t *Tree) dropLink(row *Link) {
	if row == nil || t.links[row.key()] != row {
		return
	}
	delete(t.links, row.key())
	if v := t.volumeNamed(row.Volume); v != nil {
		v.rows--
	}
	t.dirty = true
}

// volumeNamed returns the attached volume or reached share of a row.
func (t *Tree) volumeNamed(name string) *volume {
	if v := t.volumes[volumeKey(name)]; v != nil {
		return v
	}
	return t.shares[volumeKey(name)]
}

// countLinks counts the rows on a volume.
func (t *Tree) countLinks(name string) int {
	count := 0
	for key := range t.links {
		if key.volume == volumeKey(name) {
			count++
		}
	}
	return count
}

// moveLinks renames the rows at and below a place.
func (t *Tree) moveLinks(from, to linkKey) {
	for key, row := range t.links {
		if rest, ok := below(key, from); ok {
			delete(t.links, key)
			row.Path = to.path + rest
			t.links[row.key()] = row
			t.dirty = true
		}
	}
	for key, names := range t.short {
		if rest, ok := below(key, from); ok {
			delete(t.short, key)
			t.short[linkKey{volume: to.volume, path: to.path + rest}] = names
			t.dirty = true
		}
	}
	for _, w := range t.worn {
		if rest, ok := below(w.at, from); ok {
			w.at.path = to.path + rest
		}
	}
}

// below returns the rest of key's path when it is at or below from.
func below(key, from linkKey) (string, bool) {
	if key.volume != from.volume {
		return "", false
	}
	rest, ok := strings.CutPrefix(key.path, from.path)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// foreignLink describes a host link that the tree did not make, as a symbolic
// link whose target is a path of the node where there is one.
func (t *Tree) foreignLink(v *volume, text string) *Link {
	link := &Link{Volume: v.linkVolume(), Tag: win32.TagSymlink, Folder: true, HostText: text, foreign: true}
	if text != "" && !path.IsAbs(text) {
		link.Relative = true
		link.Substitute = nodeNames(text)
		link.Print = link.Substitute
		return link
	}
	target, ok := t.nodePath(path.Clean(text))
	if text == "" || !ok {
		link.unmapped = true
		link.Substitute, link.Print = text, text
		return link
	}
	link.Substitute, link.Print, _ = symlinkNames(target)
	return link
}

// nodePath translates an absolute host path into one of the node: below the
// volume whose folder is the longest prefix.
func (t *Tree) nodePath(hostPath string) (string, bool) {
	var best *volume
	for _, v := range t.volumes {
		if v.root == nil || (best != nil && len(best.Folder) >= len(v.Folder)) {
			continue
		}
		rest, ok := strings.CutPrefix(hostPath, strings.TrimSuffix(v.Folder, "/"))
		if ok && (rest == "" || rest[0] == '/') {
			best = v
		}
	}
	if best == nil {
		return "", false
	}
	base := best.ID
	if letter := t.letterOf(best.ID); letter != 0 {
		base = string(letter) + `:\`
	}
	rest := strings.Trim(strings.TrimPrefix(hostPath, best.Folder), "/")
	return base + nodeNames(rest), true
}

// nodeNames translates a relative host path.
func nodeNames(hostPath string) string {
	names := strings.Split(hostPath, "/")
	for i, name := range names {
		if name != "" && name != "." && name != ".." {
			names[i] = shownName(name)
		}
	}
	return strings.Join(names, `\`)
}
