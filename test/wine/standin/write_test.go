package standin

import (
	"bytes"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// Raw writes reach the medium, and nothing else does.
func TestWriteAt(t *testing.T) {
	l := open(t)
	c := l.dial()
	number := l.attach(sim.DiskSpec{})
	const both = win32.ShareRead | win32.ShareWrite
	h, err := c.CreateFile(t.Context(), `\\.\PhysicalDrive1`, win32.Open{Access: win32.GenericRead | win32.GenericWrite, Share: both})
	l.ok(err)
	if number != 1 {
		t.Fatalf("disk %d", number)
	}
	control := func(in []byte) {
		t.Helper()
		_, err := c.DeviceIoControl(t.Context(), h, win32.IoctlDiskSetDiskAttributes, in, nil)
		l.ok(err)
	}
	const attributes = win32.DiskAttributeOffline | win32.DiskAttributeReadOnly
	control(setAttributes(0, attributes)) // a new disk of this bus is neither online nor writable
	data := bytes.Repeat([]byte("written "), 128)
	l.ok(c.WriteAt(t.Context(), h, data, 4*gib))
	got := make([]byte, len(data))
	if n, err := c.ReadAt(t.Context(), h, got, 4*gib); err != nil || n != len(got) || !bytes.Equal(got, data) {
		t.Errorf("read back %d bytes %q, %v", n, got[:16], err)
	}
	for _, bad := range []struct {
		offset int64
		data   []byte
		code   uint32
	}{
		{-512, data, win32.ErrInvalidParameter}, {100, data, win32.ErrInvalidParameter}, {0, data[:100], win32.ErrInvalidParameter},
		{5 * gib, data, errSectorNotFound}, {5*gib - 512, data, errSectorNotFound}, {1 << 50, data, errSectorNotFound},
	} {
		wantCode(t, c.WriteAt(t.Context(), h, bad.data, bad.offset), bad.code)
	}
	control(setAttributes(win32.DiskAttributeReadOnly, attributes))
	wantCode(t, c.WriteAt(t.Context(), h, data, 0), win32.ErrWriteProtect)

	volumes, err := c.FindVolumes(t.Context())
	l.ok(err)
	path := volumes[0]
	v, err := c.CreateFile(t.Context(), path[:len(path)-1], win32.Open{Access: win32.GenericWrite, Share: both})
	l.ok(err)
	wantCode(t, c.WriteAt(t.Context(), v, data, 0), win32.ErrNotSupported)
	wantCode(t, c.WriteAt(t.Context(), 99, data, 0), win32.ErrInvalidHandle)
}

func wantCode(t *testing.T, err error, code uint32) {
	t.Helper()
	if got := win32Status(err); got != code {
		t.Errorf("error %v, want Windows error %d", err, code)
	}
}

// setAttributes is SET_DISK_ATTRIBUTES.
func setAttributes(attributes, mask byte) []byte {
	b := make([]byte, 40)
	b[0], b[8], b[16] = byte(len(b)), attributes, mask
	return b
}

// A virtual disk grows, attached or not.
func TestResizeDisk(t *testing.T) {
	l := open(t)
	c := l.dial()
	id, err := c.CreateDisk(t.Context(), uint64(gib), `C:\grown.vhdx`)
	l.ok(err)
	l.ok(c.ResizeDisk(t.Context(), id, uint64(2*gib)))
	number, err := c.AttachDisk(t.Context(), id)
	l.ok(err)
	size := func() int64 {
		t.Helper()
		disks, err := l.node.Disks(t.Context())
		l.ok(err)
		for _, d := range disks {
			if d.Number == number {
				return d.SizeBytes
			}
		}
		t.Fatalf("disk %d is not there", number)
		return 0
	}
	if got := size(); got != 2*gib {
		t.Errorf("%d bytes after growing detached", got)
	}
	l.ok(c.ResizeDisk(t.Context(), id, uint64(3*gib)))
	l.ok(c.DetachDisk(t.Context(), id))
	if number, err = c.AttachDisk(t.Context(), id); err != nil || size() != 3*gib {
		t.Errorf("%d bytes after growing attached, %v", size(), err)
	}
	wantCode(t, c.ResizeDisk(t.Context(), id, uint64(gib)), win32.ErrInvalidParameter)
	wantCode(t, c.ResizeDisk(t.Context(), id, uint64(4*gib+1)), win32.ErrInvalidParameter)
	wantCode(t, c.ResizeDisk(t.Context(), id+1, uint64(4*gib)), win32.ErrInvalidHandle)
}
