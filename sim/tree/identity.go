package tree

// worn is the file id that an object has from another one. A folder that
// becomes a mount point, or a plain folder again, keeps its id on Windows; the
// host object is made anew and does not.
type worn struct {
	fileID [16]byte
	// original is kept open so that the host gives its number to nobody else.
	original *hostObject
	at       linkKey // where the object was last seen
}

// wornLimit is how many borrowed ids may be kept before those are dropped
// whose object another process of the host has removed.
const wornLimit = 64

// fileID is the file id of an object, the same under all its names and forms.
func (t *Tree) fileID(n *node) [16]byte {
	if w := t.worn[n.key()]; w != nil {
		return w.fileID
	}
	return n.stat.id
}

// replace puts another host object under a node whose host object was made
// anew: a folder that became a link, or back. The file id stays.
func (t *Tree) replace(n *node) uint32 {
	object, stat, err := n.parent.object.open(n.name)
	if err != nil {
		return hostCode(err)
	}
	old := n.key()
	w := t.worn[old]
	if w == nil {
		w = &worn{fileID: n.stat.id, original: n.object, at: n.linkKey()}
	} else {
		n.object.close()
	}
	delete(t.worn, old)
	if t.nodes[old] == n {
		delete(t.nodes, old)
	}
	n.object, n.stat = object, stat
	t.nodes[n.key()] = n
	t.pruneWorn()
	t.worn[n.key()] = w
	return 0
}

// takeOff drops a borrowed file id.
func (t *Tree) takeOff(key nodeKey) {
	if w := t.worn[key]; w != nil {
		w.original.close()
		delete(t.worn, key)
	}
}

// pruneWorn drops the borrowed ids of objects that are gone.
func (t *Tree) pruneWorn() {
	if len(t.worn) < t.wornLimit {
		return
	}
	for key, w := range t.worn {
		if t.nodes[key] != nil {
			continue
		}
		n, code := t.exactNode(key.vol, w.at.path)
		if code != 0 || n.key() != key {
			t.takeOff(key)
		}
		if code == 0 {
			t.unref(n)
		}
	}
	t.wornLimit = max(wornLimit, 2*len(t.worn))
}
