package cloud

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/csi-windows/csi-windows/sim/internal/folder"
)

// load reads every record, and removes or finishes what an earlier process left.
func (c *Cloud) load() (err error) {
	if c.zones, err = c.loadZones(); err != nil {
		return err
	}
	if c.groups, err = c.loadGroups(); err != nil {
		return err
	}
	if c.disks, err = c.loadDisks(disksFolder); err != nil {
		return err
	}
	if c.snapshots, err = c.loadDisks(snapshotsFolder); err != nil {
		return err
	}
	for _, d := range c.disks {
		if err := c.finishGrowth(d); err != nil {
			return err
		}
	}
	for id, s := range c.snapshots {
		if s.GroupID == "" || c.groups[s.GroupID] != nil {
			continue
		}
		if err := c.removeFiles(snapshotsFolder, id); err != nil { // of a group that was being made or removed
			return err
		}
		delete(c.snapshots, id)
	}
	return nil
}

// loadDisks reads the records of a kind. A folder without record is one that was
// being made or removed: it goes.
func (c *Cloud) loadDisks(kind string) (map[string]*Disk, error) {
	entries, err := os.ReadDir(filepath.Join(c.dir, kind))
	if err != nil {
		return nil, err
	}
	found := map[string]*Disk{}
	for _, e := range entries {
		var d Disk
		path := filepath.Join(c.dir, kind, e.Name())
		if !isID(e.Name()) || !e.IsDir() {
			return nil, foreign(path)
		}
		err := folder.ReadJSON(filepath.Join(path, recordFile), &d)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = os.RemoveAll(path)
		case err == nil && d.ID != e.Name():
			err = otherRecord(filepath.Join(path, recordFile), d.ID)
		case err == nil:
			d.fillIn(kind)
			found[d.ID] = &d
			c.seen(d.Created)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// isID reports whether a name is one that newIdentity makes. Nothing else is ever
// removed: the folder may be no cloud's.
func isID(name string) bool {
	id, err := uuid.Parse(name)
	return err == nil && id.String() == name
}

func foreign(path string) error {
	return fmt.Errorf("%s is nothing a cloud makes; it is left alone, and has to be moved away", path)
}

// otherRecord refuses a record whose ID is not that of its place: the files of
// another disk would be worked on.
func otherRecord(path, id string) error {
	return fmt.Errorf("read %s: it is the record of %q", path, id)
}

// fillIn gives a record of an earlier form what it lacks.
func (d *Disk) fillIn(kind string) {
	if d.FirstSizeBytes == 0 {
		d.FirstSizeBytes = d.SizeBytes
	}
	if kind == snapshotsFolder {
		return
	}
	if d.Zone == "" {
		d.Zone = DefaultZone
	}
	d.Properties = d.Properties.filled()
}

// seen keeps the clock from giving a time twice.
func (c *Cloud) seen(t time.Time) {
	if t.After(c.lastTime) {
		c.lastTime = t
	}
}

// finishGrowth records the size of a disk whose medium has grown already: a node
// may have seen it.
func (c *Cloud) finishGrowth(d *Disk) error {
	info, err := os.Stat(c.Image(d.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the medium is lost: a condition of the disk, see Health
	}
	if err != nil || info.Size() <= d.SizeBytes {
		return err
	}
	d.SizeBytes = info.Size()
	return c.save(disksFolder, d)
}

// save writes the record of a disk or snapshot. The caller has its lock.
func (c *Cloud) save(kind string, d *Disk) error {
	c.step("record " + kind)
	return folder.WriteJSON(filepath.Join(c.folderOf(kind, d.ID), recordFile), d)
}

// update changes the record of a disk. The caller has its lock.
func (c *Cloud) update(d Disk) error {
	if err := c.save(disksFolder, &d); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disks[d.ID] = &d
	return nil
}

// unrecord removes the record of a disk or snapshot, if there is one.
func (c *Cloud) unrecord(kind, id string) error {
	c.step("unrecord " + kind)
	err := os.Remove(filepath.Join(c.folderOf(kind, id), recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeFiles removes a disk or snapshot, its record first.
func (c *Cloud) removeFiles(kind, id string) error {
	if err := c.unrecord(kind, id); err != nil {
		return err
	}
	c.step("remove " + kind)
	return os.RemoveAll(c.folderOf(kind, id))
}

// loadGroups reads the records of the group snapshots.
func (c *Cloud) loadGroups() (map[string]*Group, error) {
	entries, err := os.ReadDir(filepath.Join(c.dir, groupsFolder))
	if err != nil {
		return nil, err
	}
	found := map[string]*Group{}
	for _, e := range entries {
		path := filepath.Join(c.dir, groupsFolder, e.Name())
		id, suffix, _ := strings.Cut(e.Name(), ".")
		switch {
		case !isID(id) || suffix != "json" && suffix != "json.new":
			return nil, foreign(path)
		case suffix == "json.new": // a record that was being written
			if err := os.Remove(path); err != nil {
				return nil, err
			}
			continue
		}
		var g Group
		if err := folder.ReadJSON(path, &g); err != nil {
			return nil, err
		}
		if g.ID != id {
			return nil, otherRecord(path, g.ID)
		}
		found[g.ID] = &g
		c.seen(g.Created)
	}
	return found, nil
}

func (c *Cloud) groupRecord(id string) string {
	return filepath.Join(c.dir, groupsFolder, id+".json")
}

// checkName refuses a name outside the limits.
func checkName(what, name string) error {
	if name == "" || len(name) > NameMaxBytes {
		return fmt.Errorf("name of a %s with %d bytes, from 1 to %d are allowed: %w", what, len(name), NameMaxBytes, ErrInvalid)
	}
	return nil
}
