package sim

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

func arm(t *testing.T, n *Node, f Fault) {
	t.Helper()
	if err := n.AddFault(context.Background(), f); err != nil {
		t.Fatal(err)
	}
}

func TestFaultPicksTheCall(t *testing.T) {
	t.Parallel()
	n := instant(t)
	ctx := context.Background()
	arm(t, n, Fault{Call: "win32.QueryService", Object: "MSI*", Nth: 2, Count: 2, Win32: 5})
	ask := func(name string) uint32 { _, _, err := n.QueryService(ctx, name); return win32Code(err) }
	for i, want := range []uint32{0, 5, 5, 0} {
		if got := ask("RpcSs"); got != 0 {
			t.Errorf("another object failed with %d", got)
		}
		if got := ask("msiscsi"); got != want {
			t.Errorf("call %d: %d, want %d", i+1, got, want)
		}
	}
	if err := n.AddFault(ctx, Fault{}); err == nil {
		t.Error("fault without a call accepted")
	}
}

func TestFaultKinds(t *testing.T) {
	t.Parallel()
	n := instant(t)
	ctx := context.Background()
	update := func() (cim.Result, error) {
		return n.Exec(ctx, cim.NamespaceStorage, "MSFT_StorageSetting", "UpdateHostStorageCache", nil)
	}
	arm(t, n, Fault{Call: "cim.exec msft_storagesetting.*", ReturnValue: 40003})
	if r, err := update(); err != nil || r.ReturnValue != 40003 {
		t.Errorf("return value: %+v, %v", r, err)
	}
	arm(t, n, Fault{Call: "cim.Exec *", CIM: &cim.Error{HRESULT: cim.ServerTooBusy}})
	var e *cim.Error
	if _, err := update(); !errors.As(err, &e) || e.HRESULT != cim.ServerTooBusy || e.Object != "MSFT_StorageSetting.UpdateHostStorageCache" {
		t.Errorf("HRESULT: %v", err)
	}
	arm(t, n, Fault{Call: "cim.Query MSFT_Disk", Win32: 1450})
	if _, err := n.Query(ctx, cim.NamespaceStorage, "SELECT * FROM MSFT_Disk"); !errors.As(err, &e) || e.HRESULT != cim.Failed || e.Win32 != 1450 {
		t.Errorf("CIM call with a Windows error: %v", err)
	}
	h := open(t, n, `\\.\PhysicalDrive0`, win32.AccessNone)
	arm(t, n, Fault{Call: "win32.DeviceIoControl 0x2D1080", Object: `*PhysicalDrive0`, Win32: win32.ErrIODevice})
	if _, code := control(n, h, win32.IoctlStorageGetDeviceNumber, nil, 12); code != win32.ErrIODevice {
		t.Errorf("IOCTL: %d", code)
	}
}

func TestFaultAfterTheEffect(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	disk := diskPath(t, n, number)
	arm(t, n, Fault{Call: "cim.Exec MSFT_Disk.Initialize", After: true, CIM: &cim.Error{HRESULT: cim.RPCDisconnected}})
	if _, err := n.Exec(context.Background(), cim.NamespaceStorage, disk, "Initialize", nil); err == nil {
		t.Fatal("no error")
	}
	code(t, n, disk, "Initialize", nil, codeInitialized)
}

func TestHookRunsInTheCall(t *testing.T) {
	t.Parallel()
	n := instant(t)
	ctx := context.Background()
	mustWrite(t, n, `C:\a\f`, "x")
	mustWrite(t, n, `C:\outside\f`, "y")
	arm(t, n, Fault{Call: "win32.FileAttributes", Hook: func() {
		if _, err := n.SwapForLink(ctx, `C:\a`, `C:\outside`); err != nil {
			t.Error(err)
		}
	}})
	if attributes, err := n.FileAttributes(ctx, `C:\a`); err != nil || attributes&win32.AttrReparse == 0 {
		t.Fatalf("0x%X, %v", attributes, err)
	}
	if content(n, `C:\a\f`) != "y" {
		t.Fatal("not swapped")
	}
}

func TestLatencyHonoursTheContext(t *testing.T) {
	t.Parallel()
	n := instant(t)
	arm(t, n, Fault{Call: "win32.FindVolumes", Latency: time.Hour, Count: -1})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if _, err := n.FindVolumes(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if _, err := n.Query(context.Background(), cim.NamespaceStorage, "SELECT Number FROM MSFT_Disk"); err != nil {
		t.Fatal(err)
	}
}

func TestHungCallHoldsNobodyElse(t *testing.T) {
	t.Parallel()
	n := instant(t)
	entered, done := make(chan struct{}), make(chan error, 1)
	arm(t, n, Fault{Call: "cim.Exec MSFT_StorageSetting.*", Hang: true, Hook: func() { close(entered) }})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, err := n.Exec(ctx, cim.NamespaceStorage, "MSFT_StorageSetting", "UpdateHostStorageCache", nil)
		done <- err
	}()
	<-entered
	cancel()
	if _, err := n.Query(context.Background(), cim.NamespaceStorage, "SELECT Number FROM MSFT_Disk"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		t.Fatalf("the hung call returned: %v", err)
	case <-time.After(5 * time.Millisecond):
	}
	if err := n.ClearFaults(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-done
}

func TestCallLog(t *testing.T) {
	t.Parallel()
	n := smbNode(t, Config{}, nil)
	ctx := context.Background()
	if err := n.RecordCalls(ctx, true); err != nil {
		t.Fatal(err)
	}
	mapShare(t, n, cim.Values{"RemotePath": `\\srv\open`, "Credential": "u:secret-word"})
	if _, err := n.FileAttributes(ctx, `C:\none`); err == nil {
		t.Fatal("no error")
	}
	log, err := n.CallLog(ctx)
	if err != nil || len(log) != 2 {
		t.Fatalf("%v, %v", log, err)
	}
	if c := log[0]; c.Name != "cim.Exec MSFT_SmbGlobalMapping.Create" || c.Params["Credential"] != "(secret)" || c.Params["RemotePath"] != `\\srv\open` || c.Error == "" {
		t.Errorf("%+v", c)
	}
	if c := log[1]; c.Name != "win32.FileAttributes" || c.Object != `C:\none` || c.Error == "" || c.Sequence != 1 {
		t.Errorf("%+v", c)
	}
	for range logMax + 10 {
		n.gate.record("x", site{}, nil, 0)
	}
	if log, _ = n.CallLog(ctx); len(log) > logMax || log[len(log)-1].Sequence != logMax+11 {
		t.Errorf("%d lines, last %d", len(log), log[len(log)-1].Sequence)
	}
	if err := n.RecordCalls(ctx, false); err != nil || n.gate.armed.Load() {
		t.Error("the gate stays armed")
	}
}

func TestCallsOnHandlesNameThePath(t *testing.T) {
	t.Parallel()
	n := instant(t)
	ctx := context.Background()
	mustWrite(t, n, `C:\a\f`, "x")
	arm(t, n, Fault{Call: "win32.Info", Object: `*C:\a`, Count: -1, Win32: 5})
	for path, want := range map[string]uint32{`C:\a`: 5, `C:\a\f`: 0} {
		h := open(t, n, path, win32.FileReadAttr)
		if _, err := n.Info(ctx, h); win32Code(err) != want {
			t.Errorf("%s: %v, want %d", path, err, want)
		}
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"*", "", true}, {"*", "x", true}, {"a*", "ABC", true}, {"*c", "abc", true}, {"a*c*e", "abcde", true},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"abc", "abcd", false}, {"*bc", "abcbd", false}, {`C:\*\x`, `C:\a\b\x`, true},
		{"*a*b", "aab", true}, {"**", "x", true},
	} {
		if got := globMatch(c.pattern, c.text); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.text, got)
		}
	}
}
