package win32

import (
	"errors"
	"testing"

	"golang.org/x/sys/windows"
)

func TestFailure(t *testing.T) {
	if err := failure("Call", "object", nil); err != nil {
		t.Errorf("no failure: %v", err)
	}
	wantCode(t, failure("Call", "object", windows.ERROR_NOT_READY), ErrNotReady)
	wantCode(t, failure("Call", "object", windows.STATUS_OBJECT_NAME_NOT_FOUND), ErrFileNotFound)
	wantCode(t, failure("Call", "object", errors.New("no number")), uint32(windows.ERROR_GEN_FAILURE))
}
