package devices

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// request is one control code with what is sent along.
type request struct {
	name string
	code uint32
	in   []byte
	// outBytes is a buffer that any answer fits into.
	outBytes int
}

// propertyQuery is STORAGE_PROPERTY_QUERY.
func propertyQuery(property, kind uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, property)
	return append(binary.LittleEndian.AppendUint32(b, kind), 0, 0, 0, 0)
}

// setAttributes is SET_DISK_ATTRIBUTES.
func setAttributes(attributes, mask uint64) []byte {
	b := make([]byte, 40)
	binary.LittleEndian.PutUint32(b, 40)
	binary.LittleEndian.PutUint64(b[8:], attributes)
	binary.LittleEndian.PutUint64(b[16:], mask)
	return b
}

// requests are all control codes of devices that package win32 names.
func requests() []request {
	return []request{
		{"IoctlStorageGetDeviceNumber", win32.IoctlStorageGetDeviceNumber, nil, 64},
		{"IoctlStorageQueryProperty", win32.IoctlStorageQueryProperty, propertyQuery(win32.StorageDeviceProperty, 0), 4096},
		{"IoctlStorageQueryProperty", win32.IoctlStorageQueryProperty, propertyQuery(win32.StorageAdapterProperty, 0), 4096},
		{"IoctlStorageQueryProperty", win32.IoctlStorageQueryProperty, propertyQuery(win32.StorageDeviceIDProperty, 0), 4096},
		{"IoctlStorageQueryProperty", win32.IoctlStorageQueryProperty, propertyQuery(win32.StorageDeviceIDProperty, 1), 4096},
		{"IoctlStorageQueryProperty", win32.IoctlStorageQueryProperty, propertyQuery(99, 0), 4096},
		{"IoctlStorageQueryProperty", win32.IoctlStorageQueryProperty, nil, 4096},
		{"IoctlScsiGetAddress", win32.IoctlScsiGetAddress, nil, 64},
		{"IoctlDiskGetLengthInfo", win32.IoctlDiskGetLengthInfo, nil, 64},
		{"IoctlDiskGetDriveLayoutEx", win32.IoctlDiskGetDriveLayoutEx, nil, 4096},
		{"IoctlDiskGetDiskAttributes", win32.IoctlDiskGetDiskAttributes, nil, 64},
		{"IoctlDiskSetDiskAttributes", win32.IoctlDiskSetDiskAttributes, nil, 0},
		{"IoctlDiskSetDiskAttributes", win32.IoctlDiskSetDiskAttributes, setAttributes(win32.DiskAttributeReadOnly, win32.DiskAttributeReadOnly), 0},
		{"IoctlDiskIsWritable", win32.IoctlDiskIsWritable, nil, 0},
		{"IoctlDiskSetDiskAttributes", win32.IoctlDiskSetDiskAttributes, setAttributes(0, win32.DiskAttributeReadOnly), 0},
		{"IoctlDiskIsWritable", win32.IoctlDiskIsWritable, nil, 0},
		{"IoctlDiskUpdateProperties", win32.IoctlDiskUpdateProperties, nil, 0},
		{"IoctlVolumeGetDiskExtents", win32.IoctlVolumeGetDiskExtents, nil, 4096},
		{"FsctlGetNtfsVolumeData", win32.FsctlGetNtfsVolumeData, nil, 4096},
		{"FsctlIsVolumeMounted", win32.FsctlIsVolumeMounted, nil, 0},
		{"a code that nobody knows", 0x7FFFC, nil, 64},
	}
}

// ofFiles are the control codes for files and folders, which are no device's.
var ofFiles = []string{"FsctlGetReparsePoint", "FsctlSetReparsePoint", "FsctlDeleteReparsePoint"}

// Every control code that the product has a name for is among the requests.
func TestRequestsAreComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../winos/win32/win32.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	sent, named := map[string]bool{}, 0
	for _, r := range requests() {
		sent[r.name] = true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, name := range spec.Names {
			if !strings.HasPrefix(name.Name, "Ioctl") && !strings.HasPrefix(name.Name, "Fsctl") {
				continue
			}
			named++
			if !sent[name.Name] && !slices.Contains(ofFiles, name.Name) {
				t.Errorf("%s is not sent", name.Name)
			}
		}
		return true
	})
	if named < 10 {
		t.Errorf("only %d control codes found", named)
	}
}

// answers compares what Windows and the node say to one request.
func (l *lab) answers(r request, windows, node win32.Handle, outBytes int) {
	l.Helper()
	got, want := bytes.Repeat([]byte{0xEE}, outBytes), bytes.Repeat([]byte{0xEE}, outBytes)
	n, err := l.api.DeviceIoControl(l.ctx, windows, r.code, r.in, got)
	wantN, wantErr := l.direct.DeviceIoControl(l.ctx, node, r.code, r.in, want)
	if l.CodeOf(err) != l.CodeOf(wantErr) {
		l.Errorf("%s with %d bytes for the answer: %v, the node says %v", r.name, outBytes, err, wantErr)
	}
	if n != wantN || !bytes.Equal(got[:min(n, outBytes)], want[:min(n, outBytes)]) {
		l.Errorf("%s: %d bytes % x, the node says %d bytes % x", r.name, n, got[:min(n, outBytes)], wantN, want[:min(wantN, outBytes)])
	}
	if !bytes.Equal(got[min(n, outBytes):], bytes.Repeat([]byte{0xEE}, outBytes-min(n, outBytes))) {
		l.Errorf("%s wrote beyond its answer", r.name)
	}
}

func TestControlCodes(t *testing.T) {
	l := open(t)
	raw := l.Attach(sim.DiskSpec{Bus: "NVMe", Serial: "  serial 1  ", Model: "model", Manufacturer: "maker",
		IDs: []sim.DeviceID{{CodeSet: 1, Type: 3, ID: []byte("\x60\x02\x24\x80abcdefghijkl")}}})
	usb := l.Attach(sim.DiskSpec{Bus: "USB"})
	disk, volume := l.volume(sim.DiskSpec{Bus: "iSCSI"})
	for _, path := range []string{drive(raw), drive(usb), drive(disk), device(volume)} {
		t.Run(path[4:], func(t *testing.T) {
			l := l.in(t)
			const access = win32.GenericRead | win32.GenericWrite
			windows, node := l.on(path, access), l.at(path, access)
			for _, r := range requests() {
				l.answers(r, windows, node, r.outBytes)
			}
		})
	}
}

// Buffers that are too small get what the node gives for them.
func TestShortBuffers(t *testing.T) {
	l := open(t)
	disk, volume := l.volume(sim.DiskSpec{Bus: "SAS", IDs: []sim.DeviceID{
		{CodeSet: 1, Type: 3, ID: []byte("\x60\x02\x24\x80abcdefghijkl")}, {CodeSet: 2, Type: 8, ID: []byte("eui.0123456789abcdef")},
	}})
	for _, path := range []string{drive(disk), device(volume)} {
		const access = win32.GenericRead | win32.GenericWrite
		windows, node := l.on(path, access), l.at(path, access)
		for _, r := range requests() {
			for _, outBytes := range []int{0, 1, 4, 7, 8, 11, 12, 16, 31, 32, 47, 48, 95, 96, 191, 192} {
				l.answers(r, windows, node, min(outBytes, max(r.outBytes, 0)))
			}
		}
	}
}

// ERROR_MORE_DATA comes with the bytes that fit.
func TestMoreData(t *testing.T) {
	l := open(t)
	disk := l.Attach(sim.DiskSpec{})
	h := l.on(drive(disk), win32.GenericRead)
	l.OK(l.Control.AddFault(l.ctx, sim.Fault{Call: "win32.DeviceIoControl 0x2D1080", Win32: win32.ErrMoreData, After: true}))
	out := make([]byte, 12)
	n, err := l.api.DeviceIoControl(l.ctx, h, win32.IoctlStorageGetDeviceNumber, nil, out)
	l.WantCode(err, win32.ErrMoreData)
	if n != 12 || binary.LittleEndian.Uint32(out[4:]) != disk {
		t.Errorf("%d bytes % x", n, out)
	}
}

// Every Windows error number of the node is the one that the product sees.
func TestErrorNumbers(t *testing.T) {
	l := open(t)
	disk, volume := l.volume(sim.DiskSpec{})
	h := l.on(device(volume), win32.GenericRead|win32.GenericWrite)
	codes := []uint32{
		win32.ErrInvalidFunction, win32.ErrFileNotFound, win32.ErrAccessDenied, win32.ErrInvalidHandle, win32.ErrNotEnoughMemory,
		win32.ErrWriteProtect, win32.ErrNotReady, 23, 27, win32.ErrSharingViolation, win32.ErrHandleEOF, win32.ErrNotSupported, 55,
		win32.ErrInvalidParameter, 112, win32.ErrSemTimeout, win32.ErrInsufficientBuffer, 170, win32.ErrUnrecognizedVolume,
		win32.ErrIODevice, win32.ErrDevNotConnected, win32.ErrNotFound, win32.ErrDeviceInUse, 31, 483, 1006, 1110, 1359, 4390, 65000,
	}
	for _, code := range codes {
		l.failing("win32.DeviceIoControl *", code, func() error {
			_, err := l.api.DeviceIoControl(l.ctx, h, win32.IoctlDiskGetLengthInfo, nil, make([]byte, 8))
			return err
		})
		l.failing("win32.ReadAt", code, func() error {
			_, err := l.api.ReadAt(l.ctx, h, make([]byte, 512), 0)
			return err
		})
		l.failing("win32.FlushFileBuffers", code, func() error { return l.api.FlushFileBuffers(l.ctx, h) })
		l.failing("win32.CreateFile", code, func() error {
			h, err := l.api.CreateFile(l.ctx, drive(disk), win32.Open{Share: both})
			if err == nil {
				l.OK(l.api.CloseHandle(h))
			}
			return err
		})
	}
}

// failing makes the next call fail at the node and looks what comes of it.
func (l *lab) failing(call string, code uint32, do func() error) {
	l.Helper()
	l.OK(l.Control.AddFault(l.ctx, sim.Fault{Call: call, Win32: code}))
	if got := l.CodeOf(do()); got != code {
		l.Errorf("%s fails with %d at the node, and with %d in the program", call, code, got)
	}
	l.OK(l.Control.ClearFaults(l.ctx))
}

// The access bits of a control code are checked against the handle's access.
func TestAccess(t *testing.T) {
	l := open(t)
	_, volume := l.volume(sim.DiskSpec{})
	disk := l.Attach(sim.DiskSpec{})
	length := func(h win32.Handle) error {
		_, err := l.api.DeviceIoControl(l.ctx, h, win32.IoctlDiskGetLengthInfo, nil, make([]byte, 8))
		return err
	}
	number := func(h win32.Handle) error {
		_, err := l.api.DeviceIoControl(l.ctx, h, win32.IoctlStorageGetDeviceNumber, nil, make([]byte, 12))
		return err
	}
	protect := func(h win32.Handle) error {
		_, err := l.api.DeviceIoControl(l.ctx, h, win32.IoctlDiskSetDiskAttributes, setAttributes(2, 2), nil)
		return err
	}
	read := func(h win32.Handle) error {
		_, err := l.api.ReadAt(l.ctx, h, make([]byte, 512), 0)
		return err
	}
	flush := func(h win32.Handle) error { return l.api.FlushFileBuffers(l.ctx, h) }
	const no, yes = win32.ErrAccessDenied, 0
	for _, c := range []struct {
		access                               uint32
		number, length, protect, read, flush uint32
	}{
		{win32.AccessNone, yes, no, no, no, no},
		{win32.GenericRead, yes, yes, no, yes, no},
		{win32.GenericWrite, yes, no, no, no, yes},
		{win32.GenericRead | win32.GenericWrite, yes, yes, yes, yes, yes},
	} {
		t.Run("access 0x"+strconv.FormatUint(uint64(c.access), 16), func(t *testing.T) {
			l := l.in(t)
			d, v := l.on(drive(disk), c.access), l.on(device(volume), c.access)
			l.WantCode(number(d), c.number)
			l.WantCode(length(d), c.length)
			l.WantCode(protect(d), c.protect)
			l.WantCode(read(d), c.read)
			l.WantCode(flush(v), c.flush)
		})
	}
	_, err := l.api.CreateFile(l.ctx, device(volume), win32.Open{Access: win32.GenericRead, Share: win32.ShareRead})
	l.WantCode(err, win32.ErrSharingViolation)
	_, err = l.api.CreateFile(l.ctx, drive(77), win32.Open{Share: both})
	l.WantCode(err, win32.ErrFileNotFound)
	_, err = l.api.CreateFile(l.ctx, fmt.Sprintf(`\\?\Volume{%s}`, strings.Repeat("0", 36)), win32.Open{Share: both})
	l.WantCode(err, win32.ErrFileNotFound)
}
