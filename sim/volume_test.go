package sim

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	volume := formatted(t, n, number)
	path := one(t, n, "SELECT ObjectId FROM MSFT_Volume WHERE Path = '%s'", wqlText(volume)).Path
	mustWrite(t, n, volume+"old", "x")
	for _, c := range []struct {
		name   string
		in     cim.Values
		code   uint32
		system string
		typ    uint16
	}{
		{"unknown", cim.Values{"FileSystem": "ext4"}, codeFileSystem, "", 0},
		{"cluster", cim.Values{"FileSystem": "NTFS", "AllocationUnitSize": uint32(1000)}, codeClusterSize, "", 0},
		{"integrity streams on NTFS", cim.Values{"SetIntegrityStreams": true}, codeInvalidParameter, "", 0},
		{"short names on ReFS", cim.Values{"FileSystem": "ReFS", "ShortFileNameSupport": true}, codeInvalidParameter, "", 0},
		{"default", cim.Values{"FileSystemLabel": "data"}, 0, "NTFS", 14},
		{"ReFS", cim.Values{"FileSystem": "refs"}, 0, "ReFS", 15},
		{"FAT32", cim.Values{"FileSystem": "FAT32", "Full": true, "Force": true}, 0, "FAT32", 6},
		{"NTFS with clusters", cim.Values{"FileSystem": "ntfs", "AllocationUnitSize": uint32(65536)}, 0, "NTFS", 14},
	} {
		code(t, n, path, "Format", c.in, c.code)
		if c.code != 0 {
			continue
		}
		v := one(t, n, "SELECT * FROM MSFT_Volume WHERE Path = '%s'", wqlText(volume))
		if v.Props["FileSystem"] != c.system || v.Props["FileSystemType"] != c.typ {
			t.Errorf("%s: %v %v", c.name, v.Props["FileSystem"], v.Props["FileSystemType"])
		}
		if content(n, volume+"old") != "" {
			t.Errorf("%s: files survive a format", c.name)
		}
		mustWrite(t, n, volume+"old", "x")
	}
	code(t, n, diskPath(t, n, number), "SetAttributes", cim.Values{"IsReadOnly": true}, 0)
	code(t, n, path, "Format", nil, codeDriveReadOnly)
	system := one(t, n, "SELECT ObjectId FROM MSFT_Volume WHERE DriveLetter = 67")
	code(t, n, system.Path, "Format", nil, codeCriticalPartition)
}

func TestRawVolume(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	disk := diskPath(t, n, number)
	code(t, n, disk, "Initialize", nil, 0)
	code(t, n, disk, "CreatePartition", cim.Values{"UseMaximumSize": true}, 0)
	v := dataVolume(t, n, number)
	if v.Props["FileSystem"] != "" || v.Props["Size"] != uint64(0) || !slices.Equal(v.Props["OperationalStatus"].([]uint16), []uint16{0}) {
		t.Fatalf("raw volume: %v", v.Props)
	}
	name := v.Props["Path"].(string)
	if _, err := n.VolumeInformation(context.Background(), name); win32Code(err) != 1005 {
		t.Fatalf("information of a raw volume: %v", err)
	}
	if _, _, err := n.DiskFreeSpace(context.Background(), name); win32Code(err) != 1005 {
		t.Fatalf("free space of a raw volume: %v", err)
	}
	code(t, n, v.Path, "Format", cim.Values{"FileSystemLabel": "L"}, 0)
	info, err := n.VolumeInformation(context.Background(), name)
	if err != nil || info.FileSystem != "NTFS" || info.Label != "L" {
		t.Fatalf("%+v, %v", info, err)
	}
}

func TestReservedPartitionHasNoVolume(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	code(t, n, diskPath(t, n, number), "Initialize", nil, 0)
	p := one(t, n, "SELECT * FROM MSFT_Partition WHERE DiskNumber = %d", number)
	if p.Props["AccessPaths"] != nil || p.Props["Offset"] != uint64(17408) || p.Props["Size"] != uint64(16<<20-17408) {
		t.Fatalf("reserved partition: %v", p.Props)
	}
	if rows := query(t, n, "ASSOCIATORS OF {%s} WHERE AssocClass = MSFT_PartitionToVolume", p.Path); len(rows) != 0 {
		t.Fatal("it has a volume")
	}
}

func TestVolumesGoWithTheDisk(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	volume := formatted(t, n, number)
	mount(t, n, `C:\m\`, volume)
	mustWrite(t, n, `C:\m\f`, "data")
	code(t, n, diskPath(t, n, number), "Offline", nil, 0)
	if rows := query(t, n, "SELECT Path FROM MSFT_Volume WHERE Path = '%s'", wqlText(volume)); len(rows) != 0 {
		t.Fatal("the volume of an offline disk is listed")
	}
	if rows := query(t, n, "SELECT Offset FROM MSFT_Partition WHERE DiskNumber = %d", number); len(rows) != 2 {
		t.Fatal("the layout of an offline disk cannot be read")
	}
	if content(n, `C:\m\f`) != "" {
		t.Fatal("a file of an offline disk is readable")
	}
	code(t, n, diskPath(t, n, number), "Online", nil, 0)
	if content(n, `C:\m\f`) != "data" {
		t.Fatal("the mount point does not work again")
	}
}

func TestAccessPaths(t *testing.T) {
	t.Parallel()
	n := instant(t)
	ctx := context.Background()
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	volume := formatted(t, n, number)
	p := dataPartition(t, n, number)
	for _, folder := range []string{`C:\a`, `C:\full\x`} {
		if err := n.MakeDir(ctx, folder); err != nil {
			t.Fatal(err)
		}
	}
	add := func(in cim.Values, want uint32) {
		t.Helper()
		code(t, n, p.Path, "AddAccessPath", in, want)
	}
	remove := func(path string, want uint32) {
		t.Helper()
		code(t, n, p.Path, "RemoveAccessPath", cim.Values{"AccessPath": path}, want)
	}
	add(nil, codeInvalidParameter)
	add(cim.Values{"AccessPath": `C:\a`, "AssignDriveLetter": true}, codeInvalidParameter)
	add(cim.Values{"AccessPath": `C:\none`}, codeInvalidAccessPath)
	add(cim.Values{"AccessPath": `C:\full`}, codeAccessPathInUse)
	add(cim.Values{"AccessPath": `C:\a`}, 0)
	add(cim.Values{"AccessPath": `C:\a`}, codeAccessPathInUse)
	add(cim.Values{"AccessPath": `C:`}, codeAccessPathInUse)
	add(cim.Values{"AccessPath": `S:\`}, 0)
	paths := one(t, n, "SELECT AccessPaths, DriveLetter FROM MSFT_Partition WHERE DiskNumber = %d AND PartitionNumber = 2", number)
	if got := paths.Props["AccessPaths"].([]string); !slices.Equal(got, []string{`S:\`, `C:\a\`, volume}) || paths.Props["DriveLetter"] != uint16('S') {
		t.Fatalf("paths %q, letter %v", got, paths.Props["DriveLetter"])
	}
	remove(volume, codeGUIDPathStays)
	remove(`C:\b`, codeInvalidAccessPath)
	remove("", codeInvalidParameter)
	remove(`C:\a`, 0)
	remove(`s:`, 0)
	system := one(t, n, "SELECT ObjectId FROM MSFT_Partition WHERE IsBoot = TRUE")
	code(t, n, system.Path, "RemoveAccessPath", cim.Values{"AccessPath": `C:\`}, codeBootLetter)
	add(cim.Values{"AccessPath": `C:\a`}, 0)
	code(t, n, p.Path, "DeleteObject", nil, 0)
	if rows := query(t, n, "SELECT Path FROM MSFT_Volume WHERE Path = '%s'", wqlText(volume)); len(rows) != 0 {
		t.Fatal("the volume of a deleted partition is there")
	}
	if names, err := n.ListDir(ctx, `C:\a`); err != nil || len(names) != 0 {
		t.Fatalf("folder of a removed mount: %v, %v", names, err)
	}
}

func TestVolumeArrivesLater(t *testing.T) {
	t.Parallel()
	n := openNode(t, Config{ArrivalPolls: 3})
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	disk := diskPath(t, n, number)
	code(t, n, disk, "Initialize", nil, 0)
	code(t, n, disk, "CreatePartition", cim.Values{"UseMaximumSize": true}, 0)
	for look := 1; ; look++ {
		names, err := n.FindVolumes(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 2 {
			if look != 3 {
				t.Fatalf("volume there at look %d, want 3", look)
			}
			return
		}
		if look > 3 {
			t.Fatal("volume does not arrive")
		}
	}
}

func TestPartitionOffline(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	volume := formatted(t, n, number)
	mustWrite(t, n, volume+"f", "x")
	p := dataPartition(t, n, number)
	reserved := one(t, n, "SELECT * FROM MSFT_Partition WHERE DiskNumber = %d AND PartitionNumber = 1", number)
	code(t, n, reserved.Path, "Offline", nil, codeDataPartitionOnly)
	code(t, n, p.Path, "Offline", nil, 0)
	p = dataPartition(t, n, number)
	if p.Props["IsOffline"] != true || p.Props["OperationalStatus"] != uint16(4) || content(n, volume+"f") != "" {
		t.Fatalf("offline: %v", p.Props)
	}
	cutAndBoot(t, n)
	if content(n, volume+"f") != "" {
		t.Fatal("a reboot brought the partition online")
	}
	if err := n.MakeDir(context.Background(), `C:\p`); err != nil {
		t.Fatal(err)
	}
	code(t, n, p.Path, "AddAccessPath", cim.Values{"AccessPath": `C:\p`}, 0)
	if content(n, `C:\p\f`) != "x" {
		t.Fatal("an access path does not bring the partition online")
	}
	code(t, n, p.Path, "Offline", nil, 0)
	code(t, n, p.Path, "Online", nil, 0)
	if content(n, volume+"f") != "x" {
		t.Fatal("not online again")
	}
}

func TestAutomount(t *testing.T) {
	t.Parallel()
	n := openNode(t, Config{ArrivalPolls: -1, AutomountLetters: true})
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	formatted(t, n, number)
	if p := dataPartition(t, n, number); p.Props["DriveLetter"] != uint16('D') {
		t.Fatalf("letter %v", p.Props["DriveLetter"])
	}
	mustWrite(t, n, `D:\f`, "x")
}

func TestFreeSpaceFollowsTheFiles(t *testing.T) {
	t.Parallel()
	n := instant(t)
	volume := formatted(t, n, attach(t, n, DiskSpec{Bus: "NVMe"}))
	total, before, err := n.DiskFreeSpace(context.Background(), volume)
	if err != nil || before >= total {
		t.Fatal(total, before, err)
	}
	mustWrite(t, n, volume+"f", string(make([]byte, 10000)))
	_, after, err := n.DiskFreeSpace(context.Background(), volume)
	if err != nil || before-after != 3*4096 {
		t.Fatalf("10000 bytes took %d, %v", before-after, err)
	}
}

func TestReadOnlyDiskRefusesFiles(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	volume := formatted(t, n, number)
	code(t, n, diskPath(t, n, number), "SetAttributes", cim.Values{"IsReadOnly": true}, 0)
	if err := n.WriteFile(context.Background(), volume+"f", nil); win32Code(err) != 19 {
		t.Fatalf("write on a read-only disk: %v", err)
	}
	info, err := n.VolumeInformation(context.Background(), volume)
	if err != nil || info.Flags&0x80000 == 0 {
		t.Fatalf("%+v, %v", info, err)
	}
}

// TestCheckpointSeesWritesOfOneTick writes texts of one length faster than file
// times can tell apart.
func TestCheckpointSeesWritesOfOneTick(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	live := filepath.Join(dir, liveFolder, "f")
	if err := os.MkdirAll(filepath.Dir(live), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		want := string(rune('a' + i%26))
		if err := os.WriteFile(live, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkpoint(dir); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, flushedFolder, "f")); string(got) != want {
			t.Fatalf("round %d: checkpoint holds %q, want %q", i, got, want)
		}
	}
}

func TestMirror(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	must(os.WriteFile(outside, []byte("o"), 0o600))
	must(os.MkdirAll(filepath.Join(from, "d", "e"), 0o755))
	must(os.WriteFile(filepath.Join(from, "d", "f"), []byte("1"), 0o400))
	must(os.Symlink(outside, filepath.Join(from, "link")))
	must(mirror(context.Background(), from, to))
	if text, err := os.Readlink(filepath.Join(to, "link")); err != nil || text != outside {
		t.Fatalf("link: %q, %v", text, err)
	}
	must(os.RemoveAll(filepath.Join(from, "d")))
	must(os.WriteFile(filepath.Join(from, "d"), []byte("file now"), 0o600))
	must(os.Remove(filepath.Join(from, "link")))
	must(mirror(context.Background(), from, to))
	if data, err := os.ReadFile(filepath.Join(to, "d")); err != nil || string(data) != "file now" {
		t.Fatalf("%q, %v", data, err)
	}
	if _, err := os.Lstat(filepath.Join(to, "link")); !os.IsNotExist(err) {
		t.Fatalf("link stays: %v", err)
	}
	if data, _ := os.ReadFile(outside); string(data) != "o" {
		t.Fatal("mirror followed a link")
	}
}
