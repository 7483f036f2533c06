package win32

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"
)

// system is Windows itself. Its calls block; the context is looked at before
// each, and cannot end one that runs.
type system struct{}

// System returns the API of the machine the process runs on. It switches on the
// privileges that its calls need: administrators have them switched off, local
// system most of them.
func System() API {
	enablePrivileges(backupPrivilege, restorePrivilege, symlinkPrivilege)
	return system{}
}

// failure makes the *Error of a failed call; nil stays nil.
func failure(call, object string, err error) error {
	if err == nil {
		return nil
	}
	var status windows.NTStatus
	if errors.As(err, &status) {
		err = status.Errno()
	}
	var number syscall.Errno
	if !errors.As(err, &number) {
		number = windows.ERROR_GEN_FAILURE
	}
	return &Error{Call: call, Object: object, Code: uint32(number)}
}

// wide is a text for Windows; one with a NUL in it is no name of anything.
func wide(call, text string) (*uint16, error) {
	p, err := windows.UTF16PtrFromString(text)
	if err != nil {
		return nil, &Error{Call: call, Object: text, Code: ErrInvalidName}
	}
	return p, nil
}

// CreateFile implements API.
func (system) CreateFile(ctx context.Context, path string, open Open) (Handle, error) {
	const call = "CreateFile"
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	name, err := wide(call, path)
	if err != nil {
		return 0, err
	}
	disposition := uint32(windows.OPEN_EXISTING)
	if open.Create && open.Directory {
		if err := windows.CreateDirectory(name, nil); err != nil {
			return 0, failure("CreateDirectory", path, err)
		}
	} else if open.Create {
		disposition = windows.CREATE_NEW
	}
	const flags = windows.FILE_FLAG_BACKUP_SEMANTICS | windows.FILE_FLAG_OPEN_REPARSE_POINT
	h, err := windows.CreateFile(name, open.Access, open.Share, nil, disposition, flags, 0)
	if err != nil {
		return 0, failure(call, path, err)
	}
	if open.Directory {
		if err := demandDirectory(h, path); err != nil {
			_ = windows.CloseHandle(h) // the first failure is the one to report
			return 0, err
		}
	}
	return Handle(h), nil
}

func demandDirectory(h windows.Handle, path string) error {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return failure("GetFileInformationByHandle", path, err)
	}
	if info.FileAttributes&AttrDirectory == 0 {
		return &Error{Call: "CreateFile", Object: path, Code: ErrDirectory}
	}
	return nil
}

// CloseHandle implements API.
func (system) CloseHandle(h Handle) error {
	return failure("CloseHandle", "", windows.CloseHandle(windows.Handle(h)))
}

// FinalPath implements API.
func (system) FinalPath(ctx context.Context, h Handle) (string, error) {
	const dosName, guidName = 0, 1
	if err := ctx.Err(); err != nil {
		return "", err
	}
	path, err := finalPath(h, dosName)
	if errors.Is(err, windows.ERROR_PATH_NOT_FOUND) { // a volume without letter or folder
		path, err = finalPath(h, guidName)
	}
	return path, failure("GetFinalPathNameByHandle", "", err)
}

func finalPath(h Handle, form uint32) (string, error) {
	buffer := make([]uint16, windows.MAX_PATH)
	for {
		n, err := windows.GetFinalPathNameByHandle(windows.Handle(h), &buffer[0], uint32(len(buffer)), form)
		if err != nil {
			return "", err
		}
		if int(n) < len(buffer) {
			return windows.UTF16ToString(buffer[:n]), nil
		}
		buffer = make([]uint16, n+1)
	}
}

// ReadAt implements API.
func (system) ReadAt(ctx context.Context, h Handle, buffer []byte, offsetBytes int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	at := windows.Overlapped{Offset: uint32(offsetBytes), OffsetHigh: uint32(offsetBytes >> 32)}
	var n uint32
	err := windows.ReadFile(windows.Handle(h), buffer, &n, &at)
	return int(n), failure("ReadFile", "", err)
}

// DeviceIoControl implements API.
func (system) DeviceIoControl(ctx context.Context, h Handle, code uint32, in, out []byte) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n, err := deviceIoControl(windows.Handle(h), code, in, out)
	return int(n), failure(fmt.Sprintf("DeviceIoControl 0x%X", code), "", err)
}

func deviceIoControl(h windows.Handle, code uint32, in, out []byte) (uint32, error) {
	var n uint32
	err := windows.DeviceIoControl(h, code, first(in), uint32(len(in)), first(out), uint32(len(out)), &n, nil)
	return n, err
}

// first is the address of a buffer; nil for an empty one.
func first(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}

// FlushFileBuffers implements API.
func (system) FlushFileBuffers(ctx context.Context, h Handle) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return failure("FlushFileBuffers", "", windows.FlushFileBuffers(windows.Handle(h)))
}

// FileAttributes implements API.
func (system) FileAttributes(ctx context.Context, path string) (uint32, error) {
	const call = "GetFileAttributes"
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	name, err := wide(call, path)
	if err != nil {
		return 0, err
	}
	attributes, err := windows.GetFileAttributes(name)
	return attributes, failure(call, path, err)
}

// SystemDirectory implements API.
func (system) SystemDirectory() string {
	directory, err := windows.GetSystemDirectory()
	if err != nil {
		return ""
	}
	return directory
}

// isComponent reports whether a name is a single component: the native calls
// would take a separator as a path, and a colon as a stream of the file.
func isComponent(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, `\/:`+"\x00")
}
