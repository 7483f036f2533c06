package standin

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

const everyDisk = "SELECT * FROM MSFT_Disk"

func (l *link) fault(f Fault) {
	l.Helper()
	l.ok(l.server.AddFault(f))
}

func TestFaultOfStatus(t *testing.T) {
	t.Parallel()
	l := open(t)
	c := l.dial()
	l.fault(Fault{Op: "query", Class: "msft_disk", Kind: FaultHRESULT, Code: cim.ProviderFailure, Win32: 5, Text: "denied"})
	_, err := c.Query(t.Context(), cim.NamespaceStorage, "SELECT * FROM MSFT_Volume")
	l.ok(err)
	_, err = c.Query(t.Context(), cim.NamespaceStorage, everyDisk)
	l.hresult(err, cim.ProviderFailure)
	var failure *cim.Error
	if errors.As(err, &failure); failure.Win32 != 5 || failure.Text != "denied" {
		t.Errorf("%+v", failure)
	}
	l.one(c, everyDisk) // once only
	l.fault(Fault{Op: "FindVolumes", Kind: FaultHRESULT, Code: win32.ErrIODevice, Times: 2})
	for range 2 {
		_, err = c.FindVolumes(t.Context())
		l.code(err, win32.ErrIODevice)
	}
	_, err = c.FindVolumes(t.Context())
	l.ok(err)
}

func TestFaultOfReturnValue(t *testing.T) {
	t.Parallel()
	l := open(t)
	c := l.dial()
	l.fault(Fault{Op: "Exec", Method: "refresh", Kind: FaultReturn, Code: 40001, Text: "not now"})
	disk := l.one(c, everyDisk)
	r, err := c.Exec(t.Context(), cim.NamespaceStorage, disk.Path, "Refresh", nil)
	l.ok(err)
	status, _ := r.Out["ExtendedStatus"].(cim.Instance)
	if r.ReturnValue != 40001 || status.Class != "MSFT_StorageExtendedStatus" || status.Props["Message"] != "not now" {
		t.Errorf("%+v", r)
	}
	if out := l.exec(c, disk.Path, "Refresh", nil); len(out) != 1 || out["ExtendedStatus"] != nil {
		t.Errorf("out-parameters %v", out)
	}
}

func TestFaultOfValues(t *testing.T) {
	t.Parallel()
	l := open(t)
	c := l.dial()
	l.fault(Fault{Kind: FaultNull})
	disk := l.one(c, everyDisk)
	for name, value := range disk.Props {
		if value != nil {
			t.Errorf("%s is %v", name, value)
		}
	}
	if len(disk.Props) < 20 || disk.Path == "" {
		t.Errorf("disk %+v", disk)
	}
	l.fault(Fault{Op: "Query", Kind: FaultGarbage})
	if rows, err := c.Query(t.Context(), cim.NamespaceStorage, everyDisk); err == nil {
		t.Errorf("garbage was read as %v", rows)
	}
	l.one(l.dial(), everyDisk)
}

func TestFaultOfDeath(t *testing.T) {
	t.Parallel()
	l := open(t)
	number := l.attach(sim.DiskSpec{Bus: "SAS"})
	disk := l.one(l.dial(), "SELECT * FROM MSFT_Disk WHERE Number=1")
	for _, after := range []bool{false, true} {
		c, other := l.dial(), l.dial()
		l.fault(Fault{Op: "Exec", Class: "MSFT_Disk", Method: "Online", Kind: FaultDie, After: after})
		_, err := c.Exec(t.Context(), cim.NamespaceStorage, disk.Path, "Online", nil)
		var failure *cim.Error
		if err == nil || errors.As(err, &failure) {
			t.Errorf("an answer of the dead: %v", err)
		}
		l.one(other, "SELECT * FROM MSFT_Disk WHERE Number=1")
		if disks, err := l.node.Disks(t.Context()); err != nil || disks[number].Offline == after {
			t.Errorf("after=%v: disk %+v, %v", after, disks[number], err)
		}
	}
}

func TestFaultOfTime(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.fault(Fault{Op: "Query", Kind: FaultSlow, DelayMilliseconds: 50})
	begin := time.Now()
	l.one(l.dial(), everyDisk)
	if took := time.Since(begin); took < 50*time.Millisecond {
		t.Errorf("slow took %v", took)
	}
	l.fault(Fault{Op: "Query", Kind: FaultHang, Times: -1})
	hung := make(chan error, 2)
	for range 2 {
		c := l.dial()
		go func() {
			_, err := c.Query(context.WithoutCancel(t.Context()), cim.NamespaceStorage, everyDisk)
			hung <- err
		}()
	}
	for l.server.Stats().Hanging < 2 {
		time.Sleep(time.Millisecond)
	}
	c := l.dial()
	if _, err := c.FindVolumes(t.Context()); err != nil {
		t.Errorf("beside hanging calls: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Query(ctx, cim.NamespaceStorage, everyDisk); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that hangs: %v", err)
	}
	l.server.Reset()
	for range 2 {
		if err := <-hung; err == nil {
			t.Error("a hanging call was answered")
		}
	}
	if s := l.server.Stats(); s.Faults != 0 || s.Hanging > 1 {
		t.Errorf("stats %+v", s)
	}
	l.one(l.dial(), everyDisk)
}

// A server that ends does not wait for calls that hang.
func TestHangingCallsEndWithTheServer(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.fault(Fault{Kind: FaultHang})
	c := l.dial()
	go func() { _, _ = c.FindVolumes(context.Background()) }()
	for l.server.Stats().Hanging < 1 {
		time.Sleep(time.Millisecond)
	}
}

func TestFaultsThatNobodyCanCarryOut(t *testing.T) {
	t.Parallel()
	l := open(t)
	for _, f := range []Fault{{}, {Kind: "explode"}, {Kind: FaultHRESULT}, {Kind: FaultReturn}, {Op: "Dance", Kind: FaultDie}} {
		if err := l.server.AddFault(f); err == nil {
			t.Errorf("%+v was taken", f)
		}
	}
}
