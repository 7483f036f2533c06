package cim

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/go-ole/go-ole"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/wine/standin"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// The tests of this file call the stand-in itself, where the COM session has no
// use for what WMI offers: they check that it answers as the WMI SDK says.

// Slots of the interfaces, and what they return. Source: wbemcli.h.
const (
	slotConnectServer = 3
	slotReset         = 3
	slotNext          = 4
	slotSkip          = 7
	slotGetObject     = 6
	slotCreateEnum    = 18
	slotExecQuery     = 20
	slotGet           = 4
	slotPut           = 5
	slotClone         = 12
	slotSpawn         = 15
	slotGetMethod     = 19

	infinite         = 0xFFFFFFFF
	wbemFalse        = 1
	wbemTimedOut     = 0x40004
	illegalOperation = 0x8004101E
	invalidOperation = 0x80041016
	invalidQueryType = 0x80041018
	notSupported     = 0x8004100C
)

// object is a COM object as the tests call it.
type object struct{ table *[64]uintptr }

//go:uintptrescapes
func (o *object) call(slot int, args ...uintptr) uint32 {
	hr, _, _ := syscall.SyscallN(o.table[slot], append([]uintptr{uintptr(unsafe.Pointer(o))}, args...)...)
	return uint32(hr)
}

func (o *object) release() { o.call(2) }

func (o *object) text(t *testing.T, name string) string {
	t.Helper()
	var v ole.VARIANT
	wide, _ := syscall.UTF16PtrFromString(name)
	if hr := o.call(slotGet, uintptr(unsafe.Pointer(wide)), 0, uintptr(unsafe.Pointer(&v)), 0, 0); hr != 0 {
		t.Fatalf("Get %s: 0x%X", name, hr)
	}
	defer v.Clear()
	return v.ToString()
}

// put puts a VARIANT of a type and bits.
func (o *object) put(name string, vt ole.VT, bits int64, cimType uintptr) uint32 {
	v := ole.NewVariant(vt, bits)
	wide, _ := syscall.UTF16PtrFromString(name)
	return o.call(slotPut, uintptr(unsafe.Pointer(wide)), 0, uintptr(unsafe.Pointer(&v)), cimType)
}

// wmi is a connection of the test's own thread.
type wmi struct {
	*lab
	services *object
}

func newWMI(l *lab) *wmi {
	l.Helper()
	runtime.LockOSThread() // until the end of the test's goroutine, and with it of the thread
	l.OK(ole.CoInitializeEx(0, ole.COINIT_MULTITHREADED))
	unknown, err := ole.CreateInstance(ole.NewGUID("{4590F811-1D3A-11D0-891F-00AA004B2E24}"), ole.NewGUID("{DC12A687-737F-11CF-884D-00AA004B2E24}"))
	l.OK(err)
	locator := (*object)(unsafe.Pointer(unknown))
	w := &wmi{lab: l}
	hr := locator.call(slotConnectServer, bstr(cim.NamespaceStorage), 0, 0, 0, 0, 0, 0, uintptr(unsafe.Pointer(&w.services)))
	locator.release()
	w.is("ConnectServer", hr, 0)
	return w
}

func (w *wmi) close() {
	w.services.release()
	ole.CoUninitialize()
}

// bstr leaks a few bytes, which a test may.
func bstr(text string) uintptr { return uintptr(unsafe.Pointer(ole.SysAllocStringLen(text))) }

func (w *wmi) is(what string, hr, want uint32) {
	w.Helper()
	if hr != want {
		w.Errorf("%s: 0x%X, want 0x%X", what, hr, want)
	}
}

func (w *wmi) get(path string) (*object, uint32) {
	var out *object
	hr := w.services.call(slotGetObject, bstr(path), 0, 0, uintptr(unsafe.Pointer(&out)), 0)
	return out, hr
}

func (w *wmi) query(language, wql string, flags uintptr) (*object, uint32) {
	var out *object
	hr := w.services.call(slotExecQuery, bstr(language), bstr(wql), flags, 0, uintptr(unsafe.Pointer(&out)))
	return out, hr
}

// next asks for up to count rows, and returns how many came.
func (o *object) next(timeoutMillis uintptr, count int) (came int, hr uint32) {
	rows := make([]*object, count)
	var returned uint32
	hr = o.call(slotNext, timeoutMillis, uintptr(count), uintptr(unsafe.Pointer(&rows[0])), uintptr(unsafe.Pointer(&returned)))
	for _, row := range rows[:returned] {
		row.release()
	}
	return int(returned), hr
}

func TestGetObject(t *testing.T) {
	l := newLab(t)
	l.iscsi()
	l.call(cim.NamespaceStorage, "MSFT_iSCSITargetPortal", "MSFT_iSCSITargetPortal", "New",
		cim.Values{"TargetPortalAddress": "10.0.0.1", "TargetPortalPortNumber": uint16(3261)})
	w := newWMI(l)
	defer w.close()
	const path = `MSFT_iSCSITarget.NodeAddress="` + iqn + `"`
	for _, spelling := range []string{path, `\\.\` + cim.NamespaceStorage + ":" + path, `msft_iSCSITarget="` + iqn + `"`} {
		instance, hr := w.get(spelling)
		w.is(spelling, hr, 0)
		if hr != 0 {
			continue
		}
		if got := instance.text(t, "__RELPATH"); got != path {
			t.Errorf("%s is %s", spelling, got)
		}
		if got := instance.text(t, "__PATH"); got != `\\.\`+cim.NamespaceStorage+":"+path {
			t.Errorf("the whole path is %s", got)
		}
		w.is("GetMethod of an instance", instance.call(slotGetMethod, bstr("Connect"), 0, 0, 0), illegalOperation)
		var spawned *object
		w.is("SpawnInstance of an instance", instance.call(slotSpawn, 0, uintptr(unsafe.Pointer(&spawned))), illegalOperation)
		w.is("Clone", instance.call(slotClone, uintptr(unsafe.Pointer(&spawned))), notSupported)
		instance.release()
	}
	for _, missing := range []string{`MSFT_iSCSITarget.NodeAddress="none"`, "MSFT_Nonsense", `MSFT_iSCSITarget="none"`} {
		_, hr := w.get(missing)
		w.is(missing, hr, cim.NotFound)
	}
}

// Only the VARIANT type that belongs to the CIM type is taken. Source: "Numbers",
// WMI SDK.
func TestPutChecksTypes(t *testing.T) {
	w := newWMI(newLab(t))
	defer w.close()
	definition, hr := w.get("MSFT_Disk")
	w.is("GetObject", hr, 0)
	defer definition.release()
	var in, parameters *object
	w.is("GetMethod", definition.call(slotGetMethod, bstr("createPartition"), 0, uintptr(unsafe.Pointer(&in)), 0), 0)
	defer in.release()
	w.is("GetMethod of none", definition.call(slotGetMethod, bstr("Explode"), 0, 0, 0), cim.NotFound)
	w.is("Put into the signature", in.put("Alignment", ole.VT_I4, 1, 0), notSupported)
	w.is("SpawnInstance", in.call(slotSpawn, 0, uintptr(unsafe.Pointer(&parameters))), 0)
	defer parameters.release()
	number, words := bstr("4096"), bstr("0x1000")
	for _, tt := range []struct {
		name string
		vt   ole.VT
		bits int64
		want uint32
	}{
		{"Alignment", ole.VT_I4, 4096, 0},
		{"Alignment", ole.VT_I2, 4096, cim.TypeMismatch},
		{"Alignment", ole.VT_UI4, 4096, cim.TypeMismatch},
		{"Alignment", ole.VT_NULL, 0, 0},
		{"MbrType", ole.VT_I4, 7, 0},
		{"MbrType", ole.VT_I4, 65536, cim.TypeMismatch},
		{"Size", ole.VT_BSTR, int64(number), 0},
		{"Size", ole.VT_BSTR, int64(words), cim.TypeMismatch},
		{"Size", ole.VT_I8, 4096, cim.TypeMismatch},
		{"UseMaximumSize", ole.VT_BOOL, 0xFFFF, 0},
		{"UseMaximumSize", ole.VT_BOOL, 1, cim.TypeMismatch},
		{"UseMaximumSize", ole.VT_I4, 1, cim.TypeMismatch},
		{"DriveLetter", ole.VT_I2, 'X', 0},
		{"GptType", ole.VT_BSTR, int64(words), 0},
		{"Nonsense", ole.VT_I4, 1, cim.NotFound},
		{"__CLASS", ole.VT_BSTR, int64(words), 0x80041031},
	} {
		if hr := parameters.put(tt.name, tt.vt, tt.bits, 0); hr != tt.want {
			t.Errorf("%s of VARIANT type %d, 0x%X: 0x%X, want 0x%X", tt.name, tt.vt, tt.bits, hr, tt.want)
		}
	}
	const uint16Type, uint32Type = 18, 19
	w.is("Put with the type", parameters.put("Alignment", ole.VT_I4, 1, uint32Type), 0)
	w.is("Put with another type", parameters.put("Alignment", ole.VT_I4, 1, uint16Type), cim.TypeMismatch)
}

func TestEnumerator(t *testing.T) {
	l := newLab(t)
	present := len(l.allDisks())
	for range 3 {
		l.Attach(sim.DiskSpec{})
	}
	w := newWMI(l)
	defer w.close()
	const immediately = 0x30
	rows, hr := w.query("WQL", allDisks, immediately)
	w.is("ExecQuery", hr, 0)
	if came, hr := rows.next(infinite, 2); came != 2 || hr != 0 {
		t.Errorf("the first two: %d, 0x%X", came, hr)
	}
	if came, hr := rows.next(infinite, 16); came != present+1 || hr != wbemFalse {
		t.Errorf("the rest: %d, 0x%X, want %d with %d", came, hr, present+1, wbemFalse)
	}
	if came, hr := rows.next(infinite, 1); came != 0 || hr != wbemFalse {
		t.Errorf("after the end: %d, 0x%X", came, hr)
	}
	w.is("Reset", rows.call(slotReset), invalidOperation)
	rows.release()

	l.Arm(standin.Fault{Op: "Query", Kind: standin.FaultSlow, DelayMilliseconds: 400})
	rows, hr = w.query("WQL", allDisks, immediately)
	w.is("slow ExecQuery", hr, 0)
	if came, hr := rows.next(0, 1); came != 0 || hr != wbemTimedOut {
		t.Errorf("at once: %d, 0x%X", came, hr)
	}
	w.is("Skip", rows.call(slotSkip, infinite, 2), 0)
	w.is("Skip to the end", rows.call(slotSkip, infinite, 100), wbemFalse)
	rows.release()

	rows, hr = w.query("WQL", "SELECT * FROM MSFT_Nonsense", immediately)
	w.is("ExecQuery that returns at once", hr, 0)
	_, hr = rows.next(infinite, 1)
	w.is("Next", hr, cim.InvalidClass)
	rows.release()
	_, hr = w.query("WQL", "SELECT * FROM MSFT_Nonsense", 0)
	w.is("ExecQuery that waits", hr, cim.InvalidClass)
	_, hr = w.query("SQL", allDisks, immediately)
	w.is("another language", hr, invalidQueryType)

	w.is("CreateInstanceEnum", w.services.call(slotCreateEnum, bstr("MSFT_Disk"), 0, 0, uintptr(unsafe.Pointer(&rows))), 0)
	if came, _ := rows.next(infinite, 16); came != present+3 {
		t.Errorf("%d instances, want %d", came, present+3)
	}
	rows.release()
}

func (l *lab) allDisks() []diskRow {
	l.Helper()
	rows, err := disks.Rows(l.Context(), l.session)
	l.OK(err)
	return rows
}
