package cloud

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/csi-windows/csi-windows/sim/image"
)

// CreateRequest asks for a disk.
type CreateRequest struct {
	Name      string
	SizeBytes int64  // rounded up to whole MiB; with Source 0 means the source's size
	Bus       string // one of Buses; empty means SCSI
	Zone      string // empty means the default zone, or the first by name
	// Properties; zero ones take their defaults.
	Properties Properties
	// Source is the ID of a disk or snapshot to copy; empty makes an empty disk.
	Source string
}

// Buses are the buses by which a node can see a disk.
func Buses() []string { return []string{"SCSI", "NVMe", "SAS", "SATA", "Virtual"} }

// roundUp rounds a size up to whole MiB; one that is out of all reason stays.
func roundUp(sizeBytes int64) int64 {
	if sizeBytes > MaxDiskBytes {
		return sizeBytes
	}
	return (sizeBytes + 1<<20 - 1) >> 20 << 20
}

// plan checks a request and makes the record of what it asks for, but for what
// depends on the source.
func (c *Cloud) plan(r CreateRequest) (Disk, error) {
	d := Disk{Name: r.Name, SizeBytes: roundUp(r.SizeBytes), Zone: r.Zone, Source: r.Source, Properties: r.Properties.filled()}
	if err := checkName("disk", r.Name); err != nil {
		return d, err
	}
	for _, bus := range Buses() {
		if strings.EqualFold(bus, r.Bus) || r.Bus == "" && d.Bus == "" {
			d.Bus = bus
		}
	}
	if d.Bus == "" {
		return d, fmt.Errorf("bus %q, one of %s is allowed: %w", r.Bus, strings.Join(Buses(), ", "), ErrInvalid)
	}
	if d.Zone == "" {
		d.Zone = c.anyZone()
	}
	return d, d.Properties.check()
}

func (c *Cloud) anyZone() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.zones[DefaultZone]; ok {
		return DefaultZone
	}
	first := ""
	for name := range c.zones {
		if first == "" || name < first {
			first = name
		}
	}
	return first
}

// CreateDisk makes a disk, empty or as a copy. The same request again returns
// the disk made before; another request with its name is ErrExists.
func (c *Cloud) CreateDisk(ctx context.Context, r CreateRequest) (Disk, error) {
	d, err := c.plan(r)
	if err != nil {
		return Disk{}, fmt.Errorf("create disk %q: %w", r.Name, err)
	}
	unlock, err := c.locks.lock(ctx, nameKey(disksFolder, r.Name))
	if err != nil {
		return Disk{}, fmt.Errorf("create disk %q: %w", r.Name, err)
	}
	defer unlock()
	if known, err := c.DiskNamed(ctx, r.Name); err == nil {
		if known.Source != r.Source || known.Bus != d.Bus || r.Zone != "" && known.Zone != r.Zone ||
			(r.SizeBytes > 0 || r.Source == "") && known.SizeBytes != d.SizeBytes {
			return Disk{}, fmt.Errorf("create disk %q: %w", r.Name, ErrExists)
		}
		return known, nil
	}
	if r.Source == "" {
		d, err = c.makeDisk(d, func(path string) error { return createImage(path, d.SizeBytes) })
	} else {
		d, err = c.copyDisk(ctx, d)
	}
	if err != nil {
		return Disk{}, fmt.Errorf("create disk %q: %w", r.Name, err)
	}
	return d, nil
}

func createImage(path string, sizeBytes int64) error {
	img, err := image.Create(path, sizeBytes)
	if err != nil {
		return err
	}
	return img.Close()
}

// copyDisk makes a disk of another disk or of a snapshot.
func (c *Cloud) copyDisk(ctx context.Context, d Disk) (Disk, error) {
	unlock, err := c.locks.lock(ctx, diskKey(d.Source))
	if err != nil {
		return Disk{}, err
	}
	defer unlock()
	kind := disksFolder
	source, err := c.Disk(ctx, d.Source)
	if err != nil {
		kind, d.FromSnapshot = snapshotsFolder, true
		if source, err = c.Snapshot(ctx, d.Source); err != nil {
			return Disk{}, fmt.Errorf("source %q: %w", d.Source, ErrNotFound)
		}
	}
	from := c.imageOf(kind, source.ID)
	if info, err := os.Stat(from); err != nil {
		return Disk{}, err
	} else if info.Size() > source.SizeBytes { // grown, and not yet recorded
		source.SizeBytes = info.Size()
	}
	if d.SizeBytes == 0 {
		d.SizeBytes = source.SizeBytes
	}
	if d.SizeBytes < source.SizeBytes {
		return Disk{}, fmt.Errorf("%d bytes, the source has %d: %w", d.SizeBytes, source.SizeBytes, ErrSize)
	}
	return c.makeDisk(d, func(path string) error {
		if err := c.copyMoment(ctx, []mediumCopy{{from: from, to: path}}); err != nil {
			return err
		}
		c.step("grow copy")
		return os.Truncate(path, d.SizeBytes)
	})
}

// makeDisk makes the disk of a record with the room it needs.
func (c *Cloud) makeDisk(d Disk, fill func(path string) error) (Disk, error) {
	if d.SizeBytes < MinDiskBytes || d.SizeBytes > MaxDiskBytes {
		return Disk{}, fmt.Errorf("%d bytes, from %d to %d are allowed: %w", d.SizeBytes, int64(MinDiskBytes), int64(MaxDiskBytes), ErrSize)
	}
	done, err := c.reserve(d.Zone, d.SizeBytes)
	if err != nil {
		return Disk{}, err
	}
	defer done()
	d.FirstSizeBytes = d.SizeBytes
	d.newIdentity()
	c.step("folder " + disksFolder)
	path := c.folderOf(disksFolder, d.ID)
	err = os.Mkdir(path, 0o755)
	if err == nil {
		c.step("image " + disksFolder)
		err = fill(c.Image(d.ID))
	}
	if err == nil {
		d.Created = c.now()
		err = c.save(disksFolder, &d)
	}
	if err != nil {
		return Disk{}, errors.Join(err, c.removeFiles(disksFolder, d.ID))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disks[d.ID] = &d
	return d, nil
}

// newIdentity gives a disk or snapshot an ID and a serial number.
func (d *Disk) newIdentity() {
	id := uuid.New()
	d.ID, d.Serial = id.String(), strings.ToUpper(hex.EncodeToString(id[:8]))
}

// DeleteDisk removes a disk; one that does not exist is no error, one that a
// node has is ErrAttached. Its snapshots stay.
func (c *Cloud) DeleteDisk(ctx context.Context, id string) error {
	unlock, err := c.locks.lock(ctx, diskKey(id))
	if err != nil {
		return fmt.Errorf("delete disk %q: %w", id, err)
	}
	defer unlock()
	d, err := c.Disk(ctx, id)
	if err != nil {
		return nil // it is gone
	}
	if d.AttachedTo != "" {
		return fmt.Errorf("delete disk %q: %w: %s", id, ErrAttached, d.AttachedTo)
	}
	if err := c.forget(disksFolder, c.disks, id); err != nil {
		return fmt.Errorf("delete disk %q: %w", id, err)
	}
	return nil
}

// forget removes a disk or snapshot. The caller has its lock. Without its record
// it is gone, whatever fails after that: the next Open removes what is left.
func (c *Cloud) forget(kind string, all map[string]*Disk, id string) error {
	if err := c.unrecord(kind, id); err != nil {
		return err
	}
	c.mu.Lock()
	delete(all, id)
	c.mu.Unlock()
	return c.removeFiles(kind, id)
}
