package sim

import (
	"context"
	"slices"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

func TestC055_Services(t *testing.T) {
	t.Parallel()
	n := openNode(t, Config{ServicePolls: 2})
	ctx := context.Background()
	state := func(name string) uint32 {
		t.Helper()
		_, status, err := n.QueryService(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return status.State
	}
	for _, c := range []struct {
		name string
		do   func() error
		want uint32
	}{
		{"unknown", func() error { return n.StartService(ctx, "nope") }, win32.ErrServiceNotExist},
		{"start running", func() error { return n.StartService(ctx, "lanmanworkstation") }, win32.ErrAlreadyRunning},
		{"stop stopped", func() error { return n.StopService(ctx, "MSiSCSI") }, win32.ErrServiceNotActive},
		{"stop with dependents", func() error { return n.StopService(ctx, "LanmanWorkstation") }, win32.ErrDependentsRunning},
		{"start", func() error { return n.StartService(ctx, "msiscsi") }, 0},
		{"start while it starts", func() error { return n.StartService(ctx, "MSiSCSI") }, win32.ErrAlreadyRunning},
		{"stop while it starts", func() error { return n.StopService(ctx, "MSiSCSI") }, win32.ErrCannotAcceptCtrl},
	} {
		if got := win32Code(c.do()); got != c.want {
			t.Errorf("%s: Windows error %d, want %d", c.name, got, c.want)
		}
	}
	if a, b := state("MSiSCSI"), state("MSiSCSI"); a != serviceStartPending || b != serviceRunning {
		t.Errorf("states %d, %d", a, b)
	}
	if err := n.StopService(ctx, "MSiSCSI"); err != nil {
		t.Fatal(err)
	}
	if a, b := state("MSiSCSI"), state("MSiSCSI"); a != serviceStopPending || b != serviceStopped {
		t.Errorf("states %d, %d", a, b)
	}
}

func TestServiceStart(t *testing.T) {
	t.Parallel()
	n := instant(t)
	ctx := context.Background()
	for _, s := range []Service{
		{Name: "base", StartType: startManual, State: serviceStopped},
		{Name: "middle", StartType: startManual, State: serviceStopped, DependsOn: []string{"BASE"}},
		{Name: "top", StartType: startManual, State: serviceStopped, DependsOn: []string{"middle", "base"}},
		{Name: "off", StartType: startDisabled, State: serviceStopped},
		{Name: "onOff", StartType: startManual, State: serviceStopped, DependsOn: []string{"off"}},
		{Name: "onNothing", StartType: startManual, State: serviceStopped, DependsOn: []string{"missing"}},
		{Name: "broken", StartType: startManual, State: serviceStopped, FailStart: win32.ErrServiceTimeout},
		{Name: "ring1", StartType: startManual, State: serviceRunning, DependsOn: []string{"ring2"}},
		{Name: "ring2", StartType: startManual, State: serviceRunning, DependsOn: []string{"ring1"}},
	} {
		if err := n.SetService(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]uint32{
		"off": win32.ErrServiceDisabled, "onOff": errServiceDependencyFail, "onNothing": errServiceDependencyFail,
		"broken": win32.ErrServiceTimeout, "top": 0,
	} {
		if got := win32Code(n.StartService(ctx, name)); got != want {
			t.Errorf("%s: Windows error %d, want %d", name, got, want)
		}
	}
	order, err := n.RunningDependents(ctx, "base")
	if err != nil || !slices.Equal(order, []string{"top", "middle"}) {
		t.Errorf("dependents %v, %v", order, err)
	}
	if _, err := n.RunningDependents(ctx, "ring1"); err != nil {
		t.Error(err)
	}
	if err := n.SetService(ctx, Service{}); err == nil {
		t.Error("service without name accepted")
	}
}
