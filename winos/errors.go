package winos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// hresultKinds are the failures of WMI itself. Source: wbemcli.h.
var hresultKinds = map[uint32]host.Kind{
	cim.NotFound:           host.KindNotFound,
	cim.AccessDenied:       host.KindDenied,
	cim.InvalidParameter:   host.KindInvalid,
	cim.InvalidMethodParam: host.KindInvalid,
	cim.InvalidObjectPath:  host.KindInvalid,
	cim.InvalidNamespace:   host.KindUnsupported,
	cim.InvalidClass:       host.KindUnsupported,
	cim.InvalidMethod:      host.KindUnsupported,
	cim.QuotaViolation:     host.KindExhausted,
	0x80041006:             host.KindExhausted,   // WBEM_E_OUT_OF_MEMORY
	0x8004100C:             host.KindUnsupported, // WBEM_E_NOT_SUPPORTED
	0x80041019:             host.KindExists,      // WBEM_E_ALREADY_EXISTS
	0x80041055:             host.KindUnsupported, // WBEM_E_METHOD_NOT_IMPLEMENTED
	0x80041062:             host.KindDenied,      // WBEM_E_PRIVILEGE_NOT_HELD
	0x80041069:             host.KindTimeout,     // WBEM_E_TIMED_OUT
}

const (
	facilityWin32 = 0x8007
	codeHalf      = 0xFFFF
)

// fail makes the *host.Error of an operation that ended with err. An error that
// is one already stays as it is: the place that made it knew more.
func fail(op, object string, err error) error {
	var done *host.Error
	if errors.As(err, &done) {
		return err
	}
	return failAs(kindOf(err), op, object, err)
}

// failAs is fail with a kind that the caller knows better.
func failAs(kind host.Kind, op, object string, cause error) error {
	return &host.Error{Op: op, Object: object, Kind: kind, Cause: cause}
}

// kindOf sorts a failure of the layers below.
func kindOf(err error) host.Kind {
	var ofWin32 *win32.Error
	var ofMethod *cim.ReturnError
	var ofWMI *cim.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return host.KindTimeout
	case errors.As(err, &ofWin32):
		return meaningOfWin32(ofWin32.Code).kind
	case errors.As(err, &ofMethod):
		return meaningOfReturn(ofMethod.Class, ofMethod.Code).kind
	case errors.As(err, &ofWMI):
		return kindOfWMI(ofWMI)
	}
	return host.KindInternal
}

func kindOfWMI(e *cim.Error) host.Kind {
	if code, ok := systemCode(e); ok {
		return meaningOfWin32(code).kind
	}
	if cim.Transient(e) {
		return host.KindUnavailable
	}
	return hresultKinds[e.HRESULT]
}

// systemCode returns the Win32 or ISDSC number that a failure of WMI carries,
// beside its HRESULT or in it.
func systemCode(e *cim.Error) (code uint32, ok bool) {
	switch {
	case e.Win32 != 0:
		return e.Win32, true
	case isISDSC(e.HRESULT):
		return e.HRESULT, true
	case e.HRESULT>>16 == facilityWin32:
		return e.HRESULT & codeHalf, true
	}
	return 0, false
}

// meaningOfWin32 looks up a system error number, ISDSC codes included: the
// providers hand both out through one door.
func meaningOfWin32(code uint32) meaning {
	if isISDSC(code) {
		return iscsiCodes[code&codeHalf]
	}
	return win32Codes[code]
}

// meaningOfReturn looks up the return value of a method. The storage management
// classes have numbers of their own; the iSCSI and SMB classes pass on those of
// the libraries below them.
func meaningOfReturn(class string, code uint32) meaning {
	if strings.HasPrefix(class, "MSFT_iSCSI") || strings.HasPrefix(class, "MSFT_Smb") || isISDSC(code) {
		return meaningOfWin32(code)
	}
	return storageCodes[code]
}

// systemCodeOf returns the Win32 or ISDSC number of a failure, whichever way it
// surfaced: a call of the API, an error object of WMI, or a return value.
func systemCodeOf(err error) (code uint32, ok bool) {
	var ofWin32 *win32.Error
	if errors.As(err, &ofWin32) {
		return ofWin32.Code, true
	}
	var ofWMI *cim.Error
	if errors.As(err, &ofWMI) {
		return systemCode(ofWMI)
	}
	return cim.ReturnCode(err)
}

// isWin32 reports whether err is a call that failed with one of the numbers.
func isWin32(err error, codes ...uint32) bool {
	var e *win32.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.Code == code {
			return true
		}
	}
	return false
}

// returned reports whether err is a method that returned one of the codes.
func returned(err error, codes ...uint32) bool {
	got, ok := cim.ReturnCode(err)
	if !ok {
		return false
	}
	for _, code := range codes {
		if got == code {
			return true
		}
	}
	return false
}

// withoutSecrets removes the provider's own words from a failure when they
// repeat a secret that was handed in.
func withoutSecrets(err error, secrets ...string) error {
	repeats := func(text string) bool {
		return slices.ContainsFunc(secrets, func(secret string) bool { return secret != "" && strings.Contains(text, secret) })
	}
	var ofWMI *cim.Error
	if errors.As(err, &ofWMI) && repeats(ofWMI.Text) {
		clean := *ofWMI
		clean.Text = ""
		return &clean
	}
	var ofMethod *cim.ReturnError
	if errors.As(err, &ofMethod) && repeats(ofMethod.Text) {
		clean := *ofMethod
		clean.Text = ""
		return &clean
	}
	return err
}

// hinted adds what an operator can do about a failure.
func hinted(err error, hint string) error {
	return fmt.Errorf("%w (%s)", err, hint)
}

func notFound(op, object string) error {
	return failAs(host.KindNotFound, op, object, nil)
}
