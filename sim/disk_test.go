package sim

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/winos/cim"
)

func TestSANPolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy  uint16
		bus     string
		offline bool
	}{
		{policyOfflineShared, "SAS", true},
		{policyOfflineShared, "iSCSI", true},
		{policyOfflineShared, "Fibre Channel", true},
		{policyOfflineShared, "NVMe", false},
		{policyOfflineShared, "SATA", false},
		{policyOfflineShared, "File Backed Virtual", false},
		{policyOnlineAll, "SAS", false},
		{policyOfflineAll, "NVMe", true},
		{policyOfflineInternal, "NVMe", true},
		{policyOfflineInternal, "SAS", false},
	} {
		n := instant(t)
		code(t, n, "MSFT_StorageSetting", "Set", cim.Values{"NewDiskPolicy": c.policy}, 0)
		number := attach(t, n, DiskSpec{Bus: c.bus})
		d := one(t, n, "SELECT * FROM MSFT_Disk WHERE Number = %d", number)
		if d.Props["IsOffline"] != c.offline || d.Props["IsReadOnly"] != c.offline {
			t.Errorf("policy %d, %s: offline %v, read-only %v", c.policy, c.bus, d.Props["IsOffline"], d.Props["IsReadOnly"])
		}
	}
}

func TestPolicyIsNotAppliedToKnownDisks(t *testing.T) {
	t.Parallel()
	n := instant(t)
	spec := DiskSpec{Image: filepath.Join(t.TempDir(), "d"), Bus: "SAS", Serial: "S"}
	number := attach(t, n, spec)
	code(t, n, diskPath(t, n, number), "Online", nil, 0)
	code(t, n, diskPath(t, n, number), "SetAttributes", cim.Values{"IsReadOnly": false}, 0)
	if err := n.DetachDisk(context.Background(), number); err != nil {
		t.Fatal(err)
	}
	number = attach(t, n, spec)
	d := one(t, n, "SELECT IsOffline, IsReadOnly FROM MSFT_Disk WHERE Number = %d", number)
	if d.Props["IsOffline"] != false || d.Props["IsReadOnly"] != false {
		t.Fatalf("known disk: %v", d.Props)
	}
}

func TestDiskMethodsReturnCodes(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	disk := diskPath(t, n, number)
	code(t, n, disk, "CreatePartition", cim.Values{"UseMaximumSize": true}, codeNotInitialized)
	code(t, n, disk, "Clear", nil, codeNotInitialized)
	code(t, n, disk, "SetAttributes", cim.Values{"Guid": "{00000000-0000-0000-0000-000000000001}"}, codeNotInitialized)
	code(t, n, disk, "SetAttributes", nil, codeInvalidParameter)
	code(t, n, disk, "Initialize", cim.Values{"PartitionStyle": uint16(7)}, codeInvalidParameter)
	code(t, n, disk, "Initialize", cim.Values{"PartitionStyle": uint16(2)}, 0)
	code(t, n, disk, "Initialize", cim.Values{"PartitionStyle": uint16(2)}, codeInitialized)
	d := one(t, n, "SELECT * FROM MSFT_Disk WHERE Number = %d", number)
	if d.Props["NumberOfPartitions"] != uint32(1) || d.Props["Signature"] != nil || d.Props["Guid"] == nil {
		t.Fatalf("initialized disk: %v", d.Props)
	}
	code(t, n, disk, "CreatePartition", nil, codeSizeChoice)
	code(t, n, disk, "CreatePartition", cim.Values{"Size": uint64(gib), "UseMaximumSize": true}, codeSizeChoice)
	code(t, n, disk, "CreatePartition", cim.Values{"Size": uint64(50 * gib)}, codeNoCapacity)
	code(t, n, disk, "CreatePartition", cim.Values{"UseMaximumSize": true, "MbrType": uint16(7)}, codeWrongStyle)
	code(t, n, disk, "CreatePartition", cim.Values{"UseMaximumSize": true, "DriveLetter": uint16('X'), "AssignDriveLetter": true}, codeInvalidParameter)
	code(t, n, disk, "CreatePartition", cim.Values{"Size": uint64(gib), "DriveLetter": uint16('C')}, codeAccessPathInUse)
	if rows := query(t, n, "SELECT * FROM MSFT_Partition WHERE DiskNumber = %d", number); len(rows) != 2 {
		t.Fatalf("%d partitions after 42002, want 2: the partition is made", len(rows))
	}
	code(t, n, disk, "Clear", nil, codeNeedsRemoveData)
	code(t, n, disk, "Offline", nil, 0)
	code(t, n, disk, "Clear", cim.Values{"RemoveData": true}, codeDiskOffline)
	code(t, n, disk, "SetAttributes", cim.Values{"IsReadOnly": true}, codeDiskOffline)
	code(t, n, disk, "Online", nil, 0)
	code(t, n, disk, "Online", nil, 0)
	code(t, n, disk, "SetAttributes", cim.Values{"IsReadOnly": true}, 0)
	code(t, n, disk, "Clear", cim.Values{"RemoveData": true}, codeDiskReadOnly)
	code(t, n, disk, "CreatePartition", cim.Values{"UseMaximumSize": true}, codeDiskReadOnly)
	code(t, n, disk, "SetAttributes", cim.Values{"IsReadOnly": false}, 0)
	code(t, n, disk, "ConvertStyle", cim.Values{"PartitionStyle": uint16(1)}, codeHasPartitions)
	code(t, n, disk, "Clear", cim.Values{"RemoveData": true}, 0)
	d = one(t, n, "SELECT * FROM MSFT_Disk WHERE Number = %d", number)
	if d.Props["PartitionStyle"] != uint16(0) || d.Props["NumberOfPartitions"] != uint32(0) {
		t.Fatalf("cleared disk: %v", d.Props)
	}
	system := diskPath(t, n, 0)
	code(t, n, system, "Offline", nil, codeCriticalDisk)
	code(t, n, system, "Clear", cim.Values{"RemoveData": true, "RemoveOEM": true}, codeCriticalDisk)
	code(t, n, system, "Clear", nil, codeCriticalDisk)
}

func TestSmallDiskTakesNoGPT(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe", SizeBytes: 16 * mib})
	code(t, n, diskPath(t, n, number), "Initialize", nil, codeTooSmallForGPT)
}

func TestMBRDisk(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	disk := diskPath(t, n, number)
	code(t, n, disk, "Initialize", cim.Values{"PartitionStyle": uint16(1)}, 0)
	code(t, n, disk, "CreatePartition", cim.Values{"UseMaximumSize": true, "MbrType": uint16(7)}, 0)
	d := one(t, n, "SELECT Signature, Guid, PartitionStyle FROM MSFT_Disk WHERE Number = %d", number)
	if d.Props["Guid"] != nil || d.Props["PartitionStyle"] != uint16(1) {
		t.Fatal(d.Props)
	}
	p := one(t, n, "SELECT * FROM MSFT_Partition WHERE DiskNumber = %d", number)
	v := one(t, n, "ASSOCIATORS OF {%s} WHERE AssocClass = MSFT_PartitionToVolume", p.Path)
	want := `\\?\Volume{` + mbrVolumeGUID(d.Props["Signature"].(uint32), p.Props["Offset"].(uint64)) + `}\`
	if v.Props["Path"] != want || p.Props["Offset"] != uint64(mib) || p.Props["GptType"] != nil || p.Props["MbrType"] != uint16(7) {
		t.Fatalf("volume %v, want %s; partition %v", v.Props["Path"], want, p.Props)
	}
}

func TestC010_CopyOfADiskCollides(t *testing.T) {
	t.Parallel()
	n := instant(t)
	dir := t.TempDir()
	original, copied := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	first := attach(t, n, DiskSpec{Image: original, Bus: "NVMe", Serial: "A"})
	volume := formatted(t, n, first)
	mustWrite(t, n, volume+"f", "data")
	code(t, n, one(t, n, "SELECT ObjectId FROM MSFT_Volume WHERE Path = '%s'", wqlText(volume)).Path, "Flush", nil, 0)
	if err := CopyMedium(context.Background(), original, copied); err != nil {
		t.Fatal(err)
	}
	second := attach(t, n, DiskSpec{Image: copied, Bus: "NVMe", Serial: "B"})
	d := one(t, n, "SELECT * FROM MSFT_Disk WHERE Number = %d", second)
	if d.Props["IsOffline"] != true || d.Props["OfflineReason"] != uint16(offlineCollision) {
		t.Fatalf("copy: %v", d.Props)
	}
	code(t, n, d.Path, "Online", nil, 0)
	now := one(t, n, "SELECT * FROM MSFT_Disk WHERE Number = %d", second)
	if now.Props["IsOffline"] != false || now.Props["Guid"] == d.Props["Guid"] || now.Props["OfflineReason"] != nil {
		t.Fatalf("copy after Online: %v", now.Props)
	}
	twin := dataVolume(t, n, second).Props["Path"].(string)
	if twin == volume || content(n, twin+"f") != "data" {
		t.Fatalf("volume of the copy %s: %q", twin, content(n, twin+"f"))
	}
}

func TestGrownDiskShowsAfterRescan(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	volume := formatted(t, n, number)
	mustWrite(t, n, volume+"f", "data")
	if err := n.GrowDisk(context.Background(), number, 8*gib); err != nil {
		t.Fatal(err)
	}
	size := func() any { return one(t, n, "SELECT Size FROM MSFT_Disk WHERE Number = %d", number).Props["Size"] }
	if size() != uint64(5*gib) {
		t.Fatalf("size before the rescan: %v", size())
	}
	code(t, n, "MSFT_StorageSetting", "UpdateHostStorageCache", nil, 0)
	if size() != uint64(8*gib) {
		t.Fatalf("size after the rescan: %v", size())
	}
	p := dataPartition(t, n, number)
	sizes := code(t, n, p.Path, "GetSupportedSize", nil, 0)
	largest := sizes.Out["SizeMax"].(uint64)
	if largest < uint64(8*gib-32*mib) {
		t.Fatalf("SizeMax %d after the rescan", largest)
	}
	code(t, n, p.Path, "Resize", cim.Values{"Size": p.Props["Size"]}, codeSizeNotSupported)
	code(t, n, p.Path, "Resize", cim.Values{"Size": p.Props["Size"].(uint64) + 4096}, codeSizeNotSupported)
	code(t, n, p.Path, "Resize", cim.Values{"Size": largest + 1<<20}, codeSizeNotSupported)
	code(t, n, p.Path, "Resize", cim.Values{"Size": uint64(0)}, codeInvalidParameter)
	code(t, n, p.Path, "Resize", cim.Values{"Size": largest}, 0)
	v := one(t, n, "SELECT Size FROM MSFT_Volume WHERE Path = '%s'", wqlText(volume))
	if got := v.Props["Size"].(uint64); got > largest || got < largest-1<<20 {
		t.Fatalf("file system of %d on partition of %d", got, largest)
	}
	if content(n, volume+"f") != "data" {
		t.Fatal("file lost by the growth")
	}
}

func TestC013_SizesNeedTheDefragmenter(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	formatted(t, n, number)
	if err := n.SetService(context.Background(), Service{Name: serviceDefrag, StartType: startDisabled, State: serviceStopped}); err != nil {
		t.Fatal(err)
	}
	p := dataPartition(t, n, number)
	if r := code(t, n, p.Path, "GetSupportedSize", nil, codeFailed); r.Out["SizeMax"] != nil {
		t.Fatalf("sizes with the failure: %v", r.Out)
	}
}

func TestForeignDiskImage(t *testing.T) {
	t.Parallel()
	n := instant(t)
	path := filepath.Join(t.TempDir(), "ext4")
	super := make([]byte, 64*mib)
	super[1080], super[1081] = 0x53, 0xEF // the magic number of ext2 to ext4
	if err := os.WriteFile(path, super, 0o600); err != nil {
		t.Fatal(err)
	}
	number := attach(t, n, DiskSpec{Image: path, Bus: "NVMe"})
	d := one(t, n, "SELECT PartitionStyle, NumberOfPartitions FROM MSFT_Disk WHERE Number = %d", number)
	if d.Props["PartitionStyle"] != uint16(0) {
		t.Fatalf("disk with ext4: %v", d.Props)
	}
	h := open(t, n, `\\.\PhysicalDrive1`, 0x80000000)
	buffer := make([]byte, 4096)
	if count, err := n.ReadAt(context.Background(), h, buffer, 0); err != nil || count != 4096 || buffer[1080] != 0x53 {
		t.Fatalf("%d bytes, %v", count, err)
	}
}

func TestCorruptDisk(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	volume := formatted(t, n, number)
	if err := n.CorruptDisk(context.Background(), number, 16<<20, make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	if v := one(t, n, "SELECT FileSystem FROM MSFT_Volume WHERE Path = '%s'", wqlText(volume)); v.Props["FileSystem"] != "" {
		t.Fatalf("file system without boot sector: %v", v.Props)
	}
}

func TestWriteProtectedMedium(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe", WriteProtected: true})
	code(t, n, diskPath(t, n, number), "SetAttributes", cim.Values{"IsReadOnly": false}, 0)
	if d := one(t, n, "SELECT IsReadOnly FROM MSFT_Disk WHERE Number = %d", number); d.Props["IsReadOnly"] != true {
		t.Fatal("a medium that refuses writes became writable")
	}
}

func TestDiskNumbersAreTheLowestFree(t *testing.T) {
	t.Parallel()
	n := instant(t)
	for want := uint32(1); want <= 3; want++ {
		if got := attach(t, n, DiskSpec{Bus: "NVMe", SizeBytes: 64 * mib}); got != want {
			t.Fatalf("number %d, want %d", got, want)
		}
	}
	if err := n.DetachDisk(context.Background(), 2); err != nil {
		t.Fatal(err)
	}
	if got := attach(t, n, DiskSpec{Bus: "NVMe", SizeBytes: 64 * mib}); got != 2 {
		t.Fatalf("number %d, want 2", got)
	}
	if err := n.DetachDisk(context.Background(), 0); err == nil {
		t.Fatal("the system disk was detached")
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	naa := []byte{0x60, 0x02, 0x24, 0x80}
	for _, c := range []struct {
		name   string
		ids    []DeviceID
		want   string
		format uint16
	}{
		{"NAA before T10", []DeviceID{{CodeSet: 1, Type: 1, ID: []byte("x")}, {CodeSet: 1, Type: 3, ID: naa}}, "60022480", 3},
		{"SCSI name first", []DeviceID{{CodeSet: 1, Type: 3, ID: naa}, {CodeSet: 3, Type: 8, ID: []byte("iqn.x")}}, "iqn.x", 8},
		{"vendor text", []DeviceID{{CodeSet: 2, Type: 0, ID: []byte("vol-1")}}, "vol-1", 0},
		{"port ids do not count", []DeviceID{{CodeSet: 1, Type: 3, Association: 1, ID: naa}}, "INSTANCE:HOST", 0},
		{"none", nil, "INSTANCE:HOST", 0},
	} {
		parsed := parsePage83(buildPage83(c.ids))
		if !reflect.DeepEqual(parsed, c.ids) {
			t.Errorf("%s: parsed %v, want %v", c.name, parsed, c.ids)
		}
		if got, format := uniqueID(parsed, "INSTANCE", "HOST"); got != c.want || format != c.format {
			t.Errorf("%s: %s format %d, want %s %d", c.name, got, format, c.want, c.format)
		}
	}
	for _, damaged := range [][]byte{nil, {1}, make([]byte, 12), buildPage83([]DeviceID{{ID: naa}})[:20]} {
		if ids := parsePage83(damaged); len(ids) > 0 {
			t.Errorf("damaged descriptor gives %v", ids)
		}
	}
	if got := offsetGUID(1 << 24); got != "{00000000-0000-0000-0000-000100000000}" {
		t.Errorf("offset GUID %s", got)
	}
}

func TestLocationForms(t *testing.T) {
	t.Parallel()
	n := instant(t)
	none, own := "", `C:\vhd\x.vhdx`
	for _, c := range []struct {
		spec DiskSpec
		want any
	}{
		{DiskSpec{Bus: "SCSI", Location: &none}, nil},
		{DiskSpec{Bus: "SCSI", Location: &own}, own},
		{DiskSpec{Bus: "SCSI"}, "Integrated : Adapter 1 : Port 0 : Target 0 : LUN 3"},
		{DiskSpec{Bus: "NVMe"}, "PCI Slot 4 : Adapter 17 : Channel 0 : Device 0"},
	} {
		c.spec.SizeBytes = 64 * mib
		number := attach(t, n, c.spec)
		if got := one(t, n, "SELECT Location FROM MSFT_Disk WHERE Number = %d", number).Props["Location"]; got != c.want {
			t.Errorf("location %v, want %v", got, c.want)
		}
	}
	if _, err := n.AttachDisk(context.Background(), DiskSpec{Image: "x", Bus: "warp"}); err == nil {
		t.Error("unknown bus accepted")
	}
}

func TestStorageCodesCoverTheImage(t *testing.T) {
	t.Parallel()
	if storageCode(nil) != 0 || storageCode(image.ErrNoSpace) != codeNoCapacity || storageCode(os.ErrClosed) != codeIOError {
		t.Fatal("wrong codes")
	}
}
