package cim

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/go-ole/go-ole"
	"golang.org/x/sys/windows"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// provider is what the stand-in counts.
type provider struct{ objects, threadFaults *windows.LazyProc }

func countingProvider() provider {
	library := windows.NewLazySystemDLL("csiwbem.dll")
	return provider{library.NewProc("CsiWbemLiveObjects"), library.NewProc("CsiWbemThreadFaults")}
}

func number(t *testing.T, proc *windows.LazyProc) int {
	t.Helper()
	if err := proc.Find(); err != nil {
		t.Fatal(err)
	}
	n, _, _ := proc.Call()
	return int(int32(n))
}

// inApartment reports whether any thread of the process keeps the multithreaded
// apartment alive. Source: CoGetApartmentType.
func inApartment(t *testing.T) bool {
	t.Helper()
	const (
		singleThreaded, mainSingleThreaded = 0, 3
		notInitialized                     = 0x800401F0
	)
	asked := windows.NewLazySystemDLL("ole32.dll").NewProc("CoGetApartmentType")
	for {
		var kind, qualifier int32
		var hr uintptr
		var one sync.WaitGroup
		one.Go(func() {
			runtime.LockOSThread() // and the thread ends with the goroutine
			hr, _, _ = asked.Call(uintptr(unsafe.Pointer(&kind)), uintptr(unsafe.Pointer(&qualifier)))
		})
		one.Wait()
		switch {
		case uint32(hr) == notInitialized:
			return false
		case hr != 0:
			t.Fatalf("CoGetApartmentType: 0x%X", hr)
		case kind != singleThreaded && kind != mainSingleThreaded:
			return true
		}
		// A thread that takeThreads left behind knows nothing of the others.
	}
}

// takeThreads leaves threads behind that are in an apartment of their own, as a
// careless library would.
func takeThreads(t *testing.T, count int) (giveBack func()) {
	t.Helper()
	var taken, held sync.WaitGroup
	release := make(chan struct{})
	for range count {
		taken.Add(1)
		held.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			const already = 1 // S_FALSE: a run before left this thread
			var e *ole.OleError
			err := ole.CoInitializeEx(0, ole.COINIT_APARTMENTTHREADED)
			if err != nil && (!errors.As(err, &e) || e.Code() != already) {
				t.Errorf("CoInitializeEx: %v", err)
			}
			taken.Done()
			<-release
		})
	}
	taken.Wait()
	return func() {
		close(release)
		held.Wait()
	}
}

// Every call into COM runs on a thread that is locked and in the apartment, objects
// are let go of on the thread that made them, and when the session is closed no
// object is left and every initialisation has been taken back.
func TestC057_ParallelCalls(t *testing.T) {
	l := newLab(t)
	const callers, rounds = 64, 20
	numbers := make([]uint32, 8)
	for i := range numbers {
		numbers[i] = l.Attach(sim.DiskSpec{SizeBytes: int64(i+1) << 30})
	}
	counts := countingProvider()
	takeThreads(t, 16)()
	session, err := cim.Connect()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			i := caller % len(numbers)
			for range rounds {
				rows, err := disks.Rows(t.Context(), session, cim.Equal("Number", numbers[i]))
				if err != nil || len(rows) != 1 || rows[0].SizeBytes != uint64(i+1)<<30 {
					t.Errorf("disk %d: %+v, %v", numbers[i], rows, err)
					return
				}
				in := cim.Values{"PartitionStyle": fmt.Sprint(caller)} // refused on our side
				if _, err := session.Exec(t.Context(), cim.NamespaceStorage, rows[0].Path, "Initialize", in); err == nil {
					t.Error("a text was taken for a number")
				}
				if result, err := session.Exec(t.Context(), cim.NamespaceStorage, rows[0].Path, "Refresh", nil); err != nil || result.ReturnValue != 0 {
					t.Errorf("Refresh: %+v, %v", result, err)
				}
			}
		})
	}
	all.Wait()
	l.OK(session.Close())
	l.OK(l.session.Close())
	if n := number(t, counts.threadFaults); n != 0 {
		t.Errorf("%d objects were made or let go of on a wrong thread", n)
	}
	if n := number(t, counts.objects); n != 0 {
		t.Errorf("%d COM objects are left", n)
	}
	if inApartment(t) {
		t.Error("an initialisation of COM was not taken back")
	}
}
