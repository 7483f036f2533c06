package devices

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/conformance/vhdx"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// The scratch disk of the conformance suite, as it is made on Windows.
func TestScratchDisk(t *testing.T) {
	l := open(t)
	folder := t.TempDir()
	scratch, err := vhdx.New(folder)
	l.OK(err)
	disk, err := scratch.Create(l.ctx, 64*mib)
	l.OK(err)
	state, err := disk.Look(l.ctx)
	l.OK(err)
	if state.Number != disk.Number() || state.SizeBytes != 64*mib || len(state.Partitions) != 0 {
		t.Errorf("a new disk: %+v", state)
	}
	l.online(disk.Number())
	l.OK(disk.WriteRaw(l.ctx, mib+100, []byte("written")))
	got := make([]byte, 512)
	h, err := l.api.CreateFile(l.ctx, drive(disk.Number()), win32.Open{Access: win32.GenericRead, Share: both})
	l.OK(err)
	if n, err := l.api.ReadAt(l.ctx, h, got, mib); err != nil || n != 512 || !bytes.Equal(got[100:107], []byte("written")) {
		t.Errorf("read back %d bytes %q, %v", n, got[96:112], err)
	}
	l.OK(l.api.CloseHandle(h))

	l.OK(disk.Grow(l.ctx, 128*mib))
	l.OK(disk.Replug(l.ctx))
	if state, err = disk.Look(l.ctx); err != nil || state.SizeBytes != 128*mib {
		t.Errorf("the grown disk: %+v, %v", state, err)
	}
	l.OK(disk.Remove(l.ctx))
	if slices.Contains(l.disks(), disk.Number()) {
		t.Error("the disk is still there")
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

// online makes a disk writable, as its driver would find it after Windows' own policy.
func (l *lab) online(number uint32) {
	l.Helper()
	const attributes = win32.DiskAttributeOffline | win32.DiskAttributeReadOnly
	h := l.at(drive(number), win32.GenericRead|win32.GenericWrite)
	_, err := l.direct.DeviceIoControl(l.ctx, h, win32.IoctlDiskSetDiskAttributes, setAttributes(0, attributes), nil)
	l.OK(err)
}

// disks are the numbers of the disks that the node has.
func (l *lab) disks() (numbers []uint32) {
	l.Helper()
	disks, err := l.Control.Disks(l.ctx)
	l.OK(err)
	for _, d := range disks {
		numbers = append(numbers, d.Number)
	}
	return numbers
}

// A write needs the right to write, a disk that lets itself be written, and whole sectors.
func TestRawWrites(t *testing.T) {
	l := open(t)
	disk := l.Attach(sim.DiskSpec{})
	write := func(access uint32, data []byte) error {
		t.Helper()
		h := windows.Handle(l.on(drive(disk), access))
		var n uint32
		err := windows.WriteFile(h, data, &n, &windows.Overlapped{Offset: 4096})
		if err == nil && int(n) != len(data) {
			t.Errorf("%d bytes written", n)
		}
		return err
	}
	sector := bytes.Repeat([]byte{0xA5}, 512)
	if err := write(win32.GenericRead, sector); err != windows.ERROR_ACCESS_DENIED {
		t.Errorf("without the right: %v", err)
	}
	if err := write(win32.GenericWrite, sector); err != windows.ERROR_WRITE_PROTECT {
		t.Errorf("to a disk that is read-only: %v", err)
	}
	l.online(disk)
	if err := write(win32.GenericWrite, sector[:100]); err != windows.ERROR_INVALID_PARAMETER {
		t.Errorf("of half a sector: %v", err)
	}
	l.OK(write(win32.GenericWrite, sector))
	got := make([]byte, 512)
	if _, err := l.api.ReadAt(l.ctx, l.on(drive(disk), win32.GenericRead), got, 4096); err != nil || !bytes.Equal(got, sector) {
		t.Errorf("read back % x, %v", got[:8], err)
	}
}

// virtualDisk calls virtdisk.dll. Every function returns an error number.
type virtualDisk struct {
	*lab
	dll *windows.LazyDLL
}

//go:uintptrescapes
func (v virtualDisk) call(name string, args ...uintptr) uint32 {
	v.Helper()
	proc := v.dll.NewProc(name)
	v.OK(proc.Find())
	code, _, _ := proc.Call(args...)
	return uint32(code)
}

func (v virtualDisk) wide(text string) unsafe.Pointer {
	v.Helper()
	p, err := windows.UTF16PtrFromString(text)
	v.OK(err)
	return unsafe.Pointer(p)
}

// create is CreateVirtualDisk with parameters of a version.
func (v virtualDisk) create(path string, version uint32, sizeBytes int64) (h windows.Handle, code uint32) {
	v.Helper()
	kind, parameters := make([]byte, 20), make([]byte, 128)
	binary.LittleEndian.PutUint32(parameters, version)
	binary.LittleEndian.PutUint64(parameters[24:], uint64(sizeBytes))
	code = v.call("CreateVirtualDisk", uintptr(unsafe.Pointer(&kind[0])), uintptr(v.wide(path)), 0, 0, 0, 0,
		uintptr(unsafe.Pointer(&parameters[0])), 0, uintptr(unsafe.Pointer(&h)))
	return h, code
}

func (v virtualDisk) attach(h windows.Handle, flags uint32) uint32 {
	v.Helper()
	return v.call("AttachVirtualDisk", uintptr(h), 0, uintptr(flags), 0, 0, 0)
}

// physicalPath asks with a buffer of a size, and returns the size that is needed.
func (v virtualDisk) physicalPath(h windows.Handle, sizeBytes uint32) (path string, needBytes, code uint32) {
	v.Helper()
	buffer := make([]uint16, 64)
	code = v.call("GetVirtualDiskPhysicalPath", uintptr(h), uintptr(unsafe.Pointer(&sizeBytes)), uintptr(unsafe.Pointer(&buffer[0])))
	return windows.UTF16ToString(buffer), sizeBytes, code
}

func (v virtualDisk) want(what string, got, want uint32) {
	v.Helper()
	if got != want {
		v.Errorf("%s: Windows error %d, want %d", what, got, want)
	}
}

// The functions of virtdisk.dll, their errors, and the life of a handle.
func TestVirtualDisk(t *testing.T) {
	l := open(t)
	v := virtualDisk{l, windows.NewLazySystemDLL("virtdisk.dll")}
	path := fmt.Sprintf(`C:\csi-devices-%d.vhdx`, time.Now().UnixNano())
	t.Cleanup(func() { _ = l.Control.RemoveFile(l.ctx, path) })
	for _, bad := range []struct {
		version   uint32
		sizeBytes int64
	}{{1, 64 * mib}, {3, 64 * mib}, {2, 0}, {2, mib}, {2, 64*mib + 1}} {
		_, code := v.create(path, bad.version, bad.sizeBytes)
		v.want(fmt.Sprintf("create %+v", bad), code, win32.ErrInvalidParameter)
	}
	before := len(l.disks())
	h, code := v.create(path, 2, 64*mib)
	v.want("create", code, 0)
	_, code = v.create(path, 2, 64*mib)
	v.want("create again", code, win32.ErrSharingViolation)
	_, _, code = v.physicalPath(h, 128)
	v.want("the path before the disk is attached", code, win32.ErrNotReady)
	v.want("detach before the disk is attached", v.call("DetachVirtualDisk", uintptr(h), 0, 0), win32.ErrNotReady)
	v.want("attach read-only", v.attach(h, 1), win32.ErrNotSupported)
	v.want("attach", v.attach(h, 2), 0)
	v.want("attach again", v.attach(h, 2), win32.ErrSharingViolation)
	_, need, code := v.physicalPath(h, 4)
	v.want("the path in 4 bytes", code, win32.ErrInsufficientBuffer)
	device, _, code := v.physicalPath(h, need)
	v.want("the path", code, 0)
	size, err := l.lengthOf(l.on(device, win32.GenericRead))
	if err != nil || size != 64*mib {
		t.Errorf("%s has %d bytes, %v", device, size, err)
	}
	l.OK(windows.CloseHandle(h))
	l.eventually("the disk goes with its handle", func() bool { return len(l.disks()) == before })
	v.want("attach by a closed handle", v.attach(h, 2), win32.ErrInvalidHandle)

	h, code = v.open(path)
	v.want("open", code, 0)
	const permanent = 4
	v.want("attach for good", v.attach(h, permanent), 0)
	l.OK(windows.CloseHandle(h))
	time.Sleep(200 * time.Millisecond) // there is nothing to wait for: nothing shall happen
	if len(l.disks()) != before+1 {
		t.Error("a disk that was attached for good went with its handle")
	}
	_, code = v.open(path + "x")
	v.want("open a file that is not there", code, win32.ErrFileNotFound)
}

func (v virtualDisk) open(path string) (h windows.Handle, code uint32) {
	v.Helper()
	kind := make([]byte, 20)
	code = v.call("OpenVirtualDisk", uintptr(unsafe.Pointer(&kind[0])), uintptr(v.wide(path)), 0, 0, 0, uintptr(unsafe.Pointer(&h)))
	return h, code
}
