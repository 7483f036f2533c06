package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

func TestC055_Services(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, service := range []sim.Service{
		{Name: "base", StartType: 3, State: 1, Polls: 3},
		{Name: "needs-base", StartType: 3, State: 1, DependsOn: []string{"base"}, Polls: 3},
		{Name: "off", StartType: 4, State: 1},
		{Name: "broken", StartType: 3, State: 1, FailStart: 1053},
	} {
		l.ok(l.node.SetService(l.ctx, service))
	}
	for range 2 {
		l.ok(l.agent.StartService(l.ctx, "BASE"))
	}
	info, err := l.agent.GetService(l.ctx, "base")
	l.ok(err)
	if info.Status != host.ServiceRunning || info.StartType != host.StartManual {
		t.Errorf("GetService = %+v", info)
	}
	l.ok(l.agent.StartService(l.ctx, "needs-base"))
	err = l.agent.StopService(l.ctx, "base", false)
	l.want(host.KindPrecondition, err)
	if err == nil || !strings.Contains(err.Error(), "needs-base") {
		t.Errorf("the dependent is not named: %v", err)
	}
	for range 2 {
		l.ok(l.agent.StopService(l.ctx, "base", true))
	}
	for _, name := range []string{"base", "needs-base"} {
		if info, err := l.agent.GetService(l.ctx, name); err != nil || info.Status != host.ServiceStopped {
			t.Errorf("%s is %+v, %v", name, info, err)
		}
	}
	l.want(host.KindPrecondition, l.agent.StartService(l.ctx, "off"))
	if err := l.agent.StartService(l.ctx, "broken"); err == nil {
		t.Error("a service that cannot start has started")
	}
	for _, err := range []error{
		l.agent.StartService(l.ctx, "nobody"), l.agent.StopService(l.ctx, "nobody", true), second(l.agent.GetService(l.ctx, "nobody")),
	} {
		l.want(host.KindNotFound, err)
	}
	for _, name := range []string{"", `a\b`, "a/b", "a\x00", "a\n", strings.Repeat("s", 257), "\xff"} {
		l.want(host.KindInvalid, l.agent.StartService(l.ctx, name))
		l.want(host.KindInvalid, l.agent.StopService(l.ctx, name, false))
		l.want(host.KindInvalid, second(l.agent.GetService(l.ctx, name)))
	}
}

// C055, the kind: states in which waiting for the wanted one would never end.
func TestC055_StatesThatDoNotPass(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, service := range []sim.Service{
		{Name: "paused", StartType: 3, State: 7},
		{Name: "orphan", StartType: 3, State: 1, DependsOn: []string{"missing"}},
		{Name: "hen", StartType: 3, State: 1, DependsOn: []string{"egg"}},
		{Name: "egg", StartType: 3, State: 1, DependsOn: []string{"hen"}},
	} {
		l.ok(l.node.SetService(l.ctx, service))
		l.want(host.KindPrecondition, l.agent.StartService(l.ctx, service.Name))
	}
	l.ok(l.agent.StopService(l.ctx, "paused", false))
	l.ok(l.agent.StartService(l.ctx, "paused"))
}

func TestServiceWaitIsBounded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ok(l.node.SetService(l.ctx, sim.Service{Name: "slow", StartType: 3, State: 1, Polls: 1 << 30}))
	ctx, cancel := context.WithTimeout(l.ctx, 30*time.Millisecond)
	defer cancel()
	l.want(host.KindTimeout, l.agent.StartService(ctx, "slow"))
}

func TestBIOSSerialNumber(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if serial, err := l.agent.GetBIOSSerialNumber(l.ctx); err != nil || serial != "SIM-0000-0001" {
		t.Errorf("got %q, %v", serial, err)
	}
}
