package tree

import (
	"errors"
	"io/fs"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// hostCode is the system error number that Windows gives where the host gave err.
func hostCode(err error) uint32 {
	if err == nil {
		return 0
	}
	if code, ok := errnoCode(err); ok {
		return code
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return win32.ErrFileNotFound
	case errors.Is(err, fs.ErrExist):
		return win32.ErrAlreadyExists
	case errors.Is(err, fs.ErrPermission):
		return win32.ErrAccessDenied
	}
	return errGeneralFailure
}
