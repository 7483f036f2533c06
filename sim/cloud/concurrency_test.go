package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// openStepped opens a cloud that tells its steps.
func openStepped(t *testing.T, step func(string)) *Cloud {
	t.Helper()
	c, err := open(t.TempDir(), step)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A long copy of one disk keeps nobody from another; who wants the same disk waits
// no longer than its call may.
func TestDisksDoNotWaitForOneAnother(t *testing.T) {
	t.Parallel()
	copying, release := make(chan struct{}), make(chan struct{})
	var copies atomic.Int64
	c := openStepped(t, func(what string) {
		if what == "copy" && copies.Add(1) == 1 {
			close(copying)
			<-release
		}
	})
	n := openNode(t)
	slow, other := create(t, c, CreateRequest{Name: "slow"}), create(t, c, CreateRequest{Name: "other"})
	done := make(chan error, 1)
	go func() {
		_, err := c.SnapshotDisk(ctx, slow.ID, "s")
		done <- err
	}()
	<-copying
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	steps := map[string]func() error{
		"attach":   func() error { _, err := c.AttachDisk(limit, other.ID, "n", n); return err },
		"snapshot": func() error { _, err := c.SnapshotDisk(limit, other.ID, "o"); return err },
		"create": func() error {
			_, err := c.CreateDisk(limit, CreateRequest{Name: "new", SizeBytes: 1 << 30})
			return err
		},
		"grow": func() error { _, err := c.GrowDisk(limit, other.ID, 2<<30); return err },
		"look": func() error { _, err := c.Disk(limit, slow.ID); return err },
	}
	for name, do := range steps {
		if err := do(); err != nil {
			t.Errorf("%s while another disk is copied: %v", name, err)
		}
	}
	if len(c.Disks(limit)) != 3 {
		t.Error("no list while a disk is copied")
	}
	short, stop := context.WithTimeout(ctx, 10*time.Millisecond)
	defer stop()
	if _, err := c.GrowDisk(short, slow.ID, 2<<30); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a disk that is copied was changed: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(c.locks.held) != 0 {
		t.Errorf("%d locks stay", len(c.locks.held))
	}
}

func TestOneNameAtOnceMakesOneDisk(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	source := create(t, c, CreateRequest{Name: "source"})
	var wait sync.WaitGroup
	ids := make([]string, 16)
	for i := range ids {
		wait.Go(func() {
			name, from := fmt.Sprint("d", i%2), ""
			if i%2 == 1 {
				from = source.ID
			}
			if d, err := c.CreateDisk(ctx, CreateRequest{Name: name, SizeBytes: 1 << 30, Source: from}); err == nil {
				ids[i] = d.ID
			}
		})
	}
	wait.Wait()
	for i, id := range ids {
		if id == "" || id != ids[i%2] {
			t.Errorf("call %d got %q, want %q", i, id, ids[i%2])
		}
	}
	if disks := c.Disks(ctx); len(disks) != 3 {
		t.Errorf("%d disks", len(disks))
	}
}

func TestCopyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	limit, cancel := context.WithCancel(ctx)
	defer cancel()
	c := openStepped(t, func(what string) {
		if what == "copy" {
			cancel()
		}
	})
	d := create(t, c, CreateRequest{Name: "a"})
	if err := writeAt(c.Image(d.ID), 5<<20, "data"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateDisk(limit, CreateRequest{Name: "copy", Source: d.ID}); !errors.Is(err, context.Canceled) {
		t.Errorf("copy went on: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(c.dir, disksFolder)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if zone := c.Zones(ctx)[0]; zone.AvailableBytes != DefaultZoneBytes-1<<30 {
		t.Errorf("room stays taken: %+v", zone)
	}
}

// What a node flushes between the copies of a group is in all of them or in none.
func TestGroupIsOfOneMoment(t *testing.T) {
	t.Parallel()
	var c *Cloud
	var disks [2]Disk
	var copies, writes atomic.Int64
	busy := int64(1)
	c = openStepped(t, func(what string) {
		if what != "copy" || copies.Add(1)%2 != 0 || writes.Load() >= busy {
			return
		}
		// Before the second copy: a flush of both disks, the first first.
		text := fmt.Sprint("moment", writes.Add(1))
		for _, d := range disks {
			if err := writeAt(c.Image(d.ID), 1<<20, text); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range disks {
		disks[i] = create(t, c, CreateRequest{Name: fmt.Sprint(i)})
	}
	g, err := c.SnapshotGroup(ctx, []string{disks[0].ID, disks[1].ID}, "g")
	if err != nil {
		t.Fatal(err)
	}
	if copies.Load() != 4 {
		t.Errorf("%d copies, want the two of the second try too", copies.Load())
	}
	for _, id := range g.SnapshotIDs {
		data, err := os.ReadFile(c.imageOf(snapshotsFolder, id))
		if err != nil || string(data[1<<20:1<<20+7]) != "moment1" {
			t.Errorf("snapshot holds %q, %v", data[1<<20:1<<20+7], err)
		}
	}
	busy = 1 << 30
	if _, err := c.SnapshotGroup(ctx, []string{disks[0].ID, disks[1].ID}, "never"); !errors.Is(err, ErrChanging) {
		t.Errorf("disks that always change: %v", err)
	}
	if found := c.Snapshots(ctx); len(found) != 2 {
		t.Errorf("%d snapshots", len(found))
	}
}
