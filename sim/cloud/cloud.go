// Package cloud is a small simulated cloud: durable disks in a folder, which it
// attaches to simulated nodes, grows, clones and snapshots. Its state survives
// the end of its process at any moment.
package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/sim/internal/folder"
)

// Errors of the cloud, matched with errors.Is.
var (
	// ErrNotFound is a disk or snapshot that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrAttached is a disk that a node has.
	ErrAttached = errors.New("attached to a node")
	// ErrExists is a name that is taken by something else than what was asked for.
	ErrExists = errors.New("exists with other properties")
	// ErrSize is a size that is too small, or a disk that would shrink.
	ErrSize = errors.New("bad size")
)

// MinDiskBytes is the smallest disk.
const MinDiskBytes = 64 << 20

// Names of the files of a disk's folder.
const (
	recordFile = "disk.json"
	imageFile  = "disk.img"
)

// Disk is a durable disk, or a snapshot of one.
type Disk struct {
	// ID is the cloud's name for it; the page 0x83 identifier holds it.
	ID string `json:"id"`
	// Name is the caller's, unique among disks and among snapshots.
	Name      string `json:"name"`
	SizeBytes int64  `json:"sizeBytes"`
	// Bus is the bus by which nodes see it; see sim.DiskSpec.
	Bus    string `json:"bus"`
	Serial string `json:"serial"`
	// Source is the disk or snapshot it was copied from.
	Source string `json:"source,omitempty"`
	// AttachedTo is the node that has it, or is getting or losing it.
	AttachedTo string    `json:"attachedTo,omitempty"`
	Created    time.Time `json:"created"`
}

// Page83 is the device identifier in the form in which csi-proxy reports it.
func (d *Disk) Page83() string { return hex.EncodeToString(d.naa()) }

// naa is an NAA type 6 identifier made of the disk's ID.
func (d *Disk) naa() []byte {
	sum := sha256.Sum256([]byte(d.ID))
	return append([]byte{0x60 | sum[0]&0x0F}, sum[1:16]...)
}

// CreateRequest asks for a disk.
type CreateRequest struct {
	Name      string
	SizeBytes int64  // rounded up to whole MiB; with Source 0 means the source's size
	Bus       string // empty means SCSI
	// Source is the ID of a disk or snapshot to copy; empty makes an empty disk.
	Source string
}

// Cloud is a folder of disks. It is safe for concurrent use; one process at a
// time has it open.
type Cloud struct {
	dir  string
	lock io.Closer

	mu        sync.Mutex
	disks     map[string]*Disk // by ID
	snapshots map[string]*Disk
}

const (
	disksFolder     = "disks"
	snapshotsFolder = "snapshots"
)

// Open opens the cloud in a folder, which is made when missing. What an earlier
// process did not finish is removed.
func Open(dir string) (*Cloud, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open cloud: %w", err)
	}
	for _, kind := range []string{disksFolder, snapshotsFolder} {
		if err := os.MkdirAll(filepath.Join(dir, kind), 0o755); err != nil {
			return nil, fmt.Errorf("open cloud: %w", err)
		}
	}
	lock, err := folder.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("open cloud %s: %w", dir, err)
	}
	c := &Cloud{dir: dir, lock: lock}
	c.disks, err = load(filepath.Join(dir, disksFolder))
	if err == nil {
		c.snapshots, err = load(filepath.Join(dir, snapshotsFolder))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open cloud %s: %w", dir, err), lock.Close())
	}
	return c, nil
}

// load reads the records of a kind. A folder without record is one that was
// being made or removed: it goes.
func load(kind string) (map[string]*Disk, error) {
	entries, err := os.ReadDir(kind)
	if err != nil {
		return nil, err
	}
	found := map[string]*Disk{}
	for _, e := range entries {
		var d Disk
		err := folder.ReadJSON(filepath.Join(kind, e.Name(), recordFile), &d)
		if errors.Is(err, fs.ErrNotExist) {
			err = os.RemoveAll(filepath.Join(kind, e.Name()))
		} else if err == nil {
			found[d.ID] = &d
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Close ends the use of the folder; attached disks stay attached.
func (c *Cloud) Close() error { return c.lock.Close() }

func (c *Cloud) folderOf(kind, id string) string { return filepath.Join(c.dir, kind, id) }

// Image is the path of a disk's image.
func (c *Cloud) Image(id string) string {
	return filepath.Join(c.folderOf(disksFolder, id), imageFile)
}

func (c *Cloud) saveLocked(kind string, d *Disk) error {
	return folder.WriteJSON(filepath.Join(c.folderOf(kind, d.ID), recordFile), d)
}

// Disks returns every disk, oldest first.
func (c *Cloud) Disks(context.Context) []Disk { return c.list(c.disks) }

// Snapshots returns every snapshot, oldest first.
func (c *Cloud) Snapshots(context.Context) []Disk { return c.list(c.snapshots) }

func (c *Cloud) list(of map[string]*Disk) []Disk {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Disk, 0, len(of))
	for _, d := range of {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Disk) int {
		if order := a.Created.Compare(b.Created); order != 0 {
			return order
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// Disk returns one disk by ID.
func (c *Cloud) Disk(_ context.Context, id string) (Disk, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, err := c.diskLocked(id)
	if err != nil {
		return Disk{}, err
	}
	return *d, nil
}

func (c *Cloud) diskLocked(id string) (*Disk, error) {
	if d := c.disks[id]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("disk %q: %w", id, ErrNotFound)
}

// CreateDisk makes a disk, empty or as a copy. The same request again returns
// the disk made before; another request with its name is ErrExists.
func (c *Cloud) CreateDisk(_ context.Context, r CreateRequest) (Disk, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	source := c.disks[r.Source]
	from := disksFolder
	if source == nil {
		source, from = c.snapshots[r.Source], snapshotsFolder
	}
	size := (r.SizeBytes + 1<<20 - 1) >> 20 << 20
	switch {
	case r.Source != "" && source == nil:
		return Disk{}, fmt.Errorf("create disk %q from %q: %w", r.Name, r.Source, ErrNotFound)
	case source != nil && size == 0:
		size = source.SizeBytes
	case size < MinDiskBytes, source != nil && size < source.SizeBytes:
		return Disk{}, fmt.Errorf("create disk %q of %d bytes: %w", r.Name, r.SizeBytes, ErrSize)
	}
	d := Disk{Name: r.Name, SizeBytes: size, Bus: r.Bus, Source: r.Source}
	if d.Bus == "" {
		d.Bus = "SCSI"
	}
	return c.addLocked(disksFolder, c.disks, d, func(path string) error {
		if source == nil {
			return createImage(path, size)
		}
		if err := sim.CopyMedium(filepath.Join(c.folderOf(from, source.ID), imageFile), path); err != nil {
			return err
		}
		return os.Truncate(path, size)
	})
}

func createImage(path string, sizeBytes int64) error {
	img, err := image.Create(path, sizeBytes)
	if err != nil {
		return err
	}
	return img.Close()
}

// SnapshotDisk copies what of a disk is on its medium now. It may be attached.
// The same name and disk again return the snapshot made before.
func (c *Cloud) SnapshotDisk(_ context.Context, diskID, name string) (Disk, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	source, err := c.diskLocked(diskID)
	if err != nil {
		return Disk{}, err
	}
	d := Disk{Name: name, SizeBytes: source.SizeBytes, Bus: source.Bus, Source: diskID}
	return c.addLocked(snapshotsFolder, c.snapshots, d, func(path string) error { return sim.CopyMedium(c.Image(diskID), path) })
}

// addLocked makes the folder of a disk or snapshot: the record comes last, so
// that a folder without one is known to be unfinished.
func (c *Cloud) addLocked(kind string, all map[string]*Disk, d Disk, fill func(path string) error) (Disk, error) {
	for _, known := range all {
		if known.Name != d.Name {
			continue
		}
		if known.SizeBytes == d.SizeBytes && known.Source == d.Source && known.Bus == d.Bus {
			return *known, nil
		}
		return Disk{}, fmt.Errorf("create %q: %w", d.Name, ErrExists)
	}
	id := uuid.New()
	d.ID, d.Created = id.String(), time.Now().UTC()
	d.Serial = strings.ToUpper(hex.EncodeToString(id[:8]))
	path := c.folderOf(kind, d.ID)
	err := os.Mkdir(path, 0o755)
	if err == nil {
		err = fill(filepath.Join(path, imageFile))
	}
	if err == nil {
		err = c.saveLocked(kind, &d)
	}
	if err != nil {
		return Disk{}, errors.Join(fmt.Errorf("create %q: %w", d.Name, err), os.RemoveAll(path))
	}
	all[d.ID] = &d
	return d, nil
}

// GrowDisk makes a disk larger, attached or not. A node sees it after a rescan.
// A size it has already reached is left alone.
func (c *Cloud) GrowDisk(_ context.Context, id string, sizeBytes int64) (Disk, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, err := c.diskLocked(id)
	if err != nil {
		return Disk{}, err
	}
	size := (sizeBytes + 1<<20 - 1) >> 20 << 20
	if size <= d.SizeBytes {
		return *d, nil
	}
	if err := os.Truncate(c.Image(id), size); err != nil {
		return Disk{}, fmt.Errorf("grow disk %q: %w", id, err)
	}
	grown := *d
	grown.SizeBytes = size
	if err := c.saveLocked(disksFolder, &grown); err != nil {
		return Disk{}, fmt.Errorf("grow disk %q: %w", id, err)
	}
	*d = grown
	return grown, nil
}

// DeleteDisk removes a disk; one that does not exist is no error, one that a
// node has is ErrAttached.
func (c *Cloud) DeleteDisk(_ context.Context, id string) error {
	return c.remove(disksFolder, c.disks, id)
}

// DeleteSnapshot removes a snapshot; one that does not exist is no error.
func (c *Cloud) DeleteSnapshot(_ context.Context, id string) error {
	return c.remove(snapshotsFolder, c.snapshots, id)
}

func (c *Cloud) remove(kind string, all map[string]*Disk, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := all[id]
	if d == nil {
		return nil
	}
	if d.AttachedTo != "" {
		return fmt.Errorf("delete disk %q: %w: %s", id, ErrAttached, d.AttachedTo)
	}
	path := c.folderOf(kind, id)
	if err := os.Remove(filepath.Join(path, recordFile)); err != nil { // the record first, see load
		return fmt.Errorf("delete disk %q: %w", id, err)
	}
	delete(all, id)
	return os.RemoveAll(path)
}
