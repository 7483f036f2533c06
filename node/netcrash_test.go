package node_test

import (
	"fmt"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
)

// Every call that changes the node fails once, before or after it took effect. The task
// is repeated, and the end is that of one clean run.
func TestSharesAfterAFailureAnywhere(t *testing.T) {
	t.Parallel()
	const stride = 17 // of all of them, a prime apart, so that each kind of call is met
	points := 0
	for _, isOfficial := range []bool{false, true} {
		for _, call := range []struct {
			name  string
			after bool // an object that was opened after all would stay open, which Windows does not do
		}{
			{"win32.OpenAt", false}, {"win32.Info", false}, {"win32.FileAttributes", false},
			{"win32.Delete", false}, {"win32.CreateSymlink", false}, {"cim.*", false},
			{"win32.Delete", true}, {"win32.CreateSymlink", true}, {"cim.*", true},
		} {
			for nth := 1; shareLife(t, isOfficial, sim.Fault{Call: call.name, Nth: nth, After: call.after, Win32: 1117}); nth += stride {
				points++
			}
		}
	}
	if points < 60 {
		t.Errorf("only %d points were reached", points)
	}
	t.Logf("%d points", points)
}

// shareLife stages two folders of a share and unstages them under a fault, and reports
// whether the fault was reached.
func shareLife(t *testing.T, isOfficial bool, fault sim.Fault) (reached bool) {
	t.Helper()
	l := newNetLab(t, isOfficial)
	l.kubeletFolder("v1")
	l.ok(l.node.AddFault(l.ctx, fault))
	steps := []func() error{
		func() error { return l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)) },
		func() error { return l.tasks.Stage(l.ctx, smbStage("v2", `\\srv\share\b`)) },
		func() error { return l.tasks.Unstage(l.ctx, smbUnstage("v1", `\\srv\share\a`)) },
		func() error { return l.tasks.Unstage(l.ctx, smbUnstage("v2", `\\srv\share\b`)) },
	}
	faults := l.calls(fault.Call, func() {
		for i, step := range steps {
			what := fmt.Sprintf("official=%v %s nth=%d after=%v step %d", isOfficial, fault.Call, fault.Nth, fault.After, i)
			if err := step(); err != nil {
				if err := step(); err != nil {
					t.Fatalf("%s fails for good: %v", what, err)
				}
			}
			if i < 3 {
				l.holds(netStaging(fmt.Sprint("v", min(i+1, 2)))+`\file`, []string{"a", "b", "b"}[i])
			}
		}
	})
	l.ok(l.node.ClearFaults(l.ctx))
	l.missing(netStaging("v1"))
	l.missing(netStaging("v2"))
	l.mapped(0)
	l.noHolds()
	if t.Failed() {
		t.Fatalf("under official=%v %+v", isOfficial, fault)
	}
	return len(faults) >= fault.Nth
}
