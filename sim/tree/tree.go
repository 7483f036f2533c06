package tree

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// HandleStep divides every handle of a Tree. A node that has handles of its
// own (disks, volumes) gives them other numbers.
const HandleStep = 8

// Config is what a Tree needs.
type Config struct {
	// Changed is called after the state that Snapshot returns has changed and
	// before the call that changed it returns. It may call the tree. May be nil.
	Changed func()
}

// Volume is a volume with the host folder that holds its files.
type Volume struct {
	// ID is the volume's name, `\\?\Volume{guid}\`.
	ID string
	// Folder is an existing host folder. It is empty for a volume without a
	// file system that Windows knows: opening its root is ERROR_UNRECOGNIZED_VOLUME.
	Folder string
	// Serial is the volume serial number in FILE_ID_INFO.
	Serial uint64
	// ReadOnly refuses every change with ERROR_WRITE_PROTECT.
	ReadOnly bool
	// HostsMountPoints is set for file systems whose folders can be mount
	// points: NTFS, but not ReFS, exFAT or FAT.
	HostsMountPoints bool
	// ShortNames is set for volumes on which 8.3 names are generated.
	ShortNames bool
}

// RemoteFunc finds the host folder behind `\\server\share`, or says with which
// system error number the redirector fails: 53, 64, 67, 5, 1326 …
type RemoteFunc func(ctx context.Context, server, share string) (hostFolder string, code uint32)

// Tree is the file name space of one node. It is safe for concurrent use.
type Tree struct {
	changed func()

	mu      sync.Mutex
	dirty   bool // the persistent state differs from what Changed announced
	remote  RemoteFunc
	volumes map[string]*volume // by volumeKey, attached only
	drives  map[byte]string    // letter to volume id
	shares  map[string]*volume // by `\\server\share` in lower case
	links   map[linkKey]*Link
	short   map[linkKey]map[string]string // folder to host name to short name
	nodes   map[nodeKey]*node
	handles map[win32.Handle]*handle
	last    win32.Handle // the handle given out last
	worn    map[nodeKey]*worn
	// wornLimit is how many of them there may be before the next pruning.
	wornLimit int
}

// volume is an attached volume or a share that was reached.
type volume struct {
	Volume
	root *node  // nil without a known file system
	unc  string // `\\server\share`, or empty
	// asked is the folder as the redirector gave it.
	asked string
	gone  bool
	rows  int // links on this volume
}

// New makes an empty name space.
func New(config Config) *Tree {
	return &Tree{
		changed: config.Changed,
		volumes: map[string]*volume{},
		drives:  map[byte]string{},
		shares:  map[string]*volume{},
		links:   map[linkKey]*Link{},
		short:   map[linkKey]map[string]string{},
		nodes:   map[nodeKey]*node{},
		handles: map[win32.Handle]*handle{},
		worn:    map[nodeKey]*worn{},
	}
}

// unlock ends a critical section and announces what it changed.
func (t *Tree) unlock() {
	dirty := t.dirty
	t.dirty = false
	t.mu.Unlock()
	if dirty && t.changed != nil {
		t.changed()
	}
}

// AttachVolume makes a volume reachable by its id and by the drive letter and
// mount points that lead to it. A volume of that id that is attached already
// is detached first, so this is also how a volume gets or changes its file
// system. Failures: ErrInvalidName for an id that is none, the codes of the
// host for a folder that cannot be opened.
func (t *Tree) AttachVolume(v Volume) error {
	if !isVolumeID(v.ID) {
		return fail("AttachVolume", v.ID, win32.ErrInvalidName)
	}
	t.mu.Lock()
	defer t.unlock()
	attached, code := t.openVolume(v)
	if code != 0 {
		return fail("AttachVolume", v.ID, code)
	}
	t.detach(v.ID)
	t.volumes[volumeKey(v.ID)] = attached
	attached.rows = t.countLinks(attached.linkVolume())
	t.repointAll(nil)
	return nil
}

// openVolume opens the folder of a volume.
func (t *Tree) openVolume(v Volume) (*volume, uint32) {
	opened := &volume{Volume: v}
	if v.Folder == "" {
		return opened, 0
	}
	folder, err := filepath.EvalSymlinks(v.Folder)
	if err == nil {
		folder, err = filepath.Abs(folder)
	}
	if err != nil {
		return nil, hostCode(err)
	}
	object, stat, err := openHostFolder(folder)
	if err != nil {
		return nil, hostCode(err)
	}
	opened.Folder = folder
	opened.root = &node{vol: opened, object: object, stat: stat, refs: 1}
	t.nodes[opened.root.key()] = opened.root
	return opened, 0
}

// DetachVolume takes a volume away, as when its disk goes offline. Open
// handles then fail with ERROR_DEVICE_NOT_CONNECTED, paths into it with
// ERROR_PATH_NOT_FOUND. Letters and mount points stay and work again once it
// is back. Detaching a volume that is not attached does nothing.
func (t *Tree) DetachVolume(id string) {
	t.mu.Lock()
	defer t.unlock()
	if t.detach(id) {
		t.repointAll(nil)
	}
}

func (t *Tree) detach(id string) bool {
	v := t.volumes[volumeKey(id)]
	if v == nil {
		return false
	}
	delete(t.volumes, volumeKey(id))
	t.retire(v)
	return true
}

// retire makes the handles of a volume fail and lets go of its folder.
func (t *Tree) retire(v *volume) {
	v.gone = true
	for key := range t.worn {
		if key.vol == v {
			t.takeOff(key)
		}
	}
	if v.root != nil {
		t.unref(v.root)
	}
}

// SetDrive gives a letter to a volume, attached or not. An empty id takes the
// letter away; so does giving the letter to another volume.
func (t *Tree) SetDrive(letter byte, volumeID string) {
	t.mu.Lock()
	defer t.unlock()
	t.setDrive(upperLetter(letter), volumeID)
	t.repointAll(nil)
}

func (t *Tree) setDrive(letter byte, volumeID string) {
	if volumeID == "" {
		delete(t.drives, letter)
	} else {
		t.drives[letter] = volumeID
	}
	t.dirty = true
}

// Drives returns the volume of each drive letter.
func (t *Tree) Drives() map[byte]string {
	t.mu.Lock()
	defer t.unlock()
	drives := make(map[byte]string, len(t.drives))
	for letter, id := range t.drives {
		drives[letter] = id
	}
	return drives
}

// SetRemote sets what answers for `\\server\share`. The tree calls it for
// every path that leads there, without holding a lock; it may block until its
// context ends. Without one every remote path is ERROR_BAD_NETPATH.
func (t *Tree) SetRemote(remote RemoteFunc) {
	t.mu.Lock()
	defer t.unlock()
	t.remote = remote
}

// OpenHandles returns how many handles are open.
func (t *Tree) OpenHandles() int {
	t.mu.Lock()
	defer t.unlock()
	return len(t.handles)
}

// Close closes every handle and lets go of every host folder.
func (t *Tree) Close() {
	t.mu.Lock()
	defer t.unlock()
	for h := range t.handles {
		t.drop(h)
	}
	for id := range t.volumes {
		t.detach(id)
	}
	for unc, share := range t.shares {
		delete(t.shares, unc)
		t.retire(share)
	}
}

// letterOf returns the first drive letter of a volume, or 0.
func (t *Tree) letterOf(id string) byte {
	var letters []byte
	for letter, of := range t.drives {
		if strings.EqualFold(of, id) {
			letters = append(letters, letter)
		}
	}
	if len(letters) == 0 {
		return 0
	}
	return slices.Min(letters)
}
