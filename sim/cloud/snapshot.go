package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/csi-windows/csi-windows/sim/internal/folder"
)

// Group is several snapshots of one moment.
type Group struct {
	ID   string `json:"id"`
	Name string `json:"name"` // the caller's, unique among groups
	// SnapshotIDs are its snapshots, in the order in which the disks were named.
	SnapshotIDs []string  `json:"snapshotIDs"`
	Created     time.Time `json:"created"`
}

// snapshotOf is the record of a snapshot of a disk.
func snapshotOf(d Disk) Disk {
	s := Disk{SizeBytes: d.SizeBytes, Bus: d.Bus, Source: d.ID, FirstSizeBytes: d.FirstSizeBytes}
	s.newIdentity()
	return s
}

// SnapshotDisk copies what of a disk is on its medium now. It may be attached.
// The same name and disk again return the snapshot made before.
func (c *Cloud) SnapshotDisk(ctx context.Context, diskID, name string) (Disk, error) {
	s, err := c.snapshotDisk(ctx, diskID, name)
	if err != nil {
		return Disk{}, fmt.Errorf("snapshot %q of disk %q: %w", name, diskID, err)
	}
	return s, nil
}

func (c *Cloud) snapshotDisk(ctx context.Context, diskID, name string) (Disk, error) {
	if err := checkName("snapshot", name); err != nil {
		return Disk{}, err
	}
	unlock, err := c.locks.lock(ctx, nameKey(snapshotsFolder, name))
	if err != nil {
		return Disk{}, err
	}
	defer unlock()
	if known, err := c.SnapshotNamed(ctx, name); err == nil {
		if known.Source != diskID {
			return Disk{}, ErrExists
		}
		return known, nil
	}
	made, err := c.cut(ctx, []string{diskID}, func(s *Disk) { s.Name = name })
	if err != nil {
		return Disk{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snapshots[made[0].ID] = &made[0]
	return made[0], nil
}

// cut makes snapshots of disks at one moment and records them, all or none.
// mark completes the records. They are not yet known when it returns.
func (c *Cloud) cut(ctx context.Context, diskIDs []string, mark func(*Disk)) (_ []Disk, err error) {
	keys := make([]string, len(diskIDs))
	for i, id := range diskIDs {
		keys[i] = diskKey(id)
	}
	unlock, err := c.locks.lock(ctx, keys...)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var made []Disk
	var copies []mediumCopy
	for _, id := range diskIDs {
		d, err := c.Disk(ctx, id)
		if err != nil {
			return nil, err
		}
		s := snapshotOf(d)
		made = append(made, s)
		copies = append(copies, mediumCopy{from: c.Image(id), to: c.imageOf(snapshotsFolder, s.ID)})
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.removeSnapshots(made))
		}
	}()
	for _, s := range made {
		c.step("folder " + snapshotsFolder)
		if err := os.Mkdir(c.folderOf(snapshotsFolder, s.ID), 0o755); err != nil {
			return nil, err
		}
	}
	if err := c.copyMoment(ctx, copies); err != nil {
		return nil, err
	}
	if err := c.record(made, mark); err != nil {
		return nil, err
	}
	return made, nil
}

// record writes the records of snapshots whose media are complete.
func (c *Cloud) record(made []Disk, mark func(*Disk)) error {
	moment := c.now()
	for i := range made {
		info, err := os.Stat(c.imageOf(snapshotsFolder, made[i].ID))
		if err != nil {
			return err
		}
		made[i].SizeBytes = max(made[i].SizeBytes, info.Size()) // grown, and not yet recorded
		made[i].Created = moment
		mark(&made[i])
		if err := c.save(snapshotsFolder, &made[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cloud) removeSnapshots(made []Disk) (err error) {
	for _, s := range made {
		err = errors.Join(err, c.removeFiles(snapshotsFolder, s.ID))
	}
	return err
}

// DeleteSnapshot removes a snapshot; one that does not exist is no error, one of
// a group is ErrInGroup.
func (c *Cloud) DeleteSnapshot(ctx context.Context, id string) error {
	unlock, err := c.locks.lock(ctx, diskKey(id))
	if err != nil {
		return fmt.Errorf("delete snapshot %q: %w", id, err)
	}
	defer unlock()
	s, err := c.Snapshot(ctx, id)
	if err != nil {
		return nil // it is gone
	}
	if s.GroupID != "" {
		return fmt.Errorf("delete snapshot %q: %w %q", id, ErrInGroup, s.GroupID)
	}
	if err := c.forget(snapshotsFolder, c.snapshots, id); err != nil {
		return fmt.Errorf("delete snapshot %q: %w", id, err)
	}
	return nil
}

// SnapshotGroup snapshots several disks at one moment, all or none. The same name
// and disks again return the group made before.
func (c *Cloud) SnapshotGroup(ctx context.Context, diskIDs []string, name string) (Group, error) {
	g, err := c.snapshotGroup(ctx, diskIDs, name)
	if err != nil {
		return Group{}, fmt.Errorf("group snapshot %q: %w", name, err)
	}
	return g, nil
}

func (c *Cloud) snapshotGroup(ctx context.Context, diskIDs []string, name string) (Group, error) {
	if err := checkName("group snapshot", name); err != nil {
		return Group{}, err
	}
	sorted := slices.Sorted(slices.Values(diskIDs))
	if len(sorted) == 0 || len(slices.Compact(slices.Clone(sorted))) != len(sorted) {
		return Group{}, fmt.Errorf("%d disks, one at least and none twice: %w", len(diskIDs), ErrInvalid)
	}
	unlock, err := c.locks.lock(ctx, nameKey(groupsFolder, name))
	if err != nil {
		return Group{}, err
	}
	defer unlock()
	if known, err := c.GroupNamed(ctx, name); err == nil {
		if !slices.Equal(sorted, c.disksOf(known)) {
			return Group{}, ErrExists
		}
		return known, nil
	}
	g := Group{ID: uuid.NewString(), Name: name}
	made, err := c.cut(ctx, diskIDs, func(s *Disk) { s.GroupID = g.ID })
	if err != nil {
		return Group{}, err
	}
	for _, s := range made {
		g.SnapshotIDs = append(g.SnapshotIDs, s.ID)
		g.Created = s.Created
	}
	c.step("record " + groupsFolder)
	if err := folder.WriteJSON(c.groupRecord(g.ID), g); err != nil {
		return Group{}, errors.Join(err, c.removeSnapshots(made))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range made {
		c.snapshots[made[i].ID] = &made[i]
	}
	c.groups[g.ID] = &g
	return g, nil
}

// disksOf are the disks of a group, sorted.
func (c *Cloud) disksOf(g Group) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var disks []string
	for _, id := range g.SnapshotIDs {
		if s := c.snapshots[id]; s != nil {
			disks = append(disks, s.Source)
		}
	}
	slices.Sort(disks)
	return disks
}

// Group returns a group snapshot by ID, or ErrNotFound.
func (c *Cloud) Group(_ context.Context, id string) (Group, error) {
	return c.findGroup(id, func(g *Group) bool { return g.ID == id })
}

// GroupNamed returns the group snapshot of a name, or ErrNotFound.
func (c *Cloud) GroupNamed(_ context.Context, name string) (Group, error) {
	return c.findGroup(name, func(g *Group) bool { return g.Name == name })
}

func (c *Cloud) findGroup(what string, is func(*Group) bool) (Group, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		if is(g) {
			return *g, nil
		}
	}
	return Group{}, fmt.Errorf("group snapshot %q: %w", what, ErrNotFound)
}

// DeleteGroup removes a group snapshot and its snapshots; one that does not exist
// is no error.
func (c *Cloud) DeleteGroup(ctx context.Context, id string) error {
	g, err := c.Group(ctx, id)
	if err != nil {
		return nil // it is gone
	}
	keys := []string{diskKey(id)}
	for _, s := range g.SnapshotIDs {
		keys = append(keys, diskKey(s))
	}
	unlock, err := c.locks.lock(ctx, keys...)
	if err != nil {
		return fmt.Errorf("delete group snapshot %q: %w", id, err)
	}
	defer unlock()
	c.step("unrecord " + groupsFolder)
	if err := os.Remove(c.groupRecord(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("delete group snapshot %q: %w", id, err)
	}
	c.mu.Lock()
	delete(c.groups, id)
	for _, s := range g.SnapshotIDs {
		delete(c.snapshots, s)
	}
	c.mu.Unlock()
	// Without its group's record a snapshot is unfinished: what fails here, or is
	// cut short, is made up for by the next Open.
	for _, s := range g.SnapshotIDs {
		err = errors.Join(err, c.removeFiles(snapshotsFolder, s))
	}
	if err != nil {
		return fmt.Errorf("delete group snapshot %q: %w", id, err)
	}
	return nil
}
