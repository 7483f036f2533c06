package sim

import (
	"context"
	"encoding/binary"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// Control codes that only the simulator needs by name. Source: winioctl.h.
const (
	ioctlStorageCheckVerify  = 0x2D4800
	ioctlStorageCheckVerify2 = 0x2D0800
	ioctlDiskGetGeometryEx   = 0x700A0
	ioctlVolumeIsOffline     = 0x560010
	ioctlVolumeGetGPTAttr    = 0x560038
	fsctlLockVolume          = 0x90018
	fsctlUnlockVolume        = 0x9001C
	fsctlDismountVolume      = 0x90020
)

// ioctl is one control code on a disk or volume: it fills out and returns how
// many bytes that took, and a system error number. The node's lock is held for
// writing.
type ioctl func(n *Node, d *device, in, out []byte) (int, uint32)

// deviceIoctls are the codes that devices know.
func deviceIoctls() map[uint32]ioctl {
	return map[uint32]ioctl{
		win32.IoctlStorageGetDeviceNumber: deviceNumber,
		win32.IoctlStorageQueryProperty:   queryProperty,
		win32.IoctlScsiGetAddress:         scsiAddress,
		win32.IoctlDiskGetLengthInfo:      lengthInfo,
		win32.IoctlDiskGetDriveLayoutEx:   driveLayout,
		win32.IoctlDiskGetDiskAttributes:  getDiskAttributes,
		win32.IoctlDiskSetDiskAttributes:  setDiskAttributesIoctl,
		win32.IoctlDiskUpdateProperties:   updateProperties,
		win32.IoctlDiskIsWritable:         isWritable,
		win32.IoctlVolumeGetDiskExtents:   diskExtents,
		win32.FsctlGetNtfsVolumeData:      ntfsVolumeData,
		win32.FsctlIsVolumeMounted:        isVolumeMounted,
		ioctlStorageCheckVerify:           nothing,
		ioctlStorageCheckVerify2:          nothing,
		ioctlDiskGetGeometryEx:            driveGeometry,
		ioctlVolumeIsOffline:              nothing,
		ioctlVolumeGetGPTAttr:             gptAttributes,
		fsctlLockVolume:                   lockVolume,
		fsctlUnlockVolume:                 nothing,
		fsctlDismountVolume:               dismountVolume,
	}
}

// DeviceIoControl implements win32.API.
func (n *Node) DeviceIoControl(ctx context.Context, h win32.Handle, code uint32, in, out []byte) (int, error) {
	s := site{prefix: "win32.DeviceIoControl", code: code, object: n.handlePath(h)}
	return gated(ctx, &n.gate, s, func() (int, error) {
		n.mu.Lock()
		d, ok, err := n.deviceLocked("DeviceIoControl", h)
		if !ok {
			n.mu.Unlock()
			return n.fileControl(ctx, h, code, in, out)
		}
		defer n.mu.Unlock()
		if err != nil {
			return 0, err
		}
		return n.deviceControlLocked(d, code, in, out)
	})
}

func (n *Node) deviceControlLocked(d *device, code uint32, in, out []byte) (int, error) {
	var count int
	var failure uint32
	run, known := n.ioctls[code]
	// Bits 14 and 15 of a control code are the access the handle must have.
	access := code >> 14 & 3
	switch {
	case !known:
		failure = win32.ErrInvalidFunction
	case access&1 != 0 && !d.canRead(), access&2 != 0 && !d.canWrite():
		failure = win32.ErrAccessDenied
	default:
		count, failure = run(n, d, in, out)
	}
	if failure != 0 {
		return count, &win32.Error{Call: site{prefix: "DeviceIoControl", code: code}.name(), Object: d.path, Code: failure}
	}
	return count, nil
}

// fileControl handles the codes that files and folders know.
func (n *Node) fileControl(ctx context.Context, h win32.Handle, code uint32, in, out []byte) (int, error) {
	switch code {
	case win32.FsctlGetReparsePoint:
		return n.files.FsctlGetReparsePoint(ctx, h, out)
	case win32.FsctlSetReparsePoint:
		return 0, n.files.FsctlSetReparsePoint(ctx, h, in)
	case win32.FsctlDeleteReparsePoint:
		return 0, n.files.FsctlDeleteReparsePoint(ctx, h, in)
	}
	id, err := n.files.HandleVolume(h)
	if err != nil {
		return 0, err
	}
	failure, count := uint32(win32.ErrInvalidFunction), 0
	if code == win32.FsctlGetNtfsVolumeData || code == win32.FsctlIsVolumeMounted {
		n.mu.Lock()
		defer n.mu.Unlock()
		if v := n.volumeLocked(id); v != nil {
			count, failure = n.ioctls[code](n, &device{disk: v.disk(), vol: v}, in, out)
		}
	}
	if failure != 0 {
		return count, &win32.Error{Call: site{prefix: "DeviceIoControl", code: code}.name(), Object: id, Code: failure}
	}
	return count, nil
}

// nothing is a code that only has to succeed.
func nothing(*Node, *device, []byte, []byte) (int, uint32) { return 0, 0 }

// whole copies a structure that must fit: ERROR_INSUFFICIENT_BUFFER otherwise.
func whole(out, data []byte) (int, uint32) {
	if len(out) < len(data) {
		return 0, win32.ErrInsufficientBuffer
	}
	return copy(out, data), 0
}

// deviceNumber is STORAGE_DEVICE_NUMBER: type, disk, partition (0 for a disk).
func deviceNumber(_ *Node, d *device, _, out []byte) (int, uint32) {
	b := make([]byte, 12)
	le := binary.LittleEndian
	le.PutUint32(b, win32.DeviceTypeDisk)
	le.PutUint32(b[4:], d.disk.Number)
	if d.vol != nil {
		le.PutUint32(b[8:], d.vol.part.Number)
	}
	return whole(out, b)
}

// scsiAddress is SCSI_ADDRESS; disks that are not on such a bus have none.
func scsiAddress(_ *Node, d *device, _, out []byte) (int, uint32) {
	if d.disk.bus == busTypes["usb"] || d.disk.bus == busTypes["storagespaces"] {
		return 0, win32.ErrInvalidFunction
	}
	p := d.disk.place
	return whole(out, []byte{8, 0, 0, 0, p.port, p.path, p.target, p.lun})
}

// lengthInfo is GET_LENGTH_INFORMATION.
func lengthInfo(_ *Node, d *device, _, out []byte) (int, uint32) {
	size := d.disk.SizeBytes
	if d.vol != nil {
		size = d.vol.part.SizeBytes
	}
	return whole(out, binary.LittleEndian.AppendUint64(nil, uint64(size)))
}

// isWritable fails on a disk that refuses writes. Source: IOCTL_DISK_IS_WRITABLE.
func isWritable(_ *Node, d *device, _, _ []byte) (int, uint32) {
	if d.disk.readOnlyNow() {
		return 0, win32.ErrWriteProtect
	}
	return 0, 0
}

// updateProperties reads table and size again. Source: IOCTL_DISK_UPDATE_PROPERTIES.
func updateProperties(n *Node, d *device, _, _ []byte) (int, uint32) {
	if err := n.refreshDiskLocked(d.disk); err != nil {
		return 0, win32.ErrIODevice
	}
	return 0, 0
}
