package standin

import (
	"context"
	"encoding/binary"
	"os"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// What a scratch disk needs beyond win32.API, which only reads.
const (
	// OpWriteAt: u64 disk, u64 offset, bytes.
	OpWriteAt Op = 35
	// OpResizeDisk: u64 bytes, u64 id. A virtual disk only grows.
	OpResizeDisk Op = 86
)

// sectorBytes is the unit of raw writes.
const sectorBytes = 512

func writeOperations() map[Op]operation {
	return map[Op]operation{
		OpWriteAt:    {"WriteAt", false, runWriteAt},
		OpResizeDisk: {"ResizeDisk", false, runResizeDisk},
	}
}

// runWriteAt is WriteFile on the handle of a whole disk; a volume is none of its
// business. The right to write is the driver's to check. Windows sees a partition
// table that was written when it looks at the disk again; here it does at once.
func runWriteAt(c *call) error {
	id, offset, data := c.in.u64(), int64(c.in.u64()), c.in.bytes()
	h, err := c.readHandle(id)
	if err != nil {
		return err
	}
	number, sizeBytes, err := h.disk(c.ctx)
	if err != nil {
		return err
	}
	switch {
	case offset < 0, offset%sectorBytes != 0, len(data)%sectorBytes != 0:
		return &win32.Error{Call: "WriteFile", Code: win32.ErrInvalidParameter}
	case int64(len(data)) > sizeBytes-min(offset, sizeBytes):
		return &win32.Error{Call: "WriteFile", Code: errSectorNotFound}
	}
	if _, err := h.node.DeviceIoControl(c.ctx, h.handle, win32.IoctlDiskIsWritable, nil, nil); err != nil {
		return err
	}
	return h.node.CorruptDisk(c.ctx, number, offset, data)
}

// errSectorNotFound is ERROR_SECTOR_NOT_FOUND: beyond the end of a disk.
const errSectorNotFound = 27

// ioctlDiskGetGeometryEx asks for the size too, and needs no right to read.
const ioctlDiskGetGeometryEx = 0x700A0

// disk is the number and size of the disk that is open.
func (h openHandle) disk(ctx context.Context) (number uint32, sizeBytes int64, err error) {
	device, geometry := make([]byte, 12), make([]byte, 40)
	if _, err := h.node.DeviceIoControl(ctx, h.handle, win32.IoctlStorageGetDeviceNumber, nil, device); err != nil {
		return 0, 0, err
	}
	if _, err := h.node.DeviceIoControl(ctx, h.handle, ioctlDiskGetGeometryEx, nil, geometry); err != nil {
		return 0, 0, err
	}
	if partition := binary.LittleEndian.Uint32(device[8:]); partition != 0 {
		return 0, 0, &win32.Error{Call: "WriteFile", Code: win32.ErrNotSupported}
	}
	return binary.LittleEndian.Uint32(device[4:]), int64(binary.LittleEndian.Uint64(geometry[24:])), nil
}

// runResizeDisk is ResizeVirtualDisk. A disk that is attached is larger when Windows
// has looked at it again.
func runResizeDisk(c *call) error {
	size := c.in.u64()
	return c.onDisk(func(d *virtualDisk) error {
		if size%sectorBytes != 0 || size > 1<<46 || int64(size) < d.sizeBytes {
			return diskError("ResizeVirtualDisk", d.path, win32.ErrInvalidParameter)
		}
		var err error
		if d.attached {
			err = c.node.GrowDisk(c.ctx, d.number, int64(size))
		} else {
			err = os.Truncate(d.image, int64(size))
		}
		if err == nil {
			d.sizeBytes = int64(size)
		}
		return err
	})
}

// WriteAt writes raw bytes of an open disk.
func (c *Client) WriteAt(ctx context.Context, h win32.Handle, data []byte, offsetBytes int64) error {
	in := onHandle(h)
	in.u64(uint64(offsetBytes))
	in.bytes(data)
	return c.alone(ctx, OpWriteAt, "WriteFile", "", in)
}

// ResizeDisk makes a virtual disk larger.
func (c *Client) ResizeDisk(ctx context.Context, id, sizeBytes uint64) error {
	var in body
	in.u64(sizeBytes)
	in.u64(id)
	return c.alone(ctx, OpResizeDisk, "ResizeVirtualDisk", "", in)
}
