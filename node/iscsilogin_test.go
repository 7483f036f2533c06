package node_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

// Without a hint a host that lists targets tells where the disk came from.
func TestC049_UnstageWithoutAHint(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false)
	source := l.target(iqn1, 2)
	second := source
	second.LUN = 1
	l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
	l.ok(l.tasks.Stage(l.ctx, iscsiStage("v2", second)))
	for _, volume := range []string{"v1", "v2"} {
		l.sessions(1, 1, 2)
		l.ok(l.tasks.Unstage(l.ctx, node.UnstageRequest{VolumeID: volume, StagingPath: netStaging(volume)}))
	}
	l.sessions(0, 0, 0)
	l.noHolds()
}

func TestC052_LoginsOfSomebodyElseStay(t *testing.T) {
	t.Parallel()
	overAll(t, func(l *netLab) {
		source := l.target(iqn1, 2)
		l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
		l.ok(l.agent.AddTargetPortal(l.ctx, portal1))
		l.ok(l.agent.ConnectTarget(l.ctx, portal1, iqn1, host.ConnectOptions{}))
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
		l.sessions(1, 1, 2)
		l.noHolds()
	})
}

// C052, the option: the session comes back with the initiator, a stage after a
// restart changes nothing, and the last unstage takes the persistent entry away.
func TestC052_PersistentLoginComesBack(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false)
	source := l.target(iqn1, 2)
	source.CHAP.Persistent = true
	second := source
	second.LUN = 1
	restart := func() {
		l.ok(l.agent.WriteVolumeCache(l.ctx, l.volumeAt("v2")))
		l.reboot()
		l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
	}
	l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
	l.ok(l.tasks.Stage(l.ctx, iscsiStage("v2", second)))
	l.ok(l.node.WriteFile(l.ctx, netStaging("v2")+`\file`, []byte("two")))
	restart()
	l.sessions(1, 1, 2)
	for volume, source := range map[string]node.ISCSISource{"v1": source, "v2": second} {
		if changes := l.calls("cim.Exec", func() { l.ok(l.tasks.Stage(l.ctx, iscsiStage(volume, source))) }); len(changes) > 0 {
			l.Errorf("staged after the restart, %s was changed: %+v", volume, changes)
		}
	}
	l.holds(netStaging("v2")+`\file`, "two")
	l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
	restart()
	l.sessions(1, 1, 2)
	l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v2", second)))
	l.sessions(0, 0, 0)
	l.noHolds()
	l.reboot()
	l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
	l.sessions(0, 0, 0)
}

// A stage that fails leaves no entry behind, and a csi-proxy that cannot make one says so.
func TestC052_FailedStageIsNotPersistent(t *testing.T) {
	t.Parallel()
	overAll(t, func(l *netLab) {
		source := l.target(iqn1, 1)
		source.CHAP.Persistent = true
		want := host.KindUnsupported
		if !l.official {
			source.LUN, want = 7, host.KindNotFound
		}
		l.want(want, l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		l.sessions(0, 0, 0)
		l.noHolds()
		l.reboot()
		l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
		l.sessions(0, 0, 0)
	})
}

func TestLoginStaysWhileADiskOfItIsMounted(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false)
	source := l.target(iqn1, 2)
	l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
	disks, err := l.agent.GetTargetDisks(l.ctx, portal1, iqn1)
	l.ok(err)
	l.ok(l.agent.PartitionDisk(l.ctx, disks[1]))
	volumes, err := l.agent.ListVolumesOnDisk(l.ctx, disks[1], 0)
	l.ok(err)
	l.ok(l.agent.FormatVolume(l.ctx, volumes[0]))
	l.ok(l.agent.MountVolume(l.ctx, volumes[0], netRoot+`\own`))
	l.ok(l.node.WriteFile(l.ctx, netRoot+`\own\file`, []byte("in use")))
	l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
	l.sessions(1, 0, 2)
	l.holds(netRoot+`\own\file`, "in use")
	if !strings.Contains(l.log.String(), "the login to a target is kept") {
		t.Errorf("that the login is kept is not in the log:\n%s", l.log)
	}
	l.ok(l.agent.UnmountVolume(l.ctx, volumes[0], netRoot+`\own`))
	l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
	l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
	l.sessions(0, 0, 0)
	l.noHolds()
}

func TestAFailedStageOfAUnitIsUndone(t *testing.T) {
	t.Parallel()
	overAll(t, func(l *netLab) {
		source := l.target(iqn1, 1)
		for name, c := range map[string]struct {
			kind   host.Kind
			change func(*node.ISCSISource)
		}{
			"no such unit":   {host.KindNotFound, func(s *node.ISCSISource) { s.LUN = 7 }},
			"no such target": {host.KindNotFound, func(s *node.ISCSISource) { s.IQN = iqn2 }},
			"no such portal": {host.KindUnavailable, func(s *node.ISCSISource) { s.Portals = []host.TargetPortal{dead} }},
		} {
			bad := source
			c.change(&bad)
			l.kubeletFolder("v1")
			l.Log(name)
			l.want(c.kind, l.tasks.Stage(l.ctx, iscsiStage("v1", bad)))
			l.sessions(0, 0, 0)
			l.noHolds()
		}
		// Data nobody here knows is not touched.
		foreign := l.target(iqn2, 1, func(t *sim.ISCSITarget) {
			l.ok(os.WriteFile(t.LUNs[0].Image, append(make([]byte, 1<<20), make([]byte, 63<<20)...), 0o600))
			l.ok(writeAt(t.LUNs[0].Image, 0x438, []byte{0x53, 0xEF}))
		})
		l.want(host.KindPrecondition, l.tasks.Stage(l.ctx, iscsiStage("v2", foreign)))
		l.sessions(0, 0, 0)
		l.noHolds()
	})
}

// A stage that is refused because of what is at the path takes nothing away there.
func TestAFailedStageOfAUnitSparesTheVolumeInItsWay(t *testing.T) {
	t.Parallel()
	overAll(t, func(l *netLab) {
		source := l.target(iqn1, 2)
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		l.ok(l.node.WriteFile(l.ctx, netStaging("v1")+`\file`, []byte("one")))
		for _, other := range []node.ISCSISource{l.target(iqn2, 1), {Portals: source.Portals, IQN: iqn1, LUN: 1}} {
			l.want(host.KindExists, l.tasks.Stage(l.ctx, iscsiStage("v1", other)))
			l.holds(netStaging("v1")+`\file`, "one")
		}
		l.sessions(1, 1, 2)
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
		l.sessions(0, 0, 0)
		l.noHolds()
	})
}

func writeAt(path string, offsetBytes int64, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(data, offsetBytes); err != nil {
		return err
	}
	return file.Close()
}

func TestUnitAddedAfterTheLogin(t *testing.T) {
	t.Parallel()
	overAll(t, func(l *netLab) {
		source := l.target(iqn1, 1)
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		// A target that is made later is not among those the portal told of.
		later := l.target(iqn2, 1)
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v2", later)))
		l.sessions(2, 1, 2)
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
		l.sessions(1, 1, 1)
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v2", later)))
		l.sessions(0, 0, 0)
	})
}

// Every call fails once, before or after it took effect; see
// TestSharesAfterAFailureAnywhere.
func TestUnitsAfterAFailureAnywhere(t *testing.T) {
	t.Parallel()
	const stride = 31
	points := 0
	for _, isOfficial := range []bool{false, true} {
		for _, call := range []struct {
			name  string
			after bool
		}{
			{"win32.OpenAt", false}, {"win32.Delete", false}, {"win32.DeviceIoControl*", false},
			{"cim.*", false}, {"win32.Delete", true}, {"cim.*", true},
		} {
			for nth := 1; unitLife(t, isOfficial, sim.Fault{Call: call.name, Nth: nth, After: call.after, Win32: 1117}); nth += stride {
				points++
			}
		}
	}
	if points < 30 {
		t.Errorf("only %d points were reached", points)
	}
	t.Logf("%d points", points)
}

// unitLife stages two units of a target and unstages them under a fault, and reports
// whether the fault was reached.
func unitLife(t *testing.T, isOfficial bool, fault sim.Fault) (reached bool) {
	t.Helper()
	l := newNetLab(t, isOfficial)
	first := l.target(iqn1, 2)
	first.CHAP.Persistent = !isOfficial
	second := first
	second.LUN = 1
	l.kubeletFolder("v1")
	l.ok(l.node.AddFault(l.ctx, fault))
	steps := []func() error{
		func() error { return l.tasks.Stage(l.ctx, iscsiStage("v1", first)) },
		func() error { return l.tasks.Stage(l.ctx, iscsiStage("v2", second)) },
		func() error { return l.tasks.Unstage(l.ctx, iscsiUnstage("v1", first)) },
		func() error { return l.tasks.Unstage(l.ctx, iscsiUnstage("v2", second)) },
	}
	faults := l.calls(fault.Call, func() {
		for i, step := range steps {
			if err := step(); err != nil {
				if err := step(); err != nil {
					t.Fatalf("official=%v %+v: step %d fails for good: %v", isOfficial, fault, i, err)
				}
			}
			if i < 2 {
				l.ok(l.node.WriteFile(l.ctx, netStaging(fmt.Sprint("v", i+1))+`\file`, fmt.Append(nil, i)))
			}
			if i == 2 {
				l.holds(netStaging("v2")+`\file`, "1")
			}
		}
	})
	l.ok(l.node.ClearFaults(l.ctx))
	l.sessions(0, 0, 0)
	l.noHolds()
	if first.CHAP.Persistent { // case C052: no entry is left that brings the session back
		l.reboot()
		l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
		l.sessions(0, 0, 0)
	}
	if t.Failed() {
		t.Fatalf("under official=%v %+v", isOfficial, fault)
	}
	return len(faults) >= fault.Nth
}
