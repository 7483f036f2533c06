package agent_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/image"
)

func TestDiskQueries(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{
		Image: filepath.Join(t.TempDir(), "d"), SizeBytes: 64 * mib, Serial: " SN1 ",
		IDs: []sim.DeviceID{{CodeSet: 2, Type: 0, ID: []byte("vendor  disk1")}},
	})
	l.ok(err)
	l.ok(l.agent.Rescan(l.ctx))
	ids, err := l.agent.ListDiskIDs(l.ctx)
	l.ok(err)
	if ids[number].SerialNumber != "SN1" || !strings.Contains(ids[number].Page83, "disk1") {
		t.Errorf("ids are %+v", ids)
	}
	locations, err := l.agent.ListDiskLocations(l.ctx)
	l.ok(err)
	if _, ok := locations[number]; !ok {
		t.Errorf("locations are %+v", locations)
	}
	stats, err := l.agent.GetDiskStats(l.ctx, number)
	l.ok(err)
	if stats.TotalBytes != 64*mib {
		t.Errorf("size is %d", stats.TotalBytes)
	}
	disks, err := l.agent.ListDisks(l.ctx)
	l.ok(err)
	at := slices.IndexFunc(disks, func(d host.DiskInfo) bool { return d.Number == number })
	if at < 0 || disks[at].Style != host.StyleRaw || disks[at].IDs != ids[number] {
		t.Errorf("disks are %+v", disks)
	}
	for _, err := range []error{
		second(l.agent.GetDiskState(l.ctx, 99)), second(l.agent.GetDiskStats(l.ctx, 99)), l.agent.SetDiskState(l.ctx, 99, true),
		l.agent.PartitionDisk(l.ctx, 99), second(l.agent.ListVolumesOnDisk(l.ctx, 99, 0)), l.agent.SetDiskReadOnly(l.ctx, 99, false),
	} {
		l.want(host.KindNotFound, err)
	}
	l.noHandles()
}

func TestC001_OnlineAndReadOnlyAreTwoThings(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: filepath.Join(t.TempDir(), "d"), SizeBytes: 64 * mib, Bus: "SAS"})
	l.ok(err)
	state := func() host.DiskInfo {
		disks, err := l.agent.ListDisks(l.ctx)
		l.ok(err)
		return disks[slices.IndexFunc(disks, func(d host.DiskInfo) bool { return d.Number == number })]
	}
	if s := state(); !s.Offline || !s.ReadOnly {
		t.Fatalf("a new disk on a shared bus is %+v", s)
	}
	l.ok(l.agent.SetDiskState(l.ctx, number, true))
	l.ok(l.agent.SetDiskState(l.ctx, number, true))
	if s := state(); s.Offline || !s.ReadOnly {
		t.Errorf("after going online: %+v", s)
	}
	l.ok(l.agent.SetDiskReadOnly(l.ctx, number, false))
	l.ok(l.agent.SetDiskReadOnly(l.ctx, number, false))
	if s := state(); s.Offline || s.ReadOnly {
		t.Errorf("after clearing the flag: %+v", s)
	}
	l.ok(l.agent.SetDiskState(l.ctx, number, false))
	if online, err := l.agent.GetDiskState(l.ctx, number); err != nil || online {
		t.Errorf("GetDiskState = %v, %v", online, err)
	}
	l.want(host.KindPrecondition, l.agent.SetDiskState(l.ctx, 0, false))
	l.want(host.KindPrecondition, l.agent.SetDiskReadOnly(l.ctx, 0, true))
}

// C001: a flag that cannot be cleared is no success.
func TestC001_MediumThatRefusesWrites(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{
		Image: filepath.Join(t.TempDir(), "disk"), SizeBytes: 64 * mib, WriteProtected: true,
	})
	l.ok(err)
	l.ok(l.agent.SetDiskState(l.ctx, number, true))
	for range 2 {
		l.want(host.KindPrecondition, l.agent.SetDiskReadOnly(l.ctx, number, false))
	}
}

func TestC003_ReservedPartitionIsNoData(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: filepath.Join(t.TempDir(), "d"), SizeBytes: 64 * mib, Bus: "SAS"})
	l.ok(err)
	l.ok(l.agent.PartitionDisk(l.ctx, number))
	first := l.onlyVolume(number)
	calls := l.calls(func() { l.ok(l.agent.PartitionDisk(l.ctx, number)) })
	if n := count(calls, "cim.Exec"); n != 0 {
		t.Errorf("the repeat made %d changes: %q", n, calls)
	}
	if again := l.onlyVolume(number); again != first {
		t.Errorf("volume %s became %s", first, again)
	}
	disks, err := l.node.Disks(l.ctx)
	l.ok(err)
	if d := disks[number]; d.Partitions != 2 || d.Style != "GPT" || d.Offline || d.ReadOnly {
		t.Errorf("the disk is %+v", d)
	}
}

func TestC003_MBRWithIFSIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mbr")
	for name, kind := range map[string]uint8{"IFS": 0x07, "Linux": 0x83, "LVM": 0x8E, "dynamic": 0x42} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			path := path + name
			makeMBR(t, path, kind)
			before := readFile(t, path)
			number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: path})
			l.ok(err)
			l.ok(l.agent.PartitionDisk(l.ctx, number))
			l.ok(l.node.DetachDisk(l.ctx, number))
			if !bytes.Equal(before, readFile(t, path)) {
				t.Error("the disk's bytes have changed")
			}
		})
	}
}

// makeMBR makes a disk image with one MBR partition and data in it.
func makeMBR(t *testing.T, path string, kind uint8) {
	t.Helper()
	sector := make([]byte, 8*mib)
	copy(sector[440:], "\x01\x02\x03\x04")
	copy(sector[446:], []byte{0, 0, 2, 0, kind, 0xfe, 0xff, 0xff, 0, 8, 0, 0, 0, 0x20, 0, 0})
	sector[510], sector[511] = 0x55, 0xAA
	copy(sector[mib+4096:], "somebody's data")
	if err := os.WriteFile(path, sector, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Invariant 1 for whole disks.
func TestInvariant1_ForeignDisksAreNotPartitioned(t *testing.T) {
	t.Parallel()
	for _, foreign := range foreignData {
		t.Run(foreign.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			path := filepath.Join(t.TempDir(), "disk")
			makeForeign(t, path, foreign)
			before := readFile(t, path)
			number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: path, Bus: "SAS"})
			l.ok(err)
			err = l.agent.PartitionDisk(l.ctx, number)
			l.want(host.KindPrecondition, err)
			if !strings.Contains(err.Error(), foreign.says) {
				t.Errorf("%v does not say %q", err, foreign.says)
			}
			disks, err := l.node.Disks(l.ctx)
			l.ok(err)
			if !disks[number].Offline {
				t.Error("a refused disk was brought online")
			}
			l.ok(l.node.DetachDisk(l.ctx, number))
			if !bytes.Equal(before, readFile(t, path)) {
				t.Error("the disk's bytes have changed")
			}
		})
	}
}

// foreign is data Windows knows nothing of.
type foreign struct {
	name   string
	offset int64 // negative from the end
	bytes  string
	says   string
}

var foreignData = []foreign{
	{"C014 ext4", 1080, "\x53\xef", "ext4"},
	{"C014 XFS", 0, "XFSB", "XFS"},
	{"C014 LUKS", 0, "LUKS\xba\xbe\x00\x02", "LUKS"},
	{"C014 LVM", 512, "LABELONE", "LVM"},
	{"btrfs", 65536 + 64, "_BHRfS_M", "btrfs"},
	{"ZFS", 128 << 10, "\x0c\xb1\xba\x00\x00\x00\x00\x00", "ZFS"},
	{"swap", 4096 - 10, "SWAPSPACE2", "swap"},
	{"RAID at the end", -8192, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00", "RAID"},
	{"VMFS behind the first MiB", mib, "\x0d\xd0\x01\xc0", "VMFS"},
	{"unknown bytes", 777777, "?", "777777"},
}

// makeForeign makes a sparse image of 8 MiB with the data.
func makeForeign(t *testing.T, path string, f foreign) {
	t.Helper()
	img, err := image.Create(path, 8*mib)
	if err != nil {
		t.Fatal(err)
	}
	offset := f.offset
	if offset < 0 {
		offset += 8 * mib
	}
	if _, err := img.WriteAt([]byte(f.bytes), offset); err != nil {
		t.Fatal(err)
	}
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSystemDiskIsNotPartitioned(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	before, err := l.node.Disks(l.ctx)
	l.ok(err)
	_ = l.agent.PartitionDisk(l.ctx, 0) // a success without effect, or a refusal
	after, err := l.node.Disks(l.ctx)
	l.ok(err)
	if before[0].Partitions != after[0].Partitions {
		t.Errorf("the system disk was partitioned: %+v", after[0])
	}
}

func TestC006_ListDiskIDsWithABadDisk(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	bad, good := l.disk(8*mib), l.disk(8*mib)
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.DeviceIoControl*", Object: "*PhysicalDrive1*", Count: -1, Win32: 1117}))
	for range 1000 {
		ids, err := l.agent.ListDiskIDs(l.ctx)
		l.ok(err)
		if _, ok := ids[good]; !ok {
			t.Fatalf("disk %d hides disk %d: %v", bad, good, ids)
		}
	}
	l.noHandles()
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A run was cut off after the table was made, and the node restarted: the SAN
// policy has taken the disk offline again.
func TestInvariant4_TableOnlyOfflineAndReadOnly(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	number := l.disk(64 * mib)
	l.ok(l.os.SetDiskOnline(l.ctx, number, true))
	l.ok(l.os.InitializeDisk(l.ctx, number))
	l.ok(l.os.SetDiskReadOnly(l.ctx, number, true))
	l.ok(l.os.SetDiskOnline(l.ctx, number, false))
	l.ok(l.agent.PartitionDisk(l.ctx, number))
	l.onlyVolume(number)
}

func TestC009_OfflineAfterTheLastUnmount(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	number := l.disk(64 * mib)
	l.ok(l.agent.PartitionDisk(l.ctx, number))
	id := l.onlyVolume(number)
	l.ok(l.agent.FormatVolume(l.ctx, id))
	for range 2 {
		l.ok(l.agent.MountVolume(l.ctx, id, root+`\m`))
		l.write(root+`\m\file`, "kept")
		l.ok(l.agent.UnmountVolume(l.ctx, id, root+`\m`))
		l.ok(l.agent.SetDiskState(l.ctx, number, false))
		l.want(host.KindNotFound, l.agent.MountVolume(l.ctx, id, root+`\m`))
		l.ok(l.agent.SetDiskState(l.ctx, number, true))
	}
	l.ok(l.agent.MountVolume(l.ctx, id, root+`\m`))
	l.holds(root+`\m\file`, "kept")
}

func TestC010_CopyOfADisk(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dir := t.TempDir()
	first, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: filepath.Join(dir, "first"), SizeBytes: 64 * mib})
	l.ok(err)
	l.ok(l.agent.PartitionDisk(l.ctx, first))
	id := l.onlyVolume(first)
	l.ok(l.agent.FormatVolume(l.ctx, id))
	l.ok(l.agent.WriteVolumeCache(l.ctx, id))
	writeFile(t, filepath.Join(dir, "copy"), readFile(t, filepath.Join(dir, "first")))
	second, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: filepath.Join(dir, "copy")})
	l.ok(err)
	l.ok(l.agent.SetDiskState(l.ctx, second, true))
	l.ok(l.agent.SetDiskReadOnly(l.ctx, second, false))
	copied := l.onlyVolume(second)
	if strings.EqualFold(copied, id) {
		t.Errorf("both volumes are %s", id)
	}
	l.ok(l.agent.MountVolume(l.ctx, id, root+`\first`))
	l.ok(l.agent.MountVolume(l.ctx, copied, root+`\copy`))
	l.write(root+`\copy\file`, "x")
	l.exists(root+`\first\file`, false)
}

// A run that was cut off while Windows wrote the table leaves parts of it; they
// are nobody's data. Parts of a table with a partition in it are.
func TestInvariant4_TornTable(t *testing.T) {
	t.Parallel()
	const basicData = "\xa2\xa0\xd0\xeb\xe5\xb9\x33\x44\x87\xc0\x68\xb6\xb7\x26\x99\xc7"
	for name, tc := range map[string]struct {
		bytes map[int]string
		kind  host.Kind
		empty bool
	}{
		"header without checksum": {map[int]string{512: "EFI PART\x00\x00\x01\x00"}, 0, true},
		"copy without checksum":   {map[int]string{64*mib - 512: "EFI PART\x00\x00\x01\x00"}, 0, true},
		"lost header, partition":  {map[int]string{1024: basicData + "id", 64*mib - 512: "EFI PART\x00"}, host.KindPrecondition, false},
		"lost primary, partition in the copy": {
			map[int]string{64*mib - 512: "EFI PART\x00", 64*mib - 512 - 16384: basicData + "id"}, host.KindPrecondition, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			path := filepath.Join(t.TempDir(), "disk")
			img, err := image.Create(path, 64*mib)
			l.ok(err)
			for offset, data := range tc.bytes {
				_, err := img.WriteAt([]byte(data), int64(offset))
				l.ok(err)
			}
			l.ok(img.Close())
			number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: path})
			l.ok(err)
			err = l.agent.PartitionDisk(l.ctx, number)
			if tc.empty {
				l.ok(err)
				l.onlyVolume(number)
			} else {
				l.want(tc.kind, err)
			}
		})
	}
}
