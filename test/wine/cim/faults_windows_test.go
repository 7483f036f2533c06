package cim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/test/wine/standin"
	"github.com/csi-windows/csi-windows/winos/cim"
)

const (
	diskClass = "MSFT_Disk"
	allDisks  = "SELECT Number FROM MSFT_Disk"
	refresh   = diskClass + ".Refresh"
)

// newDisk is a lab with one disk.
func newDisk(t *testing.T) (*lab, diskRow) {
	t.Helper()
	l := newLab(t)
	return l, l.disk(l.Attach(sim.DiskSpec{}))
}

// served checks that other calls are answered.
func (l *lab) served() {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	if rows, err := l.session.Query(ctx, cim.NamespaceStorage, allDisks); err != nil || len(rows) == 0 {
		l.Errorf("another query: %d rows, %v", len(rows), err)
	}
	result, err := l.session.Exec(ctx, cim.NamespaceStorage, "MSFT_StorageSetting", "UpdateHostStorageCache", nil)
	if err != nil || result.ReturnValue != 0 {
		l.Errorf("another method: %+v, %v", result, err)
	}
}

// hung waits until the session counts as many hung calls.
func (l *lab) hung(want int) {
	l.Helper()
	deadline := time.Now().Add(patience)
	for {
		stats := l.session.(cim.Counting).Stats()
		if stats.Hung == want {
			return
		}
		if time.Now().After(deadline) {
			l.Fatalf("stats %+v, want %d hung calls", stats, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// soon is a context that ends before the provider answers.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestSlowProvider(t *testing.T) {
	l, _ := newDisk(t)
	l.Arm(standin.Fault{Op: "Query", Class: "MSFT_Partition", Kind: standin.FaultSlow, DelayMilliseconds: 1000})
	done := make(chan error, 1)
	go func() {
		_, err := l.session.Query(l.Context(), cim.NamespaceStorage, "SELECT ObjectId FROM MSFT_Partition")
		done <- err
	}()
	l.served()
	l.OK(<-done)
}

// A query that hangs is left at the end of its context; its worker notices the
// same and comes back.
func TestInvariant7_HungQuery(t *testing.T) {
	l, _ := newDisk(t)
	const calls = 20 // more than there are workers
	l.Arm(standin.Fault{Op: "Query", Class: "MSFT_Volume", Kind: standin.FaultHang, Times: calls})
	ctx, done := soon(t), make(chan error, calls)
	for range calls {
		go func() {
			_, err := l.session.Query(ctx, cim.NamespaceStorage, "SELECT ObjectId FROM MSFT_Volume")
			done <- err
		}()
	}
	for range calls {
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
	}
	l.served()
	l.hung(0)
	if stats := l.session.(cim.Counting).Stats(); stats.HungTotal == 0 {
		t.Errorf("stats %+v: no call was counted", stats)
	}
}

// A method that hangs keeps its worker, which is replaced and counted, and its
// caller, who must not let go of the disk. Other calls are served.
func TestInvariant7_HungMethods(t *testing.T) {
	l, d := newDisk(t)
	const calls = 20
	l.Arm(standin.Fault{Op: "Exec", Class: diskClass, Method: "Refresh", Kind: standin.FaultHang, Times: calls})
	ctx, done := soon(t), make(chan error, calls)
	for range calls {
		go func() {
			_, err := l.session.Exec(ctx, cim.NamespaceStorage, d.Path, "Refresh", nil)
			done <- err
		}()
	}
	left := 0 // those that found no worker before their context ended
	for stats := (cim.Stats{}); stats.Hung+left < calls; stats = l.session.(cim.Counting).Stats() {
		select {
		case err := <-done:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("error %v before the provider was let go", err)
			}
			left++
		case <-time.After(20 * time.Millisecond):
		}
	}
	l.served()
	l.Post("reset", "")
	for range calls - left {
		failed(t, <-done, cim.RPCDisconnected, refresh)
	}
	l.hung(0)
	l.served()
}

// What comes before a method is not waited for, and the method is not run later.
func TestHungSignature(t *testing.T) {
	l, d := newDisk(t)
	l.Arm(standin.Fault{Op: "Class", Class: diskClass, Kind: standin.FaultSlow, DelayMilliseconds: 5000})
	_, err := l.session.Exec(soon(t), cim.NamespaceStorage, d.Path, "Initialize", cim.Values{"PartitionStyle": uint16(2)})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
	l.hung(1)
	l.served()
	l.hung(0)
	if d = l.disk(d.Number); d.Style != 0 {
		t.Errorf("the disk was initialised after all: %+v", d)
	}
}

func TestDyingProvider(t *testing.T) {
	l, d := newDisk(t)
	query := func(session cim.Session) error {
		_, err := session.Query(t.Context(), cim.NamespaceStorage, allDisks)
		return err
	}
	l.Arm(standin.Fault{Op: "Query", Class: diskClass, Kind: standin.FaultDie})
	err := query(l.session)
	failed(t, err, cim.RPCDisconnected, diskClass)
	if !cim.Transient(err) || cim.NotRun(err) {
		t.Errorf("error %v: passes %v, did not run %v", err, cim.Transient(err), cim.NotRun(err))
	}
	l.OK(query(l.session)) // connected again

	l.Arm(standin.Fault{Op: "Exec", Method: "Refresh", Kind: standin.FaultDie})
	_, err = l.session.Exec(t.Context(), cim.NamespaceStorage, d.Path, "Refresh", nil)
	failed(t, err, cim.RPCDisconnected, refresh)

	fresh := bed.Session(t)
	l.Arm(standin.Fault{Op: "Namespace", Kind: standin.FaultDie})
	failed(t, query(fresh), cim.RPCDisconnected, cim.NamespaceStorage)
	l.OK(query(fresh))

	l.Arm(standin.Fault{Op: "Class", Class: diskClass, Kind: standin.FaultDie})
	_, err = fresh.Exec(t.Context(), cim.NamespaceStorage, d.Path, "Refresh", nil)
	failed(t, err, cim.RPCDisconnected, refresh)
}

// What died before it did anything is repeated; a method that may have run is not.
func TestRetryAfterDeath(t *testing.T) {
	l, d := newDisk(t)
	session := cim.Retrying(l.session, cim.RetryPolicy{FirstDelay: time.Millisecond})
	l.Arm(standin.Fault{Op: "Query", Class: diskClass, Kind: standin.FaultDie, Times: 2})
	if rows, err := session.Query(t.Context(), cim.NamespaceStorage, allDisks); err != nil || len(rows) == 0 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	l.Arm(standin.Fault{Op: "Exec", Method: "Initialize", Kind: standin.FaultDie, After: true})
	_, err := session.Exec(t.Context(), cim.NamespaceStorage, d.Path, "Initialize", cim.Values{"PartitionStyle": uint16(2)})
	failed(t, err, cim.RPCDisconnected, "MSFT_Disk.Initialize")
	if d = l.disk(d.Number); d.Style != 2 {
		t.Errorf("the disk is %+v", d)
	}
}

func TestGarbageOfAProvider(t *testing.T) {
	l, d := newDisk(t)
	l.Arm(standin.Fault{Op: "Query", Class: diskClass, Kind: standin.FaultGarbage})
	_, err := l.session.Query(t.Context(), cim.NamespaceStorage, allDisks)
	failed(t, err, cim.ProviderFailure, diskClass)

	for _, op := range []string{"Class", "Exec"} {
		l.Arm(standin.Fault{Op: op, Class: diskClass, Kind: standin.FaultGarbage})
		_, err = l.session.Exec(t.Context(), cim.NamespaceStorage, d.Path, "Refresh", nil)
		failed(t, err, cim.ProviderFailure, refresh)
	}

	l.Arm(standin.Fault{Op: "Query", Class: diskClass, Kind: standin.FaultNull})
	rows, err := disks.Rows(t.Context(), l.session)
	if err != nil || len(rows) == 0 || rows[0].SizeBytes != 0 || rows[0].Status != nil || rows[0].OfflineReason != nil {
		t.Errorf("rows of NULL: %+v, %v", rows, err)
	}
	l.Arm(standin.Fault{Op: "Exec", Method: "Refresh", Kind: standin.FaultNull})
	_, err = l.session.Exec(t.Context(), cim.NamespaceStorage, d.Path, "Refresh", nil)
	failed(t, err, cim.ProviderFailure, refresh)
	l.served()
}

// The error keeps the HRESULT, the Windows error beside it and a readable form of
// whatever text there was.
func TestAbsurdText(t *testing.T) {
	l, d := newDisk(t)
	text := "no \r\n\x00\x07\u202e\u2028 " + strings.Repeat("é", 1<<14)
	for _, win32 := range []uint32{0, 1326} {
		l.Arm(standin.Fault{Op: "Exec", Method: "Refresh", Kind: standin.FaultHRESULT, Code: cim.Failed, Win32: win32, Text: text})
		_, err := l.session.Exec(t.Context(), cim.NamespaceStorage, d.Path, "Refresh", nil)
		failure := failed(t, err, cim.Failed, refresh)
		if failure.Win32 != win32 || !strings.HasPrefix(failure.Text, "no") || len(failure.Text) > 1000 ||
			strings.ContainsFunc(failure.Text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("Windows error %d, %d bytes of text: %.100q", failure.Win32, len(failure.Text), failure.Text)
		}
	}
	l.Arm(standin.Fault{Op: "Query", Class: diskClass, Kind: standin.FaultHRESULT, Code: cim.AccessDenied})
	_, err := l.session.Query(t.Context(), cim.NamespaceStorage, allDisks)
	if failure := failed(t, err, cim.AccessDenied, diskClass); failure.Text != "" || failure.Win32 != 0 {
		t.Errorf("a failure about which nothing was said: %+v", failure)
	}
}

func TestRefusalsOfWMI(t *testing.T) {
	l, d := newDisk(t)
	exec := func(path, method string, in cim.Values) error {
		_, err := l.session.Exec(t.Context(), cim.NamespaceStorage, path, method, in)
		return err
	}
	_, err := l.session.Query(t.Context(), cim.NamespaceStorage, "SELECT * FROM MSFT_Nonsense")
	failed(t, err, cim.InvalidClass, "MSFT_Nonsense")
	_, err = l.session.Query(t.Context(), cim.NamespaceStorage, "SELECT nonsense")
	failed(t, err, cim.InvalidQuery, "WQL")
	failed(t, exec(d.Path, "Explode", nil), cim.NotFound, "MSFT_Disk.Explode")
	failed(t, exec("MSFT_Nonsense", "Refresh", nil), cim.NotFound, "MSFT_Nonsense.Refresh")
	failed(t, exec(`MSFT_Disk.ObjectId="none"`, "Refresh", nil), cim.NotFound, refresh)
	failed(t, exec(d.Path, "Refresh", cim.Values{"X": true}), cim.InvalidMethodParam, refresh)
	failed(t, exec(d.Path, "Initialize", cim.Values{"X": true}), cim.InvalidMethodParam, "MSFT_Disk.Initialize")
	failed(t, exec(d.Path, "Initialize", cim.Values{"PartitionStyle": "2"}), cim.TypeMismatch, "MSFT_Disk.Initialize")
	failed(t, exec(d.Path, "Initialize", cim.Values{"PartitionStyle": uint32(1 << 16)}), cim.TypeMismatch, "MSFT_Disk.Initialize")
}
