package devices

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/windows/svc/mgr"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/win32"
)

const (
	initiator = "MSiSCSI"
	stopped   = 1
	running   = 4
)

// stateOf asks the service manager.
func (l *lab) stateOf(name string) uint32 {
	l.Helper()
	_, status, err := l.api.QueryService(l.ctx, name)
	l.OK(err)
	return status.State
}

func (l *lab) become(name string, state uint32) {
	l.Helper()
	l.eventually(fmt.Sprintf("%s in state %d", name, state), func() bool { return l.stateOf(name) == state })
}

func (l *lab) start(names ...string) {
	l.Helper()
	for _, name := range names {
		l.OK(l.api.StartService(l.ctx, name))
		l.become(name, running)
	}
}

func (l *lab) stop(names ...string) {
	l.Helper()
	for _, name := range names {
		if err := l.api.StopService(l.ctx, name); l.CodeOf(err) != win32.ErrServiceNotActive {
			l.OK(err)
		}
		l.become(name, stopped)
	}
}

// atNode is the state that the node has of a service.
func (l *lab) atNode(name string) uint32 {
	l.Helper()
	services, err := l.Control.Services(l.ctx)
	l.OK(err)
	for _, s := range services {
		if s.Name == name {
			return s.State
		}
	}
	l.Fatalf("the node has no service %s", name)
	return 0
}

func systemFile(l *lab, name string) string { return filepath.Join(l.api.SystemDirectory(), name) }

// Starting and stopping the iSCSI service through the service manager has its effect on
// the iSCSI classes, seen through WMI.
func TestInitiatorService(t *testing.T) {
	l := open(t)
	l.stop(initiator)
	l.Cleanup(func() { l.stop(initiator) })
	session := bed.Session(l)
	os := winos.New(session, l.api, winos.Options{})

	info, err := os.Service(l.ctx, "msiscsi")
	l.OK(err)
	want := host.ServiceInfo{DisplayName: "Microsoft iSCSI Initiator Service", StartType: host.StartManual, Status: host.ServiceStopped}
	if info != want {
		t.Errorf("service %+v, want %+v", info, want)
	}
	portals := func(state uint32) {
		t.Helper()
		if got := l.atNode(initiator); got != state {
			t.Errorf("the service is in state %d at the node, want %d", got, state)
		}
		_, err := os.TargetPortals(l.ctx)
		if state == running && err != nil || state == stopped && !host.IsKind(err, host.KindPrecondition) {
			t.Errorf("portals with the service in state %d: %v", state, err)
		}
	}
	portals(stopped)
	l.start(initiator)
	portals(running)
	l.WantCode(l.api.StartService(l.ctx, initiator), win32.ErrAlreadyRunning)
	l.Post("node/reset", "")
	portals(stopped)
	l.OK(exec.CommandContext(l.ctx, systemFile(l, "csiiscsi.exe"), "-report").Run())
	portals(running)
	l.stop(initiator)
	portals(stopped)
	l.WantCode(l.api.StopService(l.ctx, initiator), win32.ErrServiceNotActive)
}

// service registers a service until the test ends.
func (l *lab) service(name string, startType uint32, needs ...string) string {
	l.Helper()
	name = "csi-devices-" + name
	manager := bed.ServiceManager(l)
	if old, err := manager.OpenService(name); err == nil { // from a run that was ended
		l.stop(name)
		l.OK(old.Delete())
		l.OK(old.Close())
	}
	s, err := manager.CreateService(name, systemFile(l, "csiiscsi.exe"), mgr.Config{
		StartType: startType, DisplayName: strings.Repeat(name+" ", 3), Dependencies: needs,
	}, name, strings.Repeat("x", 700))
	l.OK(err)
	l.Cleanup(func() {
		l.stop(name)
		l.OK(s.Delete())
		l.OK(s.Close())
	})
	return name
}

func TestServiceErrors(t *testing.T) {
	l := open(t)
	name := l.service("one", mgr.StartManual)
	disabled := l.service("disabled", mgr.StartDisabled)
	config, status, err := l.api.QueryService(l.ctx, name)
	l.OK(err)
	if config.DisplayName != strings.Repeat(name+" ", 3) || config.StartType != mgr.StartManual || status.State != stopped {
		t.Errorf("service %+v, %+v", config, status)
	}
	if config, _, err := l.api.QueryService(l.ctx, disabled); err != nil || config.StartType != mgr.StartDisabled {
		t.Errorf("service %+v, %v", config, err)
	}
	l.WantCode(l.api.StartService(l.ctx, disabled), win32.ErrServiceDisabled)
	l.WantCode(l.api.StopService(l.ctx, name), win32.ErrServiceNotActive)
	l.start(name)
	l.WantCode(l.api.StartService(l.ctx, name), win32.ErrAlreadyRunning)

	ended, cancel := context.WithCancel(l.ctx)
	cancel()
	for call, do := range map[string]func(ctx context.Context, name string) error{
		"query": func(ctx context.Context, name string) error {
			_, _, err := l.api.QueryService(ctx, name)
			return err
		},
		"start": l.api.StartService,
		"stop":  l.api.StopService,
		"dependents": func(ctx context.Context, name string) error {
			_, err := l.api.RunningDependents(ctx, name)
			return err
		},
	} {
		t.Run(call, func(t *testing.T) {
			l := l.in(t)
			l.WantCode(do(l.ctx, "csi-devices-nobody"), win32.ErrServiceNotExist)
			l.WantCode(do(l.ctx, "csi\x00devices"), win32.ErrInvalidName)
			if err := do(ended, name); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v after the context's end", err)
			}
		})
	}
}

// Services that run and need another are found, more than fit into one answer as well,
// and keep that one from being stopped.
func TestDependents(t *testing.T) {
	l := open(t)
	needed := l.service("needed", mgr.StartManual)
	const count = 18 // the first buffer holds 16 at most
	var users []string
	for i := range count {
		users = append(users, l.service(fmt.Sprintf("user-%d", i), mgr.StartManual, needed))
	}
	far := l.service("far", mgr.StartManual, users[0])
	dependents := func(want ...string) {
		t.Helper()
		got, err := l.api.RunningDependents(l.ctx, needed)
		l.OK(err)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("dependents %q, want %q", got, want)
		}
	}
	dependents()
	l.start(needed)
	dependents()
	l.start(users[0])
	dependents(users[0])
	l.WantCode(l.api.StopService(l.ctx, needed), win32.ErrDependentsRunning)
	l.start(far)
	got, err := l.api.RunningDependents(l.ctx, needed)
	if want := []string{far, users[0]}; err != nil || !slices.Equal(got, want) {
		t.Errorf("dependents %q, %v; want %q, in the order in which they have to be stopped", got, err, want)
	}
	l.stop(far)
	l.start(users[1:]...)
	dependents(users...)
	l.stop(users...)
	dependents()
	l.stop(needed)
	if l.stateOf(needed) != stopped {
		t.Error("the service still runs")
	}
}
