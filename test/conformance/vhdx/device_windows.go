package vhdx

import (
	"fmt"
	"strings"

	"golang.org/x/sys/windows"
)

// Control codes. Source: winioctl.h, and ntdddisk.h of the SDK for the attributes.
const (
	ioctlLength     = 0x7405C  // IOCTL_DISK_GET_LENGTH_INFO
	ioctlLayout     = 0x70050  // IOCTL_DISK_GET_DRIVE_LAYOUT_EX
	ioctlAttributes = 0x700F0  // IOCTL_DISK_GET_DISK_ATTRIBUTES
	ioctlExtents    = 0x560000 // IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS
)

// blockBytes is the unit of raw writes; it is a multiple of every sector size.
const blockBytes = 4096

// device is an open disk or volume.
type device struct {
	handle windows.Handle
	path   string
}

// openDevice opens `\\.\PhysicalDriveN` or `\\?\Volume{guid}`; access 0 is enough
// for some questions.
func openDevice(path string, access uint32) (*device, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE
	handle, err := windows.CreateFile(name, access, share, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &device{handle, path}, nil
}

// openDisk opens a disk by its number.
func openDisk(number uint32, access uint32) (*device, error) {
	return openDevice(fmt.Sprintf(`\\.\PhysicalDrive%d`, number), access)
}

// openVolume opens a volume by its id.
func openVolume(id string) (*device, error) { return openDevice(strings.TrimRight(id, `\`), 0) }

func (d *device) close() { _ = windows.CloseHandle(d.handle) }

// ask sends a control code that takes nothing and answers with at most maxBytes.
func (d *device) ask(code uint32, maxBytes int) ([]byte, error) {
	out := make([]byte, maxBytes)
	var count uint32
	if err := windows.DeviceIoControl(d.handle, code, nil, 0, &out[0], uint32(len(out)), &count, nil); err != nil {
		return nil, fmt.Errorf("control code %#x of %s: %w", code, d.path, err)
	}
	return out[:count], nil
}

// writeAt overwrites bytes; the rest of the blocks they lie in stays as it is.
func (d *device) writeAt(offsetBytes int64, data []byte) error {
	start := offsetBytes / blockBytes * blockBytes
	end := (offsetBytes + int64(len(data)) + blockBytes - 1) / blockBytes * blockBytes
	blocks := make([]byte, end-start)
	at := windows.Overlapped{Offset: uint32(start), OffsetHigh: uint32(start >> 32)}
	var count uint32
	if err := windows.ReadFile(d.handle, blocks, &count, &at); err != nil || int(count) != len(blocks) {
		return fmt.Errorf("read %d bytes of %s at %d: %w", count, d.path, start, err)
	}
	copy(blocks[offsetBytes-start:], data)
	at = windows.Overlapped{Offset: uint32(start), OffsetHigh: uint32(start >> 32)}
	if err := windows.WriteFile(d.handle, blocks, &count, &at); err != nil || int(count) != len(blocks) {
		return fmt.Errorf("write %d bytes of %s at %d: %w", count, d.path, start, err)
	}
	return nil
}
