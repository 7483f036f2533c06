package cloud

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// brief is a call that has no time to wait.
func brief(t *testing.T) context.Context {
	t.Helper()
	limit, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	t.Cleanup(cancel)
	return limit
}

// Two disks that race for the last slot of a node do not both get it.
func TestLastSlotIsGivenOnce(t *testing.T) {
	t.Parallel()
	race := func() {}
	c := openStepped(t, func(what string) {
		if what == "record "+disksFolder {
			once := race
			race = func() {}
			once()
		}
	})
	n := openNode(t)
	a, b := create(t, c, CreateRequest{Name: "a"}), create(t, c, CreateRequest{Name: "b"})
	if err := AddNode(c.dir, Node{Name: "n", MaxDisks: 1}); err != nil {
		t.Fatal(err)
	}
	race = func() { // the first disk is counted and not yet recorded
		if _, err := c.AttachDisk(brief(t), b.ID, "n", n); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second disk: %v, want it to wait", err)
		}
	}
	if _, err := c.AttachDisk(ctx, a.ID, "n", n); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AttachDisk(ctx, b.ID, "n", n); !errors.Is(err, ErrExhausted) {
		t.Error(err)
	}
}

// A late detach from the node before takes the disk from nobody.
func TestDetachFromAnotherNodeDoesNothing(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	n := openNode(t)
	d := create(t, c, CreateRequest{Name: "a"})
	if _, err := c.AttachDisk(ctx, d.ID, "now", n); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"before", ""} {
		if err := c.DetachDisk(ctx, d.ID, name, n); err != nil {
			t.Error(err)
		}
	}
	if got, err := c.Disk(ctx, d.ID); err != nil || got.AttachedTo != "now" {
		t.Errorf("%+v, %v", got, err)
	}
	if disks, err := n.Disks(ctx); err != nil || len(disks) != 2 {
		t.Errorf("%+v, %v", disks, err)
	}
}

func TestNameOfADiskOfAnotherKindIsTaken(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	create(t, c, CreateRequest{Name: "a", Bus: "NVMe"})
	for _, r := range []CreateRequest{{Name: "a", SizeBytes: 1 << 30}, {Name: "a", SizeBytes: 2 << 30, Bus: "NVMe"}} {
		if _, err := c.CreateDisk(ctx, r); !errors.Is(err, ErrExists) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// Who waits for two locks holds none that comes later, so nobody waits for ever.
func TestLocksAreTakenInOneOrder(t *testing.T) {
	t.Parallel()
	l := locks{held: map[string]*held{}}
	first, err := l.lock(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		unlock, err := l.lock(ctx, "b", "a", "b")
		if err == nil {
			unlock()
		}
		got <- err
	}()
	waits := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.held["a"].users == 2
	}
	for !waits() {
		time.Sleep(time.Millisecond)
	}
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	second, err := l.lock(limit, "b")
	if err != nil {
		t.Fatal(err)
	}
	second()
	first()
	if err := <-got; err != nil || len(l.held) != 0 {
		t.Errorf("%v, %d locks stay", err, len(l.held))
	}
}

// Snapshots of one moment have one time: pages tell them apart.
func TestPagesOfOneMoment(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	var ids []string
	for i := range 7 {
		ids = append(ids, create(t, c, CreateRequest{Name: fmt.Sprint("d", i), SizeBytes: MinDiskBytes}).ID)
	}
	if _, err := c.SnapshotGroup(ctx, ids, "g"); err != nil {
		t.Fatal(err)
	}
	seen, token := map[string]bool{}, ""
	for range 7 {
		page, next, err := c.SnapshotPage(ctx, Page{Token: token, MaxEntries: 1}, nil)
		if err != nil || len(page) != 1 || seen[page[0].ID] {
			t.Fatalf("%v, %v", page, err)
		}
		seen[page[0].ID], token = true, next
	}
	if token != "" || len(seen) != 7 {
		t.Errorf("%d of 7, and %q follows", len(seen), token)
	}
}

// Both snapshots stay while they are compared.
func TestComparedSnapshotsAreHeld(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	d := create(t, c, CreateRequest{Name: "a"})
	var ids []string
	for _, name := range []string{"1", "2"} {
		s, err := c.SnapshotDisk(ctx, d.ID, name)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	for _, id := range ids {
		unlock, err := c.locks.lock(ctx, diskKey(id))
		if err != nil {
			t.Fatal(err)
		}
		err = c.ChangedBlocks(brief(t), ids[0], ids[1], 0, func([]Extent) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("compared while one is worked on: %v", err)
		}
		unlock()
	}
}
