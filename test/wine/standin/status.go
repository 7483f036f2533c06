package standin

import (
	"context"
	"errors"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// Windows error numbers for what no interface names. Source: winerror.h.
const (
	errOperationAborted = 995
	errInternal         = 1359
)

// status gives the number of a failure and writes the body that goes with it.
func (c *call) status(o operation, err error) uint32 {
	if !o.wmi {
		code := win32Status(err)
		if code != 0 && code != win32.ErrMoreData && code != win32.ErrInsufficientBuffer {
			c.out.data = c.out.data[:8]
		}
		return code
	}
	if err == nil {
		return 0
	}
	hresult, code, text := cimStatus(err)
	c.out.data = c.out.data[:8]
	c.out.u32(code)
	c.out.text(text)
	return hresult
}

// win32Status is the Windows error number of a failure; 0 for none.
func win32Status(err error) uint32 {
	var failure *win32.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failure):
		return failure.Code
	case errors.Is(err, context.DeadlineExceeded):
		return win32.ErrSemTimeout
	case errors.Is(err, context.Canceled):
		return errOperationAborted
	}
	return errInternal
}

// cimStatus is the HRESULT of a failure and what the provider says beside it.
func cimStatus(err error) (hresult, code uint32, text string) {
	var failure *cim.Error
	switch {
	case errors.As(err, &failure):
		return failure.HRESULT, failure.Win32, failure.Text
	case errors.Is(err, context.DeadlineExceeded):
		return cim.ProviderTimedOut, 0, ""
	case errors.Is(err, context.Canceled):
		return cim.ShuttingDown, 0, ""
	}
	return cim.Failed, 0, err.Error()
}
