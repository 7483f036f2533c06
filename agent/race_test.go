package agent_test

import (
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

// Invariant 3: somebody makes a link where the agent is about to make a folder.
func TestInvariant3_LinkMadeInsteadOfFolder(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ok(l.node.MakeDir(l.ctx, `C:\outside`))
	for _, path := range []string{root + `\x`, root + `\x\y`} {
		// The third look at the name is the one that makes the folder.
		made := false
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.OpenAt", Object: "x", Nth: 3, Hook: func() {
			made = l.node.MakeLink(l.ctx, root+`\x`, `C:\outside`) == nil
		}}))
		if err := l.agent.Mkdir(l.ctx, path); err == nil || !made {
			t.Errorf("Mkdir(%s): %v, link made %v", path, err, made)
		}
		l.ok(l.node.ClearFaults(l.ctx))
		if names, err := l.node.ListDir(l.ctx, `C:\outside`); err != nil || len(names) != 0 {
			t.Fatalf("Mkdir(%s): outside holds %q, %v", path, names, err)
		}
		l.ok(l.agent.Rmdir(l.ctx, root+`\x`, false))
	}
}

// A question about volumes begins in a working folder as well.
func TestInvariant3_VolumeQuestionsBeginInside(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, path := range []string{`C:\`, `C:\Windows`, `C:\var\lib`, root + `2`, `D:\`, `\\srv\share`} {
		l.want(host.KindInvalid, second(l.agent.GetVolumeIDFromTargetPath(l.ctx, path)))
		l.want(host.KindInvalid, second(l.agent.GetClosestVolumeIDFromTargetPath(l.ctx, path)))
	}
}

func TestC055_StartWhileItStops(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ok(l.node.SetService(l.ctx, sim.Service{Name: "slow", StartType: 3, State: 4, Polls: 5}))
	l.ok(l.os.StopService(l.ctx, "slow"))
	l.ok(l.agent.StartService(l.ctx, "slow"))
	l.ok(l.os.StopService(l.ctx, "slow"))
	l.ok(l.agent.StopService(l.ctx, "slow", false)) // one that stops already is waited for
	if info, err := l.agent.GetService(l.ctx, "slow"); err != nil || info.Status != host.ServiceStopped {
		t.Errorf("the service is %+v, %v", info, err)
	}
}
