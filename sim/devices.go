package sim

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/sim/tree"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// errSectorNotFound is ERROR_SECTOR_NOT_FOUND: a read beyond the end of a disk.
const errSectorNotFound = 27

// device is an open disk or volume.
type device struct {
	path   string
	access uint32
	disk   *disk
	vol    *volume // nil for a disk
	gone   bool    // the device went away while the handle was open
}

func (d *device) canRead() bool  { return d.access&(win32.GenericRead|win32.FileListDir) != 0 }
func (d *device) canWrite() bool { return d.access&(win32.GenericWrite|win32.FileAddFile) != 0 }

// openDevice opens `\\.\PhysicalDriveN`, `\\?\Volume{guid}` or `\\.\C:`. Source:
// CreateFileW, "Physical Disks and Volumes".
func (n *Node) openDevice(path string, open win32.Open) (win32.Handle, error) {
	fail := func(code uint32) (win32.Handle, error) {
		return 0, &win32.Error{Call: "CreateFile", Object: path, Code: code}
	}
	n.look()
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.findDeviceLocked(path)
	const share = win32.ShareRead | win32.ShareWrite
	switch {
	case d == nil:
		return fail(win32.ErrFileNotFound)
	case open.Create, open.Directory:
		return fail(win32.ErrInvalidParameter)
	case open.Access != win32.AccessNone && open.Share&share != share:
		return fail(win32.ErrSharingViolation) // the file system has it open
	}
	d.path, d.access = path, open.Access
	n.nextID += tree.HandleStep
	handle := n.nextID + tree.HandleStep/2
	n.devices[handle] = d
	return handle, nil
}

func (n *Node) findDeviceLocked(path string) *device {
	name := path[4:] // behind `\\.\` or `\\?\`
	const drive = "PhysicalDrive"
	switch {
	case len(name) > len(drive) && strings.EqualFold(name[:len(drive)], drive):
		number, err := strconv.ParseUint(name[len(drive):], 10, 32)
		if err != nil {
			return nil
		}
		if d := n.diskLocked(uint32(number)); d != nil {
			return &device{disk: d}
		}
	case len(name) == 2 && name[1] == ':':
		if v := n.volumeLocked(n.files.Drives()[name[0]&^0x20]); v != nil {
			return &device{disk: v.disk(), vol: v}
		}
	default:
		if v := n.volumeLocked(`\\?\` + name); v != nil {
			return &device{disk: v.disk(), vol: v}
		}
	}
	return nil
}

// deviceLocked finds the device of a handle; ok is false when the handle is
// none of a device.
func (n *Node) deviceLocked(call string, h win32.Handle) (d *device, ok bool, err error) {
	d, ok = n.devices[h]
	if ok && d.gone {
		return nil, true, &win32.Error{Call: call, Object: d.path, Code: win32.ErrDevNotConnected}
	}
	return d, ok, nil
}

// closeDeviceHandlesLocked makes the handles of a disk and its volumes fail.
func (n *Node) closeDeviceHandlesLocked(d *disk) {
	for _, open := range n.devices {
		open.gone = open.gone || open.disk == d
	}
}

// closeVolumeHandlesLocked makes the handles of a volume fail.
func (n *Node) closeVolumeHandlesLocked(v *volume) {
	for _, open := range n.devices {
		open.gone = open.gone || open.vol == v
	}
}

// diskInUseLocked tells whether a volume of the disk has open handles.
func (n *Node) diskInUseLocked(d *disk) bool {
	for _, open := range n.devices {
		if open.disk == d && open.vol != nil && !open.gone {
			return true
		}
	}
	return slices.ContainsFunc(d.parts, func(p *partition) bool { return p.vol != nil && n.files.VolumeHandles(p.vol.name) > 0 })
}

// remoteInUseLocked tells whether files below a remote path are open.
func (n *Node) remoteInUseLocked(remote string) bool {
	server, share, _ := splitRemote(remote)
	return n.files.VolumeHandles(`\\`+server+`\`+share) > 0
}

// CloseHandle implements win32.API.
func (n *Node) CloseHandle(h win32.Handle) error {
	_, err := gated(context.Background(), &n.gate, site{prefix: "win32.CloseHandle", object: n.handlePath(h)}, func() (struct{}, error) {
		n.mu.Lock()
		_, ok := n.devices[h]
		delete(n.devices, h)
		n.mu.Unlock()
		if ok {
			return struct{}{}, nil
		}
		return struct{}{}, n.files.CloseHandle(h)
	})
	return err
}

// HandleCount implements FaultController.
func (n *Node) HandleCount(context.Context) (int, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.devices) + n.files.OpenHandles(), nil
}

// ReadAt implements win32.API. Devices are read in whole sectors. Source:
// ReadFile on a disk or volume handle.
func (n *Node) ReadAt(ctx context.Context, h win32.Handle, buffer []byte, offsetBytes int64) (int, error) {
	return gated(ctx, &n.gate, site{prefix: "win32.ReadAt", object: n.handlePath(h)}, func() (int, error) {
		n.mu.RLock()
		d, ok, err := n.deviceLocked("ReadFile", h)
		if ok {
			defer n.mu.RUnlock()
			if err != nil {
				return 0, err
			}
			return d.read(buffer, offsetBytes)
		}
		n.mu.RUnlock()
		return n.files.ReadAt(ctx, h, buffer, offsetBytes)
	})
}

func (d *device) read(buffer []byte, off int64) (int, error) {
	fail := func(code uint32) (int, error) {
		return 0, &win32.Error{Call: "ReadFile", Object: d.path, Code: code}
	}
	start, size, beyond := int64(0), d.disk.SizeBytes, uint32(errSectorNotFound)
	if d.vol != nil {
		start, size, beyond = d.vol.part.OffsetBytes, d.vol.part.SizeBytes, win32.ErrHandleEOF
	}
	switch {
	case !d.canRead():
		return fail(win32.ErrAccessDenied)
	case off < 0, off%image.SectorBytes != 0, len(buffer)%image.SectorBytes != 0:
		return fail(win32.ErrInvalidParameter)
	case off >= size:
		return fail(beyond)
	}
	buffer = buffer[:min(int64(len(buffer)), size-off)]
	count, err := d.disk.img.ReadAt(buffer, start+off)
	if err != nil && !errors.Is(err, io.EOF) {
		return fail(win32.ErrIODevice)
	}
	return count, nil
}

// FlushFileBuffers implements win32.API.
func (n *Node) FlushFileBuffers(ctx context.Context, h win32.Handle) error {
	_, err := gated(ctx, &n.gate, site{prefix: "win32.FlushFileBuffers", object: n.handlePath(h)}, func() (struct{}, error) {
		n.mu.Lock()
		d, ok, err := n.deviceLocked("FlushFileBuffers", h)
		if ok {
			defer n.mu.Unlock()
			if err != nil {
				return struct{}{}, err
			}
			return struct{}{}, n.flushDeviceLocked(d)
		}
		n.mu.Unlock()
		return struct{}{}, n.files.FlushFileBuffers(ctx, h)
	})
	return err
}

func (n *Node) flushDeviceLocked(d *device) error {
	fail := func(code uint32) error {
		return &win32.Error{Call: "FlushFileBuffers", Object: d.path, Code: code}
	}
	if !d.canWrite() {
		return fail(win32.ErrAccessDenied)
	}
	var err error
	if d.vol != nil {
		err = n.flushLocked(d.vol)
	} else {
		err = d.disk.img.Flush()
	}
	if err != nil {
		n.log.Error("not flushed", "device", d.path, "error", err)
		return fail(win32.ErrIODevice)
	}
	return nil
}
