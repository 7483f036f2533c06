// Package cloud is a small simulated cloud: durable disks in a folder, which it
// attaches to simulated nodes, grows, changes, clones and snapshots, alone or in
// groups of one moment. Its state survives the end of its process at any moment.
//
// The folder holds
//
//	disks/<id>/, snapshots/<id>/   the image, the volumes' files, and disk.json last
//	groups/<id>.json               a group snapshot; written after its snapshots
//	zones.json                     the zones and how much each holds
//	nodes/<name>.json              the nodes, see AddNode
//
// What is made gets its record last, and what is removed loses it first. So what
// Open finds without a record is unfinished and goes.
package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/internal/filelock"
	"github.com/csi-windows/csi-windows/sim/internal/folder"
)

// Errors of the cloud, matched with errors.Is.
var (
	// ErrNotFound is a disk, snapshot, group, zone or node that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrAttached is a disk that a node has.
	ErrAttached = errors.New("attached to a node")
	// ErrExists is a name that is taken by something else than what was asked for,
	// or a disk that is attached in another way.
	ErrExists = errors.New("exists with other properties")
	// ErrSize is a size outside the limits, or a disk that would shrink.
	ErrSize = errors.New("bad size")
	// ErrInvalid is a name, bus or property outside the limits.
	ErrInvalid = errors.New("invalid")
	// ErrExhausted is a zone without room, or a node without a free slot.
	ErrExhausted = errors.New("exhausted")
	// ErrToken is a page token that this package did not make.
	ErrToken = errors.New("bad page token")
	// ErrZone is a disk in another zone than the node.
	ErrZone = errors.New("in another zone")
	// ErrInGroup is a snapshot that goes only with its group.
	ErrInGroup = errors.New("belongs to a group snapshot")
	// ErrChanging is a disk that is written all the time, so that no copy of one
	// moment came about.
	ErrChanging = errors.New("changes while it is copied")
	// ErrNode is a node that does not answer, or cannot do what is asked.
	ErrNode = errors.New("node fails")
	// ErrUnrelated are two snapshots that are not of one disk in this order.
	ErrUnrelated = errors.New("not an earlier and a later snapshot of one disk")
)

// Limits of the cloud.
const (
	MinDiskBytes = 64 << 20 // the smallest disk
	MaxDiskBytes = 8 << 40  // the largest disk
	NameMaxBytes = 128      // of a name of a disk, snapshot or group
)

// Names of the files of a disk's folder.
const (
	recordFile = "disk.json"
	imageFile  = "disk.img"
)

// Folders of the cloud's folder; also the kinds of what has a folder.
const (
	disksFolder     = "disks"
	snapshotsFolder = "snapshots"
	groupsFolder    = "groups"
	nodesFolder     = "nodes"
)

// Files beside them.
const (
	zonesFile = "zones.json"
	lockFile  = "lock"
)

// Disk is a durable disk, or a snapshot of one.
type Disk struct {
	// ID is the cloud's name for it; the page 0x83 identifier is made of it.
	ID string `json:"id"`
	// Name is the caller's, unique among disks and among snapshots; those of a
	// group have none.
	Name      string `json:"name"`
	SizeBytes int64  `json:"sizeBytes"`
	// Bus is the bus by which nodes see it; see sim.DiskSpec.
	Bus    string `json:"bus"`
	Serial string `json:"serial"`
	// Zone is where the disk is; only nodes of the zone can have it. A snapshot
	// is everywhere.
	Zone string `json:"zone,omitempty"`
	// Source is the disk or snapshot it was copied from; of a snapshot, its disk.
	Source string `json:"source,omitempty"`
	// FromSnapshot is set when Source is a snapshot and this a disk.
	FromSnapshot bool `json:"fromSnapshot,omitempty"`
	// GroupID is the group snapshot a snapshot belongs to.
	GroupID string `json:"groupID,omitempty"`
	// AttachedTo is the node that has it, or is getting or losing it.
	AttachedTo       string      `json:"attachedTo,omitempty"`
	AttachedReadOnly bool        `json:"attachedReadOnly,omitempty"`
	Properties       Properties  `json:"properties,omitzero"`
	Conditions       []Condition `json:"conditions,omitempty"`
	// Created orders what is made: no two disks have the same, nor do two snapshots
	// but those of one group.
	Created time.Time `json:"created"`
	// FirstSizeBytes is the size at birth, see sim.BlockLayout.
	FirstSizeBytes int64 `json:"firstSizeBytes,omitempty"`
}

// Page83 is the device identifier in the form in which csi-proxy reports it.
func (d *Disk) Page83() string { return Page83(d.ID) }

// Page83 is the page 0x83 identifier of the disk with an ID, in the form in which
// csi-proxy reports it. It follows from the ID alone.
func Page83(id string) string { return hex.EncodeToString(naa(id)) }

// naa is an NAA type 6 identifier made of a disk's ID.
func naa(id string) []byte {
	sum := sha256.Sum256([]byte(id))
	return append([]byte{0x60 | sum[0]&0x0F}, sum[1:16]...)
}

// Cloud is a folder of disks. It is safe for concurrent use; one process at a
// time has it open. Operations on different disks do not wait for one another.
type Cloud struct {
	dir   string
	lock  io.Closer
	locks locks
	// step is called before every change of the folder.
	step func(what string)

	mu        sync.Mutex       // for the maps, and never held while files are read or written
	disks     map[string]*Disk // by ID; a Disk that is in a map is never changed but replaced
	snapshots map[string]*Disk
	groups    map[string]*Group
	zones     map[string]int64 // capacity in bytes
	reserved  map[string]int64 // bytes of disks that are being made or grown, by zone
	lastTime  time.Time
}

// Open opens the cloud in a folder, which is made when missing. What an earlier
// process did not finish is removed.
func Open(dir string) (*Cloud, error) { return open(dir, func(string) {}) }

// checkFolder refuses a folder that holds something else than a cloud. What a user
// adds to the folder of a cloud does not shut it.
func checkFolder(dir string) error {
	if isCloud(dir) {
		return nil
	}
	return folder.CheckOwn(dir, "", disksFolder, snapshotsFolder, groupsFolder, nodesFolder, zonesFile, lockFile)
}

// isCloud reports whether a cloud was opened in a folder before.
func isCloud(dir string) bool {
	for _, name := range []string{lockFile, disksFolder, snapshotsFolder} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

func open(dir string, step func(what string)) (*Cloud, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open cloud: %w", err)
	}
	if err := checkFolder(dir); err != nil {
		return nil, fmt.Errorf("open cloud %s: %w", dir, err)
	}
	for _, kind := range []string{disksFolder, snapshotsFolder, groupsFolder, nodesFolder} {
		if err := os.MkdirAll(filepath.Join(dir, kind), 0o755); err != nil {
			return nil, fmt.Errorf("open cloud: %w", err)
		}
	}
	lock, err := filelock.Lock(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, fmt.Errorf("open cloud %s: %w", dir, err)
	}
	c := &Cloud{dir: dir, lock: lock, step: step, locks: locks{held: map[string]*held{}}, reserved: map[string]int64{}}
	if err := c.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open cloud %s: %w", dir, err), lock.Close())
	}
	return c, nil
}

// Close ends the use of the folder; attached disks stay attached.
func (c *Cloud) Close() error { return c.lock.Close() }

func (c *Cloud) folderOf(kind, id string) string { return filepath.Join(c.dir, kind, id) }

func (c *Cloud) imageOf(kind, id string) string {
	return filepath.Join(c.folderOf(kind, id), imageFile)
}

// Image is the path of a disk's image.
func (c *Cloud) Image(id string) string { return c.imageOf(disksFolder, id) }

// now is the time, later than any it gave before.
func (c *Cloud) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().UTC()
	if !now.After(c.lastTime) {
		now = c.lastTime.Add(time.Nanosecond)
	}
	c.lastTime = now
	return now
}

// Disk returns one disk by ID.
func (c *Cloud) Disk(_ context.Context, id string) (Disk, error) { return c.find("disk", c.disks, id) }

// Snapshot returns one snapshot by ID.
func (c *Cloud) Snapshot(_ context.Context, id string) (Disk, error) {
	return c.find("snapshot", c.snapshots, id)
}

func (c *Cloud) find(what string, all map[string]*Disk, id string) (Disk, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := all[id]; d != nil {
		return *d, nil
	}
	return Disk{}, fmt.Errorf("%s %q: %w", what, id, ErrNotFound)
}

// DiskNamed returns the disk of a name, or ErrNotFound.
func (c *Cloud) DiskNamed(_ context.Context, name string) (Disk, error) {
	return c.findName("disk", c.disks, name)
}

// SnapshotNamed returns the snapshot of a name, or ErrNotFound.
func (c *Cloud) SnapshotNamed(_ context.Context, name string) (Disk, error) {
	return c.findName("snapshot", c.snapshots, name)
}

func (c *Cloud) findName(what string, all map[string]*Disk, name string) (Disk, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range all {
		if d.Name == name && d.GroupID == "" {
			return *d, nil
		}
	}
	return Disk{}, fmt.Errorf("%s named %q: %w", what, name, ErrNotFound)
}
