package tree

import (
	"context"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// System error numbers beyond those of win32. Source: winerror.h.
const (
	errTooManyOpenFiles     = 4    // ERROR_TOO_MANY_OPEN_FILES
	errNotSameDevice        = 17   // ERROR_NOT_SAME_DEVICE
	errGeneralFailure       = 31   // ERROR_GEN_FAILURE
	errDiskFull             = 112  // ERROR_DISK_FULL
	errPathTooLong          = 206  // ERROR_FILENAME_EXCED_RANGE
	errOperationAborted     = 995  // ERROR_OPERATION_ABORTED
	errSymlinkClassDisabled = 1463 // ERROR_SYMLINK_CLASS_DISABLED
	errCantAccessFile       = 1920 // ERROR_CANT_ACCESS_FILE: no filter knows the tag
	errCantResolve          = 1921 // ERROR_CANT_RESOLVE_FILENAME: too many links
	errInvalidReparseData   = 4392 // ERROR_INVALID_REPARSE_DATA
	errReparseTagMismatch   = 4394 // ERROR_REPARSE_TAG_MISMATCH
)

// fail makes the error of a call, and nil of code 0.
func fail(call, object string, code uint32) error {
	if code == 0 {
		return nil
	}
	return &win32.Error{Call: call, Object: object, Code: code}
}

// cancelled is the code of a call whose context has ended (CancelIoEx), or 0.
func cancelled(ctx context.Context) uint32 {
	if ctx.Err() != nil {
		return errOperationAborted
	}
	return 0
}
