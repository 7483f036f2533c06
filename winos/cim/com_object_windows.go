package cim

import (
	"errors"
	"syscall"
	"unsafe"

	"github.com/go-ole/go-ole"
	"golang.org/x/sys/windows"
)

var (
	clsidLocator   = ole.NewGUID("{4590F811-1D3A-11D0-891F-00AA004B2E24}")
	iidLocator     = ole.NewGUID("{DC12A687-737F-11CF-884D-00AA004B2E24}")
	iidClassObject = ole.NewGUID("{DC12A681-737F-11CF-884D-00AA004B2E24}")

	ole32                 = windows.NewLazySystemDLL("ole32.dll")
	procCoSetProxyBlanket = ole32.NewProc("CoSetProxyBlanket")
	oleaut32              = windows.NewLazySystemDLL("oleaut32.dll")
	procGetErrorInfo      = oleaut32.NewProc("GetErrorInfo")
)

// Slots of the interfaces' tables of functions. Source: wbemcli.h.
const (
	slotQueryInterface = 0
	slotRelease        = 2
	slotConnectServer  = 3  // IWbemLocator
	slotGetObject      = 6  // IWbemServices
	slotExecQuery      = 20 // IWbemServices
	slotExecMethod     = 24 // IWbemServices
	slotEnumNext       = 4  // IEnumWbemClassObject
	slotGet            = 4  // IWbemClassObject and below
	slotPut            = 5
	slotBeginEnum      = 8
	slotNext           = 9
	slotEndEnum        = 10
	slotSpawnInstance  = 15
	slotGetMethod      = 19
)

const nonSystemOnly = 0x40 // WBEM_FLAG_NONSYSTEM_ONLY

// object is a COM interface: a pointer to a table of functions.
type object struct {
	table *[64]uintptr
}

// call calls a function of the interface and returns its HRESULT. The arguments
// are pointers turned into numbers in the call itself; the directive keeps what
// they point to alive and where it is.
//
//go:uintptrescapes
func (o *object) call(slot int, args ...uintptr) uint32 {
	all := make([]uintptr, 0, 9)
	all = append(append(all, uintptr(unsafe.Pointer(o))), args...)
	hr, _, _ := syscall.SyscallN(o.table[slot], all...)
	return uint32(hr)
}

// release lets go of the object; nil is allowed.
func (o *object) release() {
	if o != nil {
		o.call(slotRelease)
	}
}

func failed(hr uint32) bool { return int32(hr) < 0 }

// instance reads every property that the object has. Errors are those of an
// operation on something; on an object of a query when on is empty.
func (o *object) instance(op, on string) (Instance, error) {
	instance := Instance{Props: Values{}}
	instance.Class, _ = o.system("__CLASS")
	instance.Path, _ = o.system("__RELPATH")
	if on == "" {
		on = instance.Class
	}
	if hr := o.call(slotBeginEnum, nonSystemOnly); failed(hr) {
		return instance, &Error{Op: op, Object: on, HRESULT: hr}
	}
	defer o.call(slotEndEnum)
	for {
		var name *int16
		var value ole.VARIANT
		var cimType Type
		hr := o.call(slotNext, 0, uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&value)),
			uintptr(unsafe.Pointer(&cimType)), 0)
		if failed(hr) {
			return instance, &Error{Op: op, Object: on, HRESULT: hr}
		}
		if name == nil { // WBEM_S_NO_MORE_DATA
			return instance, nil
		}
		property := bstrText(name)
		freeBSTR(name)
		converted, err := fromVariant(&value, cimType)
		_ = value.Clear()
		if err != nil {
			return instance, &Error{Op: op, Object: on, HRESULT: TypeMismatch, Text: property + ": " + oneLine(err.Error())}
		}
		instance.Props[property] = converted
	}
}

// system reads a system property that is a text; ok is false for NULL.
func (o *object) system(name string) (text string, ok bool) {
	var value ole.VARIANT
	hr := o.call(slotGet, uintptr(unsafe.Pointer(wide(name))), 0, uintptr(unsafe.Pointer(&value)), 0, 0)
	if failed(hr) {
		return "", false
	}
	defer func() { _ = value.Clear() }()
	if value.VT != ole.VT_BSTR {
		return "", false
	}
	return variantText(&value), true
}

// put sets an in-parameter with the type that its signature gives it, and returns
// an HRESULT.
func (o *object) put(name string, value any) uint32 {
	var present ole.VARIANT
	var cimType Type
	property := wide(name)
	hr := o.call(slotGet, uintptr(unsafe.Pointer(property)), 0, uintptr(unsafe.Pointer(&present)),
		uintptr(unsafe.Pointer(&cimType)), 0)
	_ = present.Clear()
	if failed(hr) {
		return InvalidMethodParam
	}
	variant, err := toVariant(value, cimType)
	if err != nil {
		return TypeMismatch
	}
	hr = o.call(slotPut, uintptr(unsafe.Pointer(property)), 0, uintptr(unsafe.Pointer(&variant)), 0)
	_ = variant.Clear()
	return hr
}

// failure makes the error of an HRESULT, with what the thread's error object
// adds. It must run on the thread of the failed call, right after it. Source:
// GetErrorInfo; MSFT_WmiError, __ExtendedStatus.
func (w *worker) failure(op, on string, hr uint32) error {
	e := &Error{Op: op, Object: on, HRESULT: hr}
	var info *object
	got, _, _ := procGetErrorInfo.Call(0, uintptr(unsafe.Pointer(&info)))
	if got != 0 || info == nil {
		return e
	}
	defer info.release()
	var details *object
	if failed(info.call(slotQueryInterface, uintptr(unsafe.Pointer(iidClassObject)), uintptr(unsafe.Pointer(&details)))) {
		return e
	}
	defer details.release()
	status, err := details.instance(op, on)
	if err != nil {
		return e
	}
	if code, ok := Uint64(status.Props, "error_Code"); ok {
		e.Win32 = uint32(code)
	}
	e.Text = saidBy(status.Props)
	return e
}

// comError is the error of a call of go-ole.
func comError(op, on string, err error) error {
	var e *ole.OleError
	if errors.As(err, &e) {
		return &Error{Op: op, Object: on, HRESULT: uint32(e.Code())}
	}
	return &Error{Op: op, Object: on, HRESULT: Failed, Text: err.Error()}
}

// setProxyBlanket lets the provider act as this process, and encrypts the way to it.
func setProxyBlanket(proxy *object) uint32 {
	hr, _, _ := procCoSetProxyBlanket.Call(uintptr(unsafe.Pointer(proxy)), authnWinNT, authzNone, 0,
		levelPrivacy, levelImpersonate, 0, 0)
	return uint32(hr)
}

// wide is a text as the class object functions take it. A name of ours has no NUL.
func wide(text string) *uint16 {
	p, err := windows.UTF16PtrFromString(text)
	if err != nil {
		return new(uint16)
	}
	return p
}

// bstrText reads a BSTR up to its first NUL: the length of one may count more.
func bstrText(b *int16) string {
	return windows.UTF16ToString(unsafe.Slice((*uint16)(unsafe.Pointer(b)), ole.SysStringLen(b)))
}

// variantText is the text of a VT_BSTR; a null pointer is the empty text.
func variantText(v *ole.VARIANT) string {
	return bstrText(*(**int16)(unsafe.Pointer(&v.Val)))
}

func freeBSTR(b *int16) { _ = ole.SysFreeString(b) }
