//go:build unix

package tree

import (
	"errors"
	"syscall"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// errnoCode translates the error numbers that mean the same.
func errnoCode(err error) (uint32, bool) {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return 0, false
	}
	switch errno {
	case syscall.ENOENT, syscall.ENAMETOOLONG:
		return win32.ErrFileNotFound, true
	case syscall.ENOTDIR:
		return win32.ErrPathNotFound, true
	case syscall.EACCES, syscall.EPERM:
		return win32.ErrAccessDenied, true
	case syscall.EEXIST:
		return win32.ErrAlreadyExists, true
	case syscall.ENOTEMPTY:
		return win32.ErrDirNotEmpty, true
	case syscall.EBUSY:
		return win32.ErrSharingViolation, true
	case syscall.EROFS:
		return win32.ErrWriteProtect, true
	case syscall.ENOSPC, syscall.EDQUOT:
		return errDiskFull, true
	case syscall.EMFILE, syscall.ENFILE:
		return errTooManyOpenFiles, true
	case syscall.EXDEV:
		return errNotSameDevice, true
	case syscall.EIO:
		return win32.ErrIODevice, true
	case syscall.ENOMEM:
		return win32.ErrNotEnoughMemory, true
	}
	return 0, false
}
