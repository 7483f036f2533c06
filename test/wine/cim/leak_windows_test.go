package cim

import (
	"fmt"
	"runtime/debug"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// usage is what a leak would add to.
type usage struct {
	handles, threads, objects int
	workingSetBytes           int // texts and arrays that nobody freed
}

// measure counts the handles, threads and bytes of this process, and the COM
// objects of the provider.
func measure(t *testing.T) usage {
	t.Helper()
	debug.FreeOSMemory() // what is left is not Go's
	return usage{handles(t), threads(t), number(t, countingProvider().objects), workingSet(t)}
}

// workingSet is the memory in use. Source: PROCESS_MEMORY_COUNTERS.
func workingSet(t *testing.T) int {
	t.Helper()
	var counters struct {
		size, pageFaults           uint32
		peakBytes, workingSetBytes uintptr
		_                          [6]uintptr
	}
	counters.size = uint32(unsafe.Sizeof(counters))
	ok, _, err := windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo").
		Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&counters)), uintptr(counters.size))
	if ok == 0 || counters.workingSetBytes == 0 {
		t.Fatalf("GetProcessMemoryInfo: %v", err)
	}
	return int(counters.workingSetBytes)
}

// handles asks as GetProcessHandleCount does, which says 0 under Wine. Source:
// NtQuerySystemInformation, SYSTEM_PROCESS_INFORMATION.
func handles(t *testing.T) int {
	t.Helper()
	buffer := make([]uint64, 1<<17) // aligned
	var size uint32
	err := windows.NtQuerySystemInformation(windows.SystemProcessInformation, unsafe.Pointer(&buffer[0]), uint32(8*len(buffer)), &size)
	if err != nil {
		t.Fatal(err)
	}
	for at := uintptr(0); ; {
		process := (*windows.SYSTEM_PROCESS_INFORMATION)(unsafe.Add(unsafe.Pointer(&buffer[0]), at))
		if process.UniqueProcessID == uintptr(windows.GetCurrentProcessId()) {
			if process.HandleCount == 0 {
				t.Fatal("the system does not count handles")
			}
			return int(process.HandleCount)
		}
		if process.NextEntryOffset == 0 {
			t.Fatal("the system does not know this process")
		}
		at += uintptr(process.NextEntryOffset)
	}
}

func threads(t *testing.T) (count int) {
	t.Helper()
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID == windows.GetCurrentProcessId() {
			count++
		}
	}
	return count
}

// mixedCalls makes queries, methods and failures of both, from a few callers.
func (l *lab) mixedCalls(d diskRow, calls int) {
	l.Helper()
	const callers = 4
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range calls / callers {
				if err := l.oneOfMany(d, i); err != nil {
					l.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// oneOfMany is mostly a query; every tenth call is something else.
func (l *lab) oneOfMany(d diskRow, i int) error {
	switch i % 40 {
	case 10:
		result, err := l.session.Exec(l.Context(), cim.NamespaceStorage, d.Path, "Refresh", nil)
		if err != nil || result.ReturnValue != 0 {
			return fmt.Errorf("Refresh: %+v, %w", result, err)
		}
	case 20:
		if _, err := l.session.Query(l.Context(), cim.NamespaceStorage, "SELECT * FROM MSFT_Nonsense"); err == nil {
			return fmt.Errorf("a class that is not there was queried")
		}
	case 30:
		_, err := l.session.Exec(l.Context(), cim.NamespaceStorage, `MSFT_Disk.ObjectId="x"`, "Initialize", cim.Values{"PartitionStyle": uint16(2)})
		if err == nil {
			return fmt.Errorf("a disk that is not there was initialised")
		}
	default:
		rows, err := disks.Rows(l.Context(), l.session, cim.Equal("Number", d.Number))
		if err != nil || len(rows) != 1 {
			return fmt.Errorf("%d rows, %w", len(rows), err)
		}
	}
	return nil
}

// Nothing is left behind by 100,000 calls.
func TestCountsAreFlat(t *testing.T) {
	l := newLab(t)
	d := l.disk(l.Attach(sim.DiskSpec{}))
	const (
		settling   = 5_000   // calls until every worker and what it keeps is there
		slack      = 8       // threads come and go with Go's own needs
		slackBytes = 8 << 20 // 80 for each of 100,000 calls; a row has many more
	)
	calls := 100_000
	if testing.Short() { // test/wine/verify asks only which code is executed
		calls = 2_000
	}
	l.mixedCalls(d, settling)
	before := measure(t)
	l.mixedCalls(d, calls)
	after := measure(t)
	t.Logf("before %+v, after %+v", before, after)
	if after.handles > before.handles+slack || after.threads > before.threads+slack {
		t.Errorf("before %d calls %+v, after them %+v", calls, before, after)
	}
	if after.workingSetBytes > before.workingSetBytes+slackBytes {
		t.Errorf("%d bytes before %d calls, %d after them", before.workingSetBytes, calls, after.workingSetBytes)
	}
	// A worker keeps a connection, a signature, and its thread's last error with its
	// details.
	workers := l.session.(cim.Counting).Stats().Workers
	if most := before.objects + 4*workers; after.objects > most {
		t.Errorf("%d COM objects before, %d after, want at most %d", before.objects, after.objects, most)
	}
}
