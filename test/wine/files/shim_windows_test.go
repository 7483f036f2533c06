package files

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// These tests ask Windows as the product does not, to see that the shim answers short
// buffers and unusual requests as Windows does. Sources: the pages of the calls.

// wants fails the test unless a call of Windows failed with a number; nil for success.
func (l *lab) wants(err, want error) {
	l.Helper()
	if err != want {
		l.Errorf("error %v, want %v", err, want)
	}
}

// fileInformation is GetFileInformationByHandleEx into a buffer of a size.
func fileInformation(h win32.Handle, class, size uint32) ([]byte, error) {
	words := make([]uint64, 1024)
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8192)
	err := windows.GetFileInformationByHandleEx(windows.Handle(h), class, &buffer[0], size)
	return buffer, err
}

func TestShimInformation(t *testing.T) {
	l := open(t)
	l.write(l.below("file"), "0123456789")
	h := l.on(l.path("file"), lookAccess)
	info := l.info(l.path("file"))
	for class, size := range map[uint32]uint32{
		windows.FileBasicInfo: 40, windows.FileStandardInfo: 24, windows.FileAttributeTagInfo: 8, windows.FileIdInfo: 24,
	} {
		_, err := fileInformation(h, class, size-1)
		l.wants(err, windows.ERROR_BAD_LENGTH)
		b, err := fileInformation(h, class, size)
		l.wants(err, nil)
		switch le := binary.LittleEndian; class {
		case windows.FileBasicInfo:
			if le.Uint32(b[32:]) != info.Attributes {
				t.Errorf("basic information % X", b[:size])
			}
		case windows.FileStandardInfo:
			if le.Uint64(b[8:]) != 10 || le.Uint32(b[16:]) != 1 || b[20] != 0 || b[21] != 0 {
				t.Errorf("standard information % X", b[:size])
			}
		case windows.FileIdInfo:
			if le.Uint64(b) != info.VolumeSerial || !slices.Equal(b[8:24], info.FileID[:]) {
				t.Errorf("file id % X", b[:size])
			}
		}
	}
	_, err := fileInformation(h, windows.FileStreamInfo, 8192)
	l.wants(err, windows.ERROR_INVALID_PARAMETER)
}

// A name that does not fit stays for the next, larger buffer; nothing is lost.
func TestShimListing(t *testing.T) {
	l := open(t)
	long := strings.Repeat("n", 200)
	l.write(l.below(long), "")
	h := l.on(l.path(), holdAccess)
	_, err := fileInformation(h, windows.FileFullDirectoryRestartInfo, 71)
	l.wants(err, windows.ERROR_BAD_LENGTH)
	b, err := fileInformation(h, windows.FileFullDirectoryRestartInfo, 200) // "." and ".." and no more
	l.wants(err, nil)
	if next := binary.LittleEndian.Uint32(b); next != 72 || b[68] != '.' || binary.LittleEndian.Uint32(b[72:]) != 0 {
		t.Errorf("the first entries are % X", b[:150])
	}
	_, err = fileInformation(h, windows.FileFullDirectoryInfo, 200)
	l.wants(err, windows.ERROR_MORE_DATA)
	b, err = fileInformation(h, windows.FileFullDirectoryInfo, 600)
	l.wants(err, nil)
	if length := binary.LittleEndian.Uint32(b[60:]); length != 400 || b[68] != 'n' {
		t.Errorf("an entry of %d bytes, % X", length, b[:80])
	}
	for range 2 {
		_, err = fileInformation(h, windows.FileFullDirectoryInfo, 600)
		l.wants(err, windows.ERROR_NO_MORE_FILES)
	}
}

func TestShimShortBuffers(t *testing.T) {
	l := open(t)
	_, id := l.volume("")
	l.mount("m", id)
	name, err := windows.UTF16PtrFromString(id)
	l.OK(err)
	buffer := make([]uint16, 300)
	var needed uint32
	want := uint32(len(l.below("m")) + 3) // backslash, NUL, NUL
	for size, wantErr := range map[uint32]error{1: windows.ERROR_MORE_DATA, want - 1: windows.ERROR_MORE_DATA, want: nil} {
		l.wants(windows.GetVolumePathNamesForVolumeName(name, &buffer[0], size, &needed), wantErr)
		if needed != want {
			t.Errorf("a buffer of %d needs %d, want %d", size, needed, want)
		}
	}
	// The final path counts its NUL when it does not fit, and not when it does.
	h, length := windows.Handle(l.on(l.path(), lookAccess)), uint32(len(l.path()))
	for size, want := range map[uint32]uint32{1: length + 1, length: length + 1, length + 1: length} {
		n, err := windows.GetFinalPathNameByHandle(h, &buffer[0], size, 0)
		if err != nil || n != want {
			t.Errorf("final path in a buffer of %d: %d, %v; want %d", size, n, err, want)
		}
	}
	_, err = windows.GetFinalPathNameByHandle(h, &buffer[0], 300, 2) // the device's name
	l.wants(err, windows.ERROR_NOT_SUPPORTED)
	l.wants(windows.GetVolumeInformation(name, &buffer[0], 4, nil, nil, nil, nil, 0), windows.ERROR_MORE_DATA) // "data" and NUL
	l.wants(windows.GetVolumeInformation(name, &buffer[0], 5, nil, &needed, nil, nil, 0), nil)
	if needed != 255 {
		t.Errorf("names have at most %d characters", needed)
	}
	_, err = windows.FindFirstVolume(&buffer[0], 49)
	l.wants(err, windows.ERROR_FILENAME_EXCED_RANGE)
	search, err := windows.FindFirstVolume(&buffer[0], 50)
	l.OK(err)
	l.OK(windows.FindVolumeClose(search))
}

// The older request to delete spares read-only files, and can be taken for no request.
func TestShimDisposition(t *testing.T) {
	l := open(t)
	l.write(l.below("file"), "x")
	l.OK(os.Chmod(l.below("file"), 0o400)) // the node and Wine see the same drive C
	if l.info(l.path("file")).Attributes&win32.AttrReadOnly == 0 {
		t.Fatal("the file is not read-only")
	}
	h := windows.Handle(l.on(l.path("file"), removeAccess))
	dispose := func(class uint32, value uint32, size uint32) error {
		return windows.SetFileInformationByHandle(h, class, (*byte)(unsafe.Pointer(&value)), size)
	}
	l.wants(dispose(windows.FileDispositionInfo, 0, 1), nil)
	l.wants(dispose(windows.FileDispositionInfo, 1, 0), windows.ERROR_BAD_LENGTH)
	l.wants(dispose(windows.FileDispositionInfoEx, 1, 3), windows.ERROR_BAD_LENGTH)
	l.wants(dispose(windows.FileDispositionInfo, 1, 1), windows.ERROR_ACCESS_DENIED)
	l.wants(dispose(windows.FileDispositionInfoEx, 3, 4), windows.ERROR_ACCESS_DENIED)
	l.wants(dispose(windows.FileBasicInfo, 0, 4), windows.ERROR_INVALID_PARAMETER)
	if list, err := l.list(l.path()); err != nil || len(list) != 1 {
		t.Errorf("names %q, %v", list, err)
	}
	l.OK(l.api.Delete(t.Context(), win32.Handle(h))) // the product's request ignores it
	if list, err := l.list(l.path()); err != nil || len(list) != 0 {
		t.Errorf("left: %q, %v", list, err)
	}
}

// What the node does not have is refused, and Go's own files are Wine's.
func TestShimLimits(t *testing.T) {
	l := open(t)
	name, err := windows.UTF16PtrFromString(l.path("x"))
	l.OK(err)
	const itself = windows.FILE_FLAG_BACKUP_SEMANTICS | windows.FILE_FLAG_OPEN_REPARSE_POINT
	_, err = windows.CreateFile(name, lookAccess, anyShare, nil, windows.OPEN_ALWAYS, itself, 0)
	l.wants(err, windows.ERROR_INVALID_PARAMETER)
	folder := windows.Handle(l.on(l.path(), holdAccess))
	object, err := windows.NewNTUnicodeString("x")
	l.OK(err)
	attributes := windows.OBJECT_ATTRIBUTES{Length: 48, RootDirectory: folder, ObjectName: object}
	makeAt := func(access, disposition, options uint32) error {
		var h windows.Handle
		var status windows.IO_STATUS_BLOCK
		return windows.NtCreateFile(&h, access, &attributes, &status, nil, 0, anyShare, disposition, options, 0, 0)
	}
	const reparse, synchronous = windows.FILE_OPEN_REPARSE_POINT, windows.FILE_SYNCHRONOUS_IO_NONALERT
	l.wants(makeAt(win32.FileReadAttr, windows.FILE_OPEN, reparse|synchronous), windows.STATUS_INVALID_PARAMETER)
	l.wants(makeAt(lookAccess, windows.FILE_OPEN, synchronous), windows.STATUS_NOT_SUPPORTED)
	l.wants(makeAt(lookAccess, windows.FILE_OPEN_IF, reparse|synchronous), windows.STATUS_NOT_SUPPORTED)
	l.wants(makeAt(lookAccess, windows.FILE_OPEN, reparse|synchronous), windows.STATUS_OBJECT_NAME_NOT_FOUND)
	h := windows.Handle(l.on(l.path(), holdAccess))
	l.wants(windows.ReadFile(h, []byte{0}, nil, nil), windows.ERROR_INVALID_PARAMETER) // no position of its own

	before := l.stats().Calls
	file := t.TempDir() + `\own`
	l.OK(os.WriteFile(file, []byte("x"), 0o600))
	_, err = os.Lstat(file)
	l.OK(err)
	list, err := os.ReadDir(t.TempDir())
	if err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	l.OK(os.RemoveAll(file))
	for op, count := range l.stats().Calls {
		if op != "Devices" && count != before[op] { // the driver asks for those all the time
			t.Errorf("%d calls of %s for files of Wine", count-before[op], op)
		}
	}
}
