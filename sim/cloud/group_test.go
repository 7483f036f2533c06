package cloud

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCloud(t, dir)
	a, b := create(t, c, CreateRequest{Name: "a"}), create(t, c, CreateRequest{Name: "b"})
	alone, err := c.SnapshotDisk(ctx, a.ID, "alone")
	if err != nil {
		t.Fatal(err)
	}
	g, err := c.SnapshotGroup(ctx, []string{b.ID, a.ID}, "g")
	if err != nil || len(g.SnapshotIDs) != 2 {
		t.Fatal(g, err)
	}
	if again, err := c.SnapshotGroup(ctx, []string{a.ID, b.ID}, "g"); err != nil || again.ID != g.ID {
		t.Errorf("the same again: %v, %v", again, err)
	}
	for want, disks := range map[error][]string{
		ErrExists: {a.ID}, ErrInvalid: {a.ID, a.ID}, ErrNotFound: {a.ID, "no"},
	} {
		name := "other"
		if errors.Is(want, ErrExists) {
			name = "g"
		}
		if _, err := c.SnapshotGroup(ctx, disks, name); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", disks, err, want)
		}
	}
	if found := c.Snapshots(ctx); len(found) != 3 {
		t.Errorf("%d snapshots", len(found))
	}
	for i, id := range g.SnapshotIDs {
		s, err := c.Snapshot(ctx, id)
		if err != nil || s.GroupID != g.ID || s.Source != []string{b.ID, a.ID}[i] || !s.Created.Equal(g.Created) {
			t.Errorf("%+v, %v", s, err)
		}
		if err := c.DeleteSnapshot(ctx, id); !errors.Is(err, ErrInGroup) {
			t.Errorf("went without its group: %v", err)
		}
	}
	// Disks go before their snapshots, and a disk comes of each.
	for _, d := range []Disk{a, b} {
		if err := c.DeleteDisk(ctx, d.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openCloud(t, dir)
	if got, err := c.Group(ctx, g.ID); err != nil || !slices.Equal(got.SnapshotIDs, g.SnapshotIDs) {
		t.Fatalf("after the restart: %+v, %v", got, err)
	}
	create(t, c, CreateRequest{Name: "restored", Source: g.SnapshotIDs[0], SizeBytes: 3 << 30})
	for range 2 {
		if err := c.DeleteGroup(ctx, g.ID); err != nil {
			t.Fatal(err)
		}
	}
	if found := c.Snapshots(ctx); len(found) != 1 || found[0].ID != alone.ID {
		t.Errorf("after the deletion: %+v", found)
	}
	if _, err := c.GroupNamed(ctx, "g"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// All or none: with one disk's medium gone nothing is made.
func TestGroupThatFails(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	a, b := create(t, c, CreateRequest{Name: "a"}), create(t, c, CreateRequest{Name: "b"})
	if err := os.Remove(c.Image(b.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SnapshotGroup(ctx, []string{a.ID, b.ID}, "g"); err == nil {
		t.Fatal("a group without medium")
	}
	for _, kind := range []string{snapshotsFolder, groupsFolder} {
		if entries, err := os.ReadDir(filepath.Join(c.dir, kind)); err != nil || len(entries) != 0 {
			t.Errorf("%s: %v, %v", kind, entries, err)
		}
	}
	health, err := c.Health(ctx, b.ID)
	if err != nil || len(health) != 1 || health[0].Status != StatusDataLoss {
		t.Errorf("%v, %v", health, err)
	}
}
