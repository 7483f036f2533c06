package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

var le = binary.LittleEndian

// control sends a code and returns what came back and the system error number.
func control(n *Node, h win32.Handle, code uint32, in []byte, size int) ([]byte, uint32) {
	out := make([]byte, size)
	count, err := n.DeviceIoControl(context.Background(), h, code, in, out)
	return out[:count], win32Code(err)
}

const readWrite = uint32(win32.GenericRead | win32.GenericWrite)

func TestOpenDevices(t *testing.T) {
	t.Parallel()
	n := instant(t)
	volume := n.state.SystemVolumes["C"]
	both := uint32(win32.ShareRead | win32.ShareWrite)
	for _, c := range []struct {
		path string
		open win32.Open
		want uint32
	}{
		{`\\.\PhysicalDrive0`, win32.Open{}, 0},
		{`\\.\physicaldrive0`, win32.Open{Access: readWrite, Share: both}, 0},
		{`\\?\PhysicalDrive0`, win32.Open{}, 0},
		{`\\.\PhysicalDrive9`, win32.Open{}, win32.ErrFileNotFound},
		{`\\.\PhysicalDrive`, win32.Open{}, win32.ErrFileNotFound},
		{`\\.\PhysicalDrivex`, win32.Open{}, win32.ErrFileNotFound},
		{`\\.\PhysicalDrive4294967296`, win32.Open{}, win32.ErrFileNotFound},
		{`\\.\PhysicalDrive0`, win32.Open{Access: readWrite}, win32.ErrSharingViolation},
		{`\\.\PhysicalDrive0`, win32.Open{Create: true}, win32.ErrInvalidParameter},
		{volume[:len(volume)-1], win32.Open{Access: readWrite, Share: both}, 0},
		{`\\.\C:`, win32.Open{}, 0},
		{`\\.\X:`, win32.Open{}, win32.ErrFileNotFound},
		{`\\?\Volume{00000000-0000-0000-0000-000000000000}`, win32.Open{}, win32.ErrFileNotFound},
	} {
		h, err := n.CreateFile(context.Background(), c.path, c.open)
		if got := win32Code(err); got != c.want {
			t.Errorf("%s %+v: Windows error %d, want %d", c.path, c.open, got, c.want)
		}
		if err == nil {
			if err := n.CloseHandle(h); err != nil {
				t.Error(err)
			}
		}
	}
	if count, _ := n.HandleCount(context.Background()); count != 0 {
		t.Errorf("%d handles left", count)
	}
	if err := n.CloseHandle(4711); win32Code(err) != win32.ErrInvalidHandle {
		t.Errorf("close of no handle: %v", err)
	}
}

func TestQueryProperty(t *testing.T) {
	t.Parallel()
	n := instant(t)
	ids := []DeviceID{{CodeSet: 1, Type: 3, ID: []byte{0x60, 1, 2, 3, 4, 5, 6, 7}}, {CodeSet: 2, Type: 1, Association: 1, ID: []byte("port")}}
	attach(t, n, DiskSpec{Bus: "NVMe", Serial: " vol-0123 ", SizeBytes: 64 * mib, IDs: ids})
	attach(t, n, DiskSpec{Bus: "NVMe", SizeBytes: 64 * mib})
	h := open(t, n, `\\.\PhysicalDrive1`, win32.AccessNone)
	property := func(id, kind uint32) []byte {
		return le.AppendUint32(le.AppendUint32(nil, id), kind)
	}
	full, code := control(n, h, win32.IoctlStorageQueryProperty, property(win32.StorageDeviceProperty, 0), 512)
	if code != 0 || le.Uint32(full[4:]) != uint32(len(full)) || le.Uint32(full[28:]) != 17 {
		t.Fatalf("device descriptor %x, error %d", full, code)
	}
	serial := full[le.Uint32(full[24:]):]
	if string(serial[:10]) != " vol-0123 " || serial[10] != 0 {
		t.Errorf("serial %q", serial)
	}
	if head, code := control(n, h, win32.IoctlStorageQueryProperty, property(win32.StorageDeviceProperty, 0), 8); code != 0 || le.Uint32(head[4:]) != uint32(len(full)) {
		t.Errorf("header %x, error %d", head, code)
	}
	if _, code := control(n, h, win32.IoctlStorageQueryProperty, property(win32.StorageDeviceProperty, 0), 4); code != win32.ErrInsufficientBuffer {
		t.Errorf("buffer below a header: %d", code)
	}
	page, code := control(n, h, win32.IoctlStorageQueryProperty, property(win32.StorageDeviceIDProperty, 0), 512)
	if code != 0 || le.Uint32(page[8:]) != 2 || page[28] != 0x60 {
		t.Errorf("identifiers %x, error %d", page, code)
	}
	for _, c := range []struct {
		in   []byte
		want uint32
	}{
		{nil, win32.ErrInvalidParameter},
		{property(win32.StorageAdapterProperty, 0), 0},
		{property(win32.StorageAdapterProperty, 1), 0},
		{property(win32.StorageAdapterProperty, 9), win32.ErrNotSupported},
		{property(4711, 0), win32.ErrNotSupported},
	} {
		if _, got := control(n, h, win32.IoctlStorageQueryProperty, c.in, 64); got != c.want {
			t.Errorf("query %x: %d, want %d", c.in, got, c.want)
		}
	}
	bare := open(t, n, `\\.\PhysicalDrive2`, win32.AccessNone)
	if _, code := control(n, bare, win32.IoctlStorageQueryProperty, property(win32.StorageDeviceIDProperty, 0), 64); code != win32.ErrInvalidFunction {
		t.Errorf("disk without identifiers: %d", code)
	}
}

func TestDiskIoctls(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "SAS"})
	none := open(t, n, `\\.\PhysicalDrive1`, win32.AccessNone)
	full := open(t, n, `\\.\PhysicalDrive1`, readWrite)
	if b, code := control(n, none, win32.IoctlStorageGetDeviceNumber, nil, 12); code != 0 || le.Uint32(b) != 7 || le.Uint32(b[4:]) != number || le.Uint32(b[8:]) != 0 {
		t.Errorf("device number %x, %d", b, code)
	}
	if _, code := control(n, none, win32.IoctlStorageGetDeviceNumber, nil, 11); code != win32.ErrInsufficientBuffer {
		t.Errorf("small buffer: %d", code)
	}
	if b, code := control(n, none, win32.IoctlScsiGetAddress, nil, 8); code != 0 || b[0] != 8 || b[7] != 1 {
		t.Errorf("address %x, %d", b, code)
	}
	if _, code := control(n, none, win32.IoctlDiskGetLengthInfo, nil, 8); code != win32.ErrAccessDenied {
		t.Errorf("length without read access: %d", code)
	}
	if b, code := control(n, full, win32.IoctlDiskGetLengthInfo, nil, 8); code != 0 || le.Uint64(b) != uint64(5*gib) {
		t.Errorf("length %x, %d", b, code)
	}
	if b, code := control(n, none, ioctlDiskGetGeometryEx, nil, 40); code != 0 || le.Uint64(b[24:]) != uint64(5*gib) || le.Uint32(b[20:]) != 512 {
		t.Errorf("geometry %x, %d", b, code)
	}
	if _, code := control(n, none, win32.IoctlDiskIsWritable, nil, 0); code != win32.ErrWriteProtect {
		t.Errorf("writable: %d", code)
	}
	if b, code := control(n, none, win32.IoctlDiskGetDriveLayoutEx, nil, 48); code != 0 || le.Uint32(b) != win32StyleRAW {
		t.Errorf("layout of a raw disk %x, %d", b, code)
	}
	if _, code := control(n, none, 0xDEADBEEC, nil, 0); code != win32.ErrInvalidFunction {
		t.Errorf("unknown code: %d", code)
	}
}

func TestC001_DiskAttributes(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "SAS"})
	full := open(t, n, `\\.\PhysicalDrive1`, readWrite)
	attributes := func() uint64 {
		b, code := control(n, full, win32.IoctlDiskGetDiskAttributes, nil, 16)
		if code != 0 || le.Uint32(b) != 16 {
			t.Fatalf("attributes %x, %d", b, code)
		}
		return le.Uint64(b[8:])
	}
	set := func(persist byte, bits, mask uint64) []byte {
		b := make([]byte, 40)
		le.PutUint32(b, 40)
		b[4] = persist
		le.PutUint64(b[8:], bits)
		le.PutUint64(b[16:], mask)
		return b
	}
	if attributes() != 3 {
		t.Fatalf("fresh: %d", attributes())
	}
	if _, code := control(n, full, win32.IoctlDiskSetDiskAttributes, set(0, 0, 3), 0); code != 0 || attributes() != 0 {
		t.Fatalf("cleared: %d, error %d", attributes(), code)
	}
	if d := one(t, n, "SELECT IsOffline, IsReadOnly FROM MSFT_Disk WHERE Number = %d", number); d.Props["IsOffline"] != false || d.Props["IsReadOnly"] != false {
		t.Fatal(d.Props)
	}
	for _, bad := range [][]byte{nil, make([]byte, 40), set(0, 4, 4)} {
		if _, code := control(n, full, win32.IoctlDiskSetDiskAttributes, bad, 0); code != win32.ErrInvalidParameter {
			t.Errorf("%x: %d", bad, code)
		}
	}
	cutAndBoot(t, n)
	full = open(t, n, `\\.\PhysicalDrive1`, readWrite)
	if attributes() != 3 {
		t.Errorf("flags set without Persist survive a reboot: %d", attributes())
	}
	control(n, full, win32.IoctlDiskSetDiskAttributes, set(1, 0, 3), 0)
	cutAndBoot(t, n)
	full = open(t, n, `\\.\PhysicalDrive1`, readWrite)
	if attributes() != 0 {
		t.Errorf("flags set with Persist are lost: %d", attributes())
	}
	system := open(t, n, `\\.\PhysicalDrive0`, readWrite)
	if _, code := control(n, system, win32.IoctlDiskSetDiskAttributes, set(0, 1, 1), 0); code != win32.ErrAccessDenied {
		t.Errorf("system disk offline: %d", code)
	}
}

func TestDriveLayout(t *testing.T) {
	t.Parallel()
	n := instant(t)
	gpt, mbr := attach(t, n, DiskSpec{Bus: "NVMe"}), attach(t, n, DiskSpec{Bus: "NVMe"})
	formatted(t, n, gpt)
	code(t, n, diskPath(t, n, mbr), "Initialize", cim.Values{"PartitionStyle": uint16(1)}, 0)
	code(t, n, diskPath(t, n, mbr), "CreatePartition", cim.Values{"UseMaximumSize": true, "MbrType": uint16(7)}, 0)

	h := open(t, n, `\\.\PhysicalDrive1`, win32.AccessNone)
	if _, code := control(n, h, win32.IoctlDiskGetDriveLayoutEx, nil, 48+144); code != win32.ErrInsufficientBuffer {
		t.Errorf("one entry too few: %d", code)
	}
	b, failure := control(n, h, win32.IoctlDiskGetDriveLayoutEx, nil, 4096)
	if failure != 0 || len(b) != 48+2*144 || le.Uint32(b) != win32StyleGPT || le.Uint32(b[4:]) != 2 {
		t.Fatalf("GPT layout %d bytes, %d", len(b), failure)
	}
	data := b[48+144:]
	if le.Uint64(data[8:]) != 16<<20 || le.Uint32(data[24:]) != 2 || le.Uint32(data[32:]) != 0xebd0a0a2 {
		t.Errorf("data partition %x", data[:64])
	}
	h = open(t, n, `\\.\PhysicalDrive2`, win32.AccessNone)
	b, failure = control(n, h, win32.IoctlDiskGetDriveLayoutEx, nil, 4096)
	if failure != 0 || le.Uint32(b) != win32StyleMBR || le.Uint32(b[4:]) != 4 || b[48+32] != 7 || b[48+144+32] != 0 {
		t.Fatalf("MBR layout %d bytes, %d entries, %d", len(b), le.Uint32(b[4:]), failure)
	}
}

func TestVolumeIoctls(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	volume := formatted(t, n, number)
	h := open(t, n, volume[:len(volume)-1], readWrite)
	if b, code := control(n, h, win32.IoctlStorageGetDeviceNumber, nil, 12); code != 0 || le.Uint32(b[4:]) != number || le.Uint32(b[8:]) != 2 {
		t.Errorf("device number %x, %d", b, code)
	}
	if b, code := control(n, h, win32.IoctlVolumeGetDiskExtents, nil, 32); code != 0 || le.Uint32(b) != 1 || le.Uint32(b[8:]) != number || le.Uint64(b[16:]) != 16<<20 {
		t.Errorf("extents %x, %d", b, code)
	}
	if b, code := control(n, h, win32.FsctlGetNtfsVolumeData, nil, 96); code != 0 || le.Uint32(b[44:]) != 4096 || le.Uint64(b[16:]) == 0 {
		t.Errorf("NTFS data %x, %d", b, code)
	}
	if b, code := control(n, h, ioctlVolumeGetGPTAttr, nil, 8); code != 0 || len(b) != 8 {
		t.Errorf("attributes %x, %d", b, code)
	}
	if _, code := control(n, h, win32.FsctlIsVolumeMounted, nil, 0); code != 0 {
		t.Errorf("mounted: %d", code)
	}
	if _, code := control(n, h, fsctlLockVolume, nil, 0); code != 0 {
		t.Errorf("lock: %d", code)
	}
	folder := open(t, n, volume, win32.FileListDir)
	if _, code := control(n, h, fsctlLockVolume, nil, 0); code != win32.ErrAccessDenied {
		t.Errorf("lock with a folder open: %d", code)
	}
	if b, code := control(n, folder, win32.FsctlGetNtfsVolumeData, nil, 96); code != 0 || len(b) != 96 {
		t.Errorf("NTFS data through a folder: %d", code)
	}
	if _, code := control(n, folder, win32.IoctlVolumeGetDiskExtents, nil, 32); code != win32.ErrInvalidFunction {
		t.Errorf("extents of a folder: %d", code)
	}
	if _, code := control(n, folder, win32.FsctlGetReparsePoint, nil, 64); code != win32.ErrNotAReparsePoint {
		t.Errorf("reparse point of a folder: %d", code)
	}
	disk := open(t, n, `\\.\PhysicalDrive1`, readWrite)
	for _, volumeOnly := range []uint32{win32.IoctlVolumeGetDiskExtents, win32.FsctlGetNtfsVolumeData, fsctlLockVolume, fsctlDismountVolume} {
		if _, code := control(n, disk, volumeOnly, nil, 96); code != win32.ErrInvalidFunction {
			t.Errorf("0x%X on a disk: %d", volumeOnly, code)
		}
	}
	mustWrite(t, n, volume+"f", "x")
	if _, code := control(n, h, fsctlDismountVolume, nil, 0); code != 0 {
		t.Errorf("dismount: %d", code)
	}
	if err := n.PowerCut(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := n.Boot(context.Background()); err != nil {
		t.Fatal(err)
	}
	if content(n, volume+"f") != "x" {
		t.Error("a dismount does not write what is cached")
	}
}

func TestHandlesOfAGoneDevice(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	volume := formatted(t, n, number)
	disk, vol := open(t, n, `\\.\PhysicalDrive1`, readWrite), open(t, n, volume[:len(volume)-1], readWrite)
	code(t, n, diskPath(t, n, number), "Offline", nil, 0)
	if _, err := n.ReadAt(context.Background(), vol, make([]byte, 512), 0); win32Code(err) != win32.ErrDevNotConnected {
		t.Errorf("volume of an offline disk: %v", err)
	}
	if _, err := n.ReadAt(context.Background(), disk, make([]byte, 512), 0); err != nil {
		t.Errorf("an offline disk can be read: %v", err)
	}
	if err := n.DetachDisk(context.Background(), number); err != nil {
		t.Fatal(err)
	}
	if err := n.FlushFileBuffers(context.Background(), disk); win32Code(err) != win32.ErrDevNotConnected {
		t.Errorf("flush of a gone disk: %v", err)
	}
	if count, _ := n.HandleCount(context.Background()); count != 2 {
		t.Errorf("%d handles, want 2: they are the caller's to close", count)
	}
}

func TestReadDevice(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe", SizeBytes: 64 * mib})
	volume := formatted(t, n, number)
	disk, vol := open(t, n, `\\.\PhysicalDrive1`, win32.GenericRead), open(t, n, volume[:len(volume)-1], win32.GenericRead)
	blind := open(t, n, `\\.\PhysicalDrive1`, win32.AccessNone)
	for _, c := range []struct {
		name   string
		h      win32.Handle
		size   int
		offset int64
		count  int
		want   uint32
	}{
		{"start", disk, 4096, 0, 4096, 0},
		{"no access", blind, 512, 0, 0, win32.ErrAccessDenied},
		{"unaligned offset", disk, 512, 1, 0, win32.ErrInvalidParameter},
		{"unaligned length", disk, 100, 0, 0, win32.ErrInvalidParameter},
		{"negative", disk, 512, -512, 0, win32.ErrInvalidParameter},
		{"across the end", disk, 4096, 64*mib - 512, 512, 0},
		{"beyond the end", disk, 512, 64 * mib, 0, errSectorNotFound},
		{"beyond the volume", vol, 512, 64 * mib, 0, win32.ErrHandleEOF},
	} {
		count, err := n.ReadAt(context.Background(), c.h, make([]byte, c.size), c.offset)
		if count != c.count || win32Code(err) != c.want {
			t.Errorf("%s: %d bytes, %v", c.name, count, err)
		}
	}
	boot := make([]byte, 512)
	if _, err := n.ReadAt(context.Background(), vol, boot, 0); err != nil || string(boot[3:7]) != "NTFS" {
		t.Errorf("boot sector %q, %v", boot[:11], err)
	}
	var e *win32.Error
	if err := n.FlushFileBuffers(context.Background(), vol); !errors.As(err, &e) || e.Code != win32.ErrAccessDenied {
		t.Errorf("flush without write access: %v", err)
	}
}
