package standin

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

const shareAll = win32.ShareRead | win32.ShareWrite | win32.ShareDelete

// A disk from its arrival to a file read through a mount point, over the link.
func TestLifeOfADisk(t *testing.T) {
	t.Parallel()
	l := open(t)
	c := l.dial()
	ctx := t.Context()
	number := l.attach(sim.DiskSpec{Bus: "SAS", Serial: "S1"})
	disk := l.one(c, fmt.Sprintf("SELECT * FROM MSFT_Disk WHERE Number=%d", number))
	if disk.Class != "MSFT_Disk" || disk.Path == "" || disk.Props["IsOffline"] != true || disk.Props["Size"] != uint64(5*gib) ||
		disk.Props["Guid"] != nil || !reflect.DeepEqual(disk.Props["OperationalStatus"], []uint16{0xD013}) {
		t.Errorf("disk %+v", disk)
	}
	l.exec(c, disk.Path, "Initialize", cim.Values{"PartitionStyle": uint16(2)})
	made, _ := l.exec(c, disk.Path, "CreatePartition", cim.Values{"UseMaximumSize": true})["CreatedPartition"].(cim.Instance)
	if made.Class != "MSFT_Partition" || made.Props["DiskNumber"] != number || made.Props["DriveLetter"] != uint16(0) {
		t.Fatalf("created partition %+v", made)
	}
	volumes, err := c.FindVolumes(ctx)
	l.ok(err)
	name := volumes[slices.IndexFunc(volumes, func(v string) bool { return strings.Contains(v, fmt.Sprint(made.Props["Guid"])) })]
	_, err = c.VolumeInformation(ctx, name)
	l.code(err, win32.ErrUnrecognizedVolume)
	volume := l.one(c, `SELECT * FROM MSFT_Volume WHERE UniqueId='`+strings.ReplaceAll(name, `\`, `\\`)+`'`)
	l.exec(c, volume.Path, "Format", cim.Values{"FileSystem": "NTFS", "FileSystemLabel": "data"})
	info, err := c.VolumeInformation(ctx, name)
	l.ok(err)
	if info.FileSystem != "NTFS" || info.Label != "data" || info.Serial == 0 {
		t.Errorf("volume %+v", info)
	}
	total, free, err := c.DiskFreeSpace(ctx, name)
	l.ok(err)
	if total < uint64(4*gib) || free == 0 || free > total {
		t.Errorf("%d of %d bytes free", free, total)
	}
	l.ok(c.CreateDirectory(ctx, `C:\mnt`))
	l.ok(c.CreateDirectory(ctx, `C:\mnt\d\`))
	l.code(c.CreateDirectory(ctx, `C:\mnt\d`), win32.ErrAlreadyExists)
	l.ok(c.SetVolumeMountPoint(ctx, `C:\mnt\d\`, name))
	paths, err := c.VolumePathNames(ctx, name)
	l.ok(err)
	if !slices.Equal(paths, []string{`C:\mnt\d\`}) {
		t.Errorf("mounted at %q", paths)
	}
	l.ok(l.node.WriteFile(ctx, `C:\mnt\d\file`, []byte("content")))
	if a, err := c.FileAttributes(ctx, `C:\mnt\d\file`); err != nil || a&win32.AttrDirectory != 0 {
		t.Errorf("attributes %#x, %v", a, err)
	}
	l.file(c, name, "file", "content")
	l.device(c, name, number)
	l.ok(c.DeleteVolumeMountPoint(ctx, `C:\mnt\d\`))
	if _, err := c.FileAttributes(ctx, `C:\mnt\d\file`); err == nil {
		t.Error("the file is there without the mount point")
	}
	if s := l.server.Stats(); s.Handles != 0 || s.Calls["Query"] != 2 || s.Calls["Exec"] != 3 || s.Failed["VolumeInformation"] != 1 {
		t.Errorf("stats %+v", s)
	}
}

// file reads a file through all the calls on files.
func (l *link) file(c *Client, folder, name, want string) {
	l.Helper()
	ctx := l.Context()
	root, err := c.CreateFile(ctx, folder, win32.Open{Access: win32.FileListDir, Share: shareAll, Directory: true})
	l.ok(err)
	names, err := c.ReadDir(ctx, root)
	l.ok(err)
	if !slices.Contains(names, name) {
		l.Errorf("%s holds %q", folder, names)
	}
	h, err := c.OpenAt(ctx, root, name, win32.Open{Access: win32.GenericRead, Share: shareAll})
	l.ok(err)
	info, err := c.Info(ctx, h)
	l.ok(err)
	if info.SizeBytes != int64(len(want)) || info.FileID == [16]byte{} || info.VolumeSerial == 0 {
		l.Errorf("info %+v", info)
	}
	final, err := c.FinalPath(ctx, h)
	l.ok(err)
	if !strings.HasSuffix(final, name) || !strings.HasPrefix(final, `\\?\`) {
		l.Errorf("final path %q", final)
	}
	buffer := make([]byte, 100)
	n, err := c.ReadAt(ctx, h, buffer, 2)
	l.ok(err)
	if got := string(buffer[:n]); got != want[2:] {
		l.Errorf("read %q", got)
	}
	l.ok(c.CloseHandle(h))
	l.code(c.CloseHandle(h), win32.ErrInvalidHandle)
	l.ok(c.CloseHandle(root))
}

// device sends controls to a volume's and a disk's device.
func (l *link) device(c *Client, volume string, number uint32) {
	l.Helper()
	ctx := l.Context()
	h, err := c.CreateFile(ctx, strings.TrimSuffix(volume, `\`), win32.Open{Access: win32.GenericRead | win32.GenericWrite, Share: shareAll})
	l.ok(err)
	extents := make([]byte, 32)
	n, err := c.DeviceIoControl(ctx, h, win32.IoctlVolumeGetDiskExtents, nil, extents)
	l.ok(err)
	if n != 32 || binary.LittleEndian.Uint32(extents[8:]) != number {
		l.Errorf("extents %x", extents[:n])
	}
	l.ok(c.FlushFileBuffers(ctx, h))
	l.ok(c.CloseHandle(h))
	h, err = c.CreateFile(ctx, fmt.Sprintf(`\\.\PhysicalDrive%d`, number), win32.Open{Access: win32.GenericRead, Share: shareAll})
	l.ok(err)
	small := make([]byte, 52)
	n, err = c.DeviceIoControl(ctx, h, win32.IoctlDiskGetDriveLayoutEx, nil, small)
	l.code(err, win32.ErrInsufficientBuffer)
	sector := make([]byte, 512)
	if read, err := c.ReadAt(ctx, h, sector, 0); err != nil || read != 512 || sector[510] != 0x55 || sector[511] != 0xAA {
		l.Errorf("first sector: %d bytes, %v", read, err)
	}
	l.ok(c.CloseHandle(h))
	if n > len(small) {
		l.Errorf("%d bytes in a buffer of %d", n, len(small))
	}
}

func TestDeleteAndReparsePoints(t *testing.T) {
	t.Parallel()
	l := open(t)
	c := l.dial()
	ctx := t.Context()
	h, err := c.CreateFile(ctx, `C:\new`, win32.Open{Access: win32.AccessDelete, Share: shareAll, Create: true})
	l.ok(err)
	l.ok(c.Delete(ctx, h))
	l.ok(c.CloseHandle(h))
	_, err = c.FileAttributes(ctx, `C:\new`)
	l.code(err, win32.ErrFileNotFound)
	l.ok(l.node.MakeDir(ctx, `C:\target`))
	l.ok(l.node.MakeLink(ctx, `C:\link`, `C:\target`))
	h, err = c.CreateFile(ctx, `C:\link`, win32.Open{Access: win32.FileReadAttr, Share: shareAll})
	l.ok(err)
	info, err := c.Info(ctx, h)
	l.ok(err)
	if info.ReparseTag != win32.TagSymlink {
		t.Errorf("info %+v", info)
	}
	buffer := make([]byte, win32.ReparseBufferMaxBytes)
	n, err := c.DeviceIoControl(ctx, h, win32.FsctlGetReparsePoint, nil, buffer)
	l.ok(err)
	if n < 20 || binary.LittleEndian.Uint32(buffer) != win32.TagSymlink {
		t.Errorf("reparse buffer %x", buffer[:n])
	}
	n, err = c.DeviceIoControl(ctx, h, win32.FsctlGetReparsePoint, nil, buffer[:24])
	l.code(err, win32.ErrMoreData)
	if n != 24 || binary.LittleEndian.Uint32(buffer) != win32.TagSymlink {
		t.Errorf("short reparse buffer %x", buffer[:n])
	}
	l.ok(c.CloseHandle(h))
}
