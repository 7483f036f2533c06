package tree

import (
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// nodeKey is what makes two openings of one object the same node.
type nodeKey struct {
	vol *volume
	id  [16]byte
}

// node is a host object that some handle, walk or node below it holds open.
type node struct {
	vol    *volume
	parent *node  // nil for a root; the node holds a reference on it
	name   string // host name in parent
	object *hostObject
	stat   hostStat // as at opening; kind and id do not change
	link   *Link    // set on a reparse point
	// deleted is set when the name is gone and only handles keep the object.
	deleted bool
	refs    int // handles, walks and nodes whose parent this is
	opens   []*handle
	below   int // handles on the nodes below
}

func (n *node) key() nodeKey { return nodeKey{vol: n.vol, id: n.stat.id} }

// isFolder reports whether the object is a folder that can hold others.
func (n *node) isFolder() bool { return n.link == nil && n.stat.kind == hostFolder }

// hasDirectoryAttribute is isFolder, and true of links that stand for folders.
func (n *node) hasDirectoryAttribute() bool {
	if n.link != nil {
		return n.link.Folder
	}
	return n.stat.kind == hostFolder
}

// hostPath returns the host names from the volume's root, joined by '/'.
func (n *node) hostPath() string {
	var names []string
	for ; n.parent != nil; n = n.parent {
		names = append(names, n.name)
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// depth is the number of names from the volume's root.
func (n *node) depth() int {
	depth := 0
	for ; n.parent != nil; n = n.parent {
		depth++
	}
	return depth
}

// inPlace reports whether every host name from the root still leads to n, as
// it must unless another process of the host moved something.
func (n *node) inPlace() bool {
	for ; n.parent != nil; n = n.parent {
		if n.deleted {
			return false
		}
		stat, err := n.parent.object.statChild(n.name)
		if err != nil || stat.id != n.stat.id {
			return false
		}
	}
	return true
}

// adopt returns the node of an object just opened as a child, with a
// reference. It takes the object over.
func (t *Tree) adopt(parent *node, name string, object *hostObject, stat hostStat) *node {
	if n := t.nodes[nodeKey{vol: parent.vol, id: stat.id}]; n != nil {
		object.close()
		n.refs++
		if n.parent != nil && (n.parent != parent || n.name != name) {
			t.relocate(n, parent, name)
		}
		return n
	}
	parent.refs++
	n := &node{vol: parent.vol, parent: parent, name: name, object: object, stat: stat, refs: 1}
	t.nodes[n.key()] = n
	n.link = t.linkOf(n)
	return n
}

// unref lets go of a node.
func (t *Tree) unref(n *node) {
	for n != nil {
		n.refs--
		if n.refs > 0 {
			return
		}
		n.object.close()
		if t.nodes[n.key()] == n {
			delete(t.nodes, n.key())
		}
		if n.deleted {
			t.takeOff(n.key())
		}
		n = n.parent
	}
}

// relocate notes that n is now called name in parent. When other processes
// moved folders so that what is known of parent lies below n, it notes nothing.
func (t *Tree) relocate(n, parent *node, name string) {
	for p := parent; p != nil; p = p.parent {
		if p == n {
			return
		}
	}
	handles := n.below + len(n.opens)
	old := n.parent
	parent.refs++
	n.parent, n.name = parent, name
	n.object.renamed(parent.object, name)
	addBelow(old, -handles)
	addBelow(parent, handles)
	t.unref(old)
}

// addBelow counts handles on n and every folder above.
func addBelow(n *node, handles int) {
	for ; n != nil; n = n.parent {
		n.below += handles
	}
}

// child opens a name in a folder. Failures: ErrFileNotFound, ErrPathNotFound
// when folder is none.
func (t *Tree) child(folder *node, name string) (*node, uint32) {
	if code := folder.usable(); code != 0 {
		return nil, code
	}
	if folder.link != nil {
		return nil, win32.ErrFileNotFound // the folder under a reparse point is empty
	}
	if folder.stat.kind != hostFolder {
		return nil, win32.ErrPathNotFound
	}
	if code := checkName(name); code != 0 {
		return nil, code
	}
	if !hostFoldsCase {
		if n, code := t.exactChild(folder, hostName(name)); code != win32.ErrFileNotFound {
			return n, code
		}
	}
	host, code := t.findName(folder, name)
	if code != 0 {
		return nil, code
	}
	return t.exactChild(folder, host)
}

// usable is the code of a call on an object whose volume or name is gone.
func (n *node) usable() uint32 {
	switch {
	case n.vol.gone:
		return win32.ErrDevNotConnected
	case n.deleted:
		return win32.ErrAccessDenied // STATUS_DELETE_PENDING
	}
	return 0
}

// exactChild opens a host name in a folder.
func (t *Tree) exactChild(folder *node, host string) (*node, uint32) {
	object, stat, err := folder.object.open(host)
	if err != nil {
		return nil, hostCode(err)
	}
	return t.adopt(folder, host, object, stat), 0
}

// findName returns the host name that a Windows name means in a folder: the
// same but for case, or one whose 8.3 name it is.
func (t *Tree) findName(folder *node, name string) (string, uint32) {
	hosts, err := folder.object.names()
	if err != nil {
		return "", hostCode(err)
	}
	folded, found := foldName(name), ""
	for _, host := range hosts {
		shown := shownName(host)
		if shown == name {
			return host, 0
		}
		if (found == "" || host < found) && foldName(shown) == folded {
			found = host
		}
	}
	if found == "" {
		found = t.findShortName(folder, folded, hosts)
	}
	if found == "" {
		return "", win32.ErrFileNotFound
	}
	return found, 0
}

// exactNode opens the object at a host path, links not followed, with a reference.
func (t *Tree) exactNode(v *volume, hostPath string) (*node, uint32) {
	at, code := v.openRoot()
	if code != 0 {
		return nil, code
	}
	for _, host := range strings.Split(hostPath, "/") {
		code := uint32(win32.ErrPathNotFound)
		next := at
		if at.isFolder() {
			next, code = t.exactChild(at, host)
		}
		if code != 0 {
			t.unref(at)
			return nil, code
		}
		t.unref(at)
		at = next
	}
	return at, 0
}
