package cloud

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

var ctx = context.Background()

func openCloud(t *testing.T, dir string) *Cloud {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func openNode(t *testing.T) *sim.Node {
	t.Helper()
	n, err := sim.Open(ctx, sim.Config{Dir: t.TempDir(), ArrivalPolls: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func create(t *testing.T, c *Cloud, r CreateRequest) Disk {
	t.Helper()
	if r.SizeBytes == 0 && r.Source == "" {
		r.SizeBytes = 1 << 30
	}
	d, err := c.CreateDisk(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// volumeOf brings an attached disk online, formats it when it is empty, and
// returns its volume.
func volumeOf(t *testing.T, n *sim.Node, number uint32) string {
	t.Helper()
	run := func(path, method string, in cim.Values) {
		t.Helper()
		if r, err := n.Exec(ctx, cim.NamespaceStorage, path, method, in); err != nil || r.ReturnValue != 0 {
			t.Fatalf("%s: %d, %v", method, r.ReturnValue, err)
		}
	}
	rows, err := n.Query(ctx, cim.NamespaceStorage, "SELECT * FROM MSFT_Disk")
	if err != nil {
		t.Fatal(err)
	}
	disk := rows[number]
	run(disk.Path, "Online", nil)
	if disk.Props["PartitionStyle"] == uint16(0) {
		run(disk.Path, "Initialize", nil)
		run(disk.Path, "CreatePartition", cim.Values{"UseMaximumSize": true})
		volumes, err := n.Query(ctx, cim.NamespaceStorage, "SELECT * FROM MSFT_Volume WHERE FileSystem = ''")
		if err != nil || len(volumes) != 1 {
			t.Fatal(volumes, err)
		}
		run(volumes[0].Path, "Format", nil)
	}
	disks, err := n.Disks(ctx)
	if err != nil || len(disks[number].Volumes) != 1 {
		t.Fatal(disks, err)
	}
	return disks[number].Volumes[0]
}

func TestCreate(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	d := create(t, c, CreateRequest{Name: "a", SizeBytes: 100<<20 + 1})
	if d.SizeBytes != 101<<20 || d.Bus != "SCSI" || d.Serial == "" {
		t.Errorf("%+v", d)
	}
	if again := create(t, c, CreateRequest{Name: "a", SizeBytes: 101 << 20}); again.ID != d.ID {
		t.Error("the same request made a second disk")
	}
	for name, want := range map[*CreateRequest]error{
		{Name: "a", SizeBytes: 200 << 20}:               ErrExists,
		{Name: "b", SizeBytes: 1}:                       ErrSize,
		{Name: "b", SizeBytes: 100 << 20, Source: "no"}: ErrNotFound,
		{Name: "b", SizeBytes: 64 << 20, Source: d.ID}:  ErrSize,
	} {
		if _, err := c.CreateDisk(ctx, *name); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", *name, err, want)
		}
	}
	if _, err := c.Disk(ctx, "no"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestAttachAndMove(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	one, two := openNode(t), openNode(t)
	d := create(t, c, CreateRequest{Name: "a"})
	number, err := c.AttachDisk(ctx, d.ID, "one", one)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.AttachDisk(ctx, d.ID, "one", one); err != nil || again != number {
		t.Fatalf("second attach: %d, %v", again, err)
	}
	if _, err := c.AttachDisk(ctx, d.ID, "two", two); !errors.Is(err, ErrAttached) {
		t.Fatalf("attached to two nodes: %v", err)
	}
	if err := c.DeleteDisk(ctx, d.ID); !errors.Is(err, ErrAttached) {
		t.Fatalf("deleted while attached: %v", err)
	}
	volume := volumeOf(t, one, number)
	if err := one.WriteFile(ctx, volume+"f", []byte("data")); err != nil {
		t.Fatal(err)
	}
	rows, err := one.Query(ctx, cim.NamespaceStorage, "SELECT ObjectId FROM MSFT_Disk")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Exec(ctx, cim.NamespaceStorage, rows[number].Path, "Offline", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.DetachDisk(ctx, d.ID, "one", one); err != nil {
			t.Fatal(err)
		}
	}
	number, err = c.AttachDisk(ctx, d.ID, "two", two)
	if err != nil {
		t.Fatal(err)
	}
	moved := volumeOf(t, two, number)
	if data, err := two.ReadFile(ctx, moved+"f"); err != nil || string(data) != "data" || moved != volume {
		t.Fatalf("on the other node: %q, %v", data, err)
	}
	rows, err = two.Query(ctx, cim.NamespaceStorage, "SELECT UniqueId, UniqueIdFormat FROM MSFT_Disk WHERE Number = 1")
	if err != nil || rows[0].Props["UniqueIdFormat"] != uint16(3) {
		t.Fatal(rows, err)
	}
}

func TestSnapshotAndClone(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	n := openNode(t)
	d := create(t, c, CreateRequest{Name: "a"})
	number, err := c.AttachDisk(ctx, d.ID, "n", n)
	if err != nil {
		t.Fatal(err)
	}
	volume := volumeOf(t, n, number)
	write := func(text string, flush bool) {
		t.Helper()
		if err := n.WriteFile(ctx, volume+"f", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if !flush {
			return
		}
		rows, err := n.Query(ctx, cim.NamespaceStorage, "SELECT ObjectId, Path FROM MSFT_Volume")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if _, err := n.Exec(ctx, cim.NamespaceStorage, r.Path, "Flush", nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("flushed", true)
	write("not flushed", false)
	snapshot, err := c.SnapshotDisk(ctx, d.ID, "s")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.SnapshotDisk(ctx, d.ID, "s"); err != nil || again.ID != snapshot.ID {
		t.Fatalf("second snapshot: %v", err)
	}
	write("later", true)
	restored := create(t, c, CreateRequest{Name: "r", Source: snapshot.ID})
	larger := create(t, c, CreateRequest{Name: "c", Source: d.ID, SizeBytes: 2 << 30})
	for id, want := range map[string]string{restored.ID: "flushed", larger.ID: "later"} {
		number, err := c.AttachDisk(ctx, id, "n", n)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := n.ReadFile(ctx, volumeOf(t, n, number)+"f"); err != nil || string(data) != want {
			t.Errorf("copy holds %q, %v, want %q", data, err, want)
		}
	}
	if err := c.DeleteSnapshot(ctx, snapshot.ID); err != nil || len(c.Snapshots(ctx)) != 0 {
		t.Error(err)
	}
	if info, err := os.Stat(c.Image(larger.ID)); err != nil || info.Size() != 2<<30 {
		t.Errorf("clone of %d bytes, %v", info.Size(), err)
	}
}

func TestGrow(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	n := openNode(t)
	d := create(t, c, CreateRequest{Name: "a", Bus: "NVMe"})
	if _, err := c.AttachDisk(ctx, d.ID, "n", n); err != nil {
		t.Fatal(err)
	}
	if g, err := c.GrowDisk(ctx, d.ID, 2<<30); err != nil || g.SizeBytes != 2<<30 {
		t.Fatal(g, err)
	}
	if g, err := c.GrowDisk(ctx, d.ID, 1); err != nil || g.SizeBytes != 2<<30 {
		t.Fatal("a disk shrank", g, err)
	}
	if _, err := n.Exec(ctx, cim.NamespaceStorage, "MSFT_StorageSetting", "UpdateHostStorageCache", nil); err != nil {
		t.Fatal(err)
	}
	disks, err := n.Disks(ctx)
	if err != nil || disks[1].SizeBytes != 2<<30 {
		t.Fatal(disks, err)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCloud(t, dir)
	if _, err := Open(dir); err == nil {
		t.Fatal("two owners")
	}
	n := openNode(t)
	kept, gone := create(t, c, CreateRequest{Name: "kept"}), create(t, c, CreateRequest{Name: "gone"})
	if _, err := c.AttachDisk(ctx, kept.ID, "n", n); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteDisk(ctx, gone.ID); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteDisk(ctx, gone.ID); err != nil {
		t.Fatal(err)
	}
	// What a process that was killed leaves behind: a disk whose record is missing.
	half := filepath.Join(dir, disksFolder, gone.ID)
	if err := os.MkdirAll(half, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openCloud(t, dir)
	disks := c.Disks(ctx)
	if len(disks) != 1 || disks[0].ID != kept.ID || disks[0].AttachedTo != "n" {
		t.Fatalf("after the restart: %+v", disks)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Error("an unfinished disk stays")
	}
	if err := c.DetachDisk(ctx, kept.ID, "n", n); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteDisk(ctx, kept.ID); err != nil || len(c.Disks(ctx)) != 0 {
		t.Fatal(err)
	}
}
