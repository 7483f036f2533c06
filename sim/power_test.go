package sim

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

func cutAndBoot(t *testing.T, n *Node) {
	t.Helper()
	if err := n.PowerCut(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := n.Boot(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestC021_PowerCutLosesWhatWasNotFlushed(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	volume := formatted(t, n, number)
	mount(t, n, `C:\m\`, volume)
	for _, c := range []struct {
		name  string
		flush func()
		keeps bool
	}{
		{"no flush", func() {}, false},
		{"unmounted without flush", func() {
			if err := n.DeleteVolumeMountPoint(context.Background(), `C:\m\`); err != nil {
				t.Fatal(err)
			}
			mount(t, n, `C:\m\`, volume)
		}, false},
		{"volume handle", func() {
			h := open(t, n, volume[:len(volume)-1], win32.GenericRead|win32.GenericWrite)
			if err := n.FlushFileBuffers(context.Background(), h); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"MSFT_Volume.Flush", func() { code(t, n, dataVolume(t, n, number).Path, "Flush", nil, 0) }, true},
		{"offline", func() {
			code(t, n, diskPath(t, n, number), "Offline", nil, 0)
			code(t, n, diskPath(t, n, number), "Online", nil, 0)
		}, true},
	} {
		mustWrite(t, n, `C:\m\f`, c.name)
		c.flush()
		mustWrite(t, n, `C:\m\later`, c.name)
		cutAndBoot(t, n)
		if got := content(n, `C:\m\f`) == c.name; got != c.keeps {
			t.Errorf("%s: file kept %v, want %v", c.name, got, c.keeps)
		}
		if content(n, `C:\m\later`) != "" {
			t.Errorf("%s: unflushed file kept", c.name)
		}
	}
}

func TestPulledDiskLosesWhatWasNotFlushed(t *testing.T) {
	t.Parallel()
	n := instant(t)
	spec := DiskSpec{Image: filepath.Join(t.TempDir(), "d"), Bus: "NVMe", Serial: "P"}
	number := attach(t, n, spec)
	volume := formatted(t, n, number)
	mustWrite(t, n, volume+"f", "x")
	reattach := func(offline bool) {
		t.Helper()
		if offline {
			code(t, n, diskPath(t, n, number), "Offline", nil, 0)
		}
		if err := n.DetachDisk(context.Background(), number); err != nil {
			t.Fatal(err)
		}
		number = attach(t, n, spec)
		code(t, n, diskPath(t, n, number), "Online", nil, 0)
	}
	reattach(false)
	if content(n, volume+"f") != "" {
		t.Fatal("a pulled disk kept an unflushed file")
	}
	mustWrite(t, n, volume+"f", "x")
	reattach(true)
	if content(n, volume+"f") != "x" {
		t.Fatal("a disk taken offline first lost a file")
	}
}

func TestWriteCacheLosesThePartitionTable(t *testing.T) {
	t.Parallel()
	for _, cached := range []bool{false, true} {
		n := openNode(t, Config{ArrivalPolls: -1, DiskWriteCache: cached})
		number := attach(t, n, DiskSpec{Bus: "NVMe"})
		code(t, n, diskPath(t, n, number), "Initialize", nil, 0)
		cutAndBoot(t, n)
		d := one(t, n, "SELECT PartitionStyle FROM MSFT_Disk WHERE Number = %d", number)
		if raw := d.Props["PartitionStyle"] == uint16(0); raw != cached {
			t.Errorf("write cache %v: style %v after the power cut", cached, d.Props["PartitionStyle"])
		}
	}
}

func TestSwitchedOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := openNode(t, Config{Dir: dir, ArrivalPolls: -1, ServicePolls: -1})
	ctx := context.Background()
	h := open(t, n, `\\.\PhysicalDrive0`, 0)
	if err := n.PowerCut(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Query(ctx, cim.NamespaceStorage, "SELECT * FROM MSFT_Disk"); err == nil {
		t.Error("query answered")
	}
	if _, err := n.Exec(ctx, cim.NamespaceStorage, "MSFT_StorageSetting", "UpdateHostStorageCache", nil); err == nil {
		t.Error("method answered")
	}
	if _, err := n.FileAttributes(ctx, `C:\`); err == nil {
		t.Error("file call answered")
	}
	if _, _, err := n.QueryService(ctx, "RpcSs"); err == nil {
		t.Error("service call answered")
	}
	if _, err := n.DeviceIoControl(ctx, h, win32.IoctlStorageGetDeviceNumber, nil, make([]byte, 12)); err == nil {
		t.Error("a handle outlived the power cut")
	}
	if err := n.PowerCut(ctx); err == nil {
		t.Error("second power cut")
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, Config{Dir: dir})
	if _, err := n.FileAttributes(ctx, `C:\`); err == nil {
		t.Error("a node that was off is on after a restart")
	}
	if err := n.Boot(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := n.FileAttributes(ctx, `C:\`); err != nil {
		t.Errorf("after boot: %v", err)
	}
	if err := n.Boot(ctx); err == nil {
		t.Error("second boot")
	}
}

func TestC022_MountPointDanglesUntilTheDiskIsBack(t *testing.T) {
	t.Parallel()
	n := instant(t)
	spec := DiskSpec{Image: filepath.Join(t.TempDir(), "d"), Bus: "NVMe"}
	number := attach(t, n, spec)
	volume := formatted(t, n, number)
	mount(t, n, `C:\m\`, volume)
	mustWrite(t, n, `C:\m\f`, "x")
	code(t, n, diskPath(t, n, number), "Offline", nil, 0)
	if err := n.DetachDisk(context.Background(), number); err != nil {
		t.Fatal(err)
	}
	cutAndBoot(t, n)
	attributes, err := n.FileAttributes(context.Background(), `C:\m`)
	if err != nil || attributes&win32.AttrReparse == 0 {
		t.Fatalf("mount point without disk: 0x%X, %v", attributes, err)
	}
	number = attach(t, n, spec)
	code(t, n, diskPath(t, n, number), "Online", nil, 0)
	if content(n, `C:\m\f`) != "x" {
		t.Fatal("the mount point does not lead to the disk again")
	}
}

func TestRebootRenumbersDisks(t *testing.T) {
	t.Parallel()
	n := instant(t)
	attach(t, n, DiskSpec{Bus: "NVMe", SizeBytes: 64 * mib, Serial: "A"})
	attach(t, n, DiskSpec{Bus: "NVMe", SizeBytes: 64 * mib, Serial: "B"})
	if err := n.DetachDisk(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	if err := n.Reboot(context.Background()); err != nil {
		t.Fatal(err)
	}
	if d := one(t, n, "SELECT Number FROM MSFT_Disk WHERE SerialNumber = 'B'"); d.Props["Number"] != uint32(1) {
		t.Fatalf("number after reboot: %v", d.Props)
	}
}

func TestDiskMissingAtOpen(t *testing.T) {
	t.Parallel()
	dir, img := t.TempDir(), filepath.Join(t.TempDir(), "d")
	n := openNode(t, Config{Dir: dir})
	attach(t, n, DiskSpec{Image: img, Bus: "NVMe"})
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(img); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, Config{Dir: dir})
	if disks, err := n.Disks(context.Background()); err != nil || len(disks) != 1 {
		t.Fatalf("%d disks, %v", len(disks), err)
	}
}
