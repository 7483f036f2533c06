package node_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

const (
	iqn1     = "iqn.2026-01.example:one"
	iqn2     = "iqn.2026-01.example:two"
	login    = "cim.Exec MSFT_iSCSITarget.Connect"
	newLogin = "chap-secret-1"
)

var (
	portal1 = host.TargetPortal{Address: "192.0.2.1"}
	portal2 = host.TargetPortal{Address: "2001:db8::2", Port: 3261}
	dead    = host.TargetPortal{Address: "192.0.2.9"}
)

// target puts a target with a number of units on the network, and returns the source
// of its first one.
func (l *netLab) target(iqn string, units int, change ...func(*sim.ISCSITarget)) node.ISCSISource {
	l.Helper()
	target := sim.ISCSITarget{IQN: iqn, Portals: []string{"192.0.2.1:3260", "[2001:db8::2]:3261"}}
	for i := range units {
		target.LUNs = append(target.LUNs, sim.DiskSpec{
			Image: filepath.Join(l.TempDir(), fmt.Sprint("unit", i)), SizeBytes: 64 << 20, Serial: fmt.Sprint(iqn, i),
		})
	}
	for _, c := range change {
		c(&target)
	}
	l.ok(l.node.SetISCSITarget(l.ctx, target))
	return node.ISCSISource{Portals: []host.TargetPortal{portal1}, IQN: iqn}
}

func iscsiStage(volume string, source node.ISCSISource) node.StageRequest {
	return node.StageRequest{VolumeID: volume, StagingPath: netStaging(volume), Source: node.Source{ISCSI: &source}}
}

// iscsiUnstage is the end of such a stage; the hint has no secrets.
func iscsiUnstage(volume string, source node.ISCSISource) node.UnstageRequest {
	hint := node.ISCSISource{Portals: source.Portals, IQN: source.IQN, LUN: source.LUN}
	return node.UnstageRequest{VolumeID: volume, StagingPath: netStaging(volume), Source: node.Source{ISCSI: &hint}}
}

// sessions fails the test unless there are so many sessions, portals and iSCSI disks.
func (l *netLab) sessions(wantSessions, wantPortals, wantDisks int) {
	l.Helper()
	sessions, err := l.os.Sessions(l.ctx)
	if err != nil || len(sessions) != wantSessions {
		l.Errorf("sessions are %+v, %v; want %d", sessions, err, wantSessions)
	}
	portals, err := l.agent.ListTargetPortals(l.ctx)
	if err != nil || len(portals) != wantPortals {
		l.Errorf("portals are %+v, %v; want %d", portals, err, wantPortals)
	}
	disks, err := l.agent.ListDisks(l.ctx)
	count := 0
	for _, d := range disks {
		if d.BusType == "iSCSI" {
			count++
		}
	}
	if err != nil || count != wantDisks {
		l.Errorf("disks are %+v, %v; want %d of iSCSI", disks, err, wantDisks)
	}
}

func TestC049_LifeOfAUnit(t *testing.T) {
	t.Parallel()
	overAll(t, func(l *netLab) {
		source := l.target(iqn1, 2)
		source.LUN = 1
		l.kubeletFolder("v1")
		for range 2 {
			l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
			l.sessions(1, 1, 2)
		}
		l.ok(l.node.WriteFile(l.ctx, netStaging("v1")+`\file`, []byte("unit 1")))
		if logins := l.calls(login, func() { l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source))) }); len(logins) != 0 {
			l.Errorf("staged again, it logged in: %+v", logins)
		}
		for range 2 {
			l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
			l.sessions(0, 0, 0)
			l.noHolds()
		}
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		l.holds(netStaging("v1")+`\file`, "unit 1")
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
		l.sessions(0, 0, 0)
	})
}

func TestC049_UnitsShareALogin(t *testing.T) {
	t.Parallel()
	overAll(t, func(l *netLab) {
		first := l.target(iqn1, 4)
		other := l.target(iqn2, 1)
		unit := func(lun int) node.ISCSISource {
			source := first
			source.LUN = uint32(lun)
			return source
		}
		var all sync.WaitGroup
		for lun := range 4 {
			all.Go(func() {
				if err := l.tasks.Stage(l.ctx, iscsiStage(fmt.Sprint("v", lun), unit(lun))); err != nil {
					l.Error(err)
				}
			})
		}
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("other", other)))
		all.Wait()
		l.sessions(2, 1, 5)
		for lun := range 4 {
			l.ok(l.node.WriteFile(l.ctx, netStaging(fmt.Sprint("v", lun))+`\file`, fmt.Append(nil, lun)))
		}
		for lun := range 4 {
			l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage(fmt.Sprint("v", lun), unit(lun))))
			for left := lun + 1; left < 4; left++ {
				l.holds(netStaging(fmt.Sprint("v", left))+`\file`, fmt.Sprint(left))
			}
		}
		l.sessions(1, 1, 1)
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("other", other)))
		l.sessions(0, 0, 0)
		l.noHolds()
	})
}

// Each volume has a target of its own, as many servers have it: that another one is not
// logged in to although its portal is known is no login of somebody else.
func TestC049_ATargetForEachVolume(t *testing.T) {
	t.Parallel()
	overAll(t, func(l *netLab) {
		sources := map[string]node.ISCSISource{"v1": l.target(iqn1, 1), "v2": l.target(iqn2, 1)}
		for volume, source := range sources {
			source.Portals = []host.TargetPortal{dead, portal1}
			sources[volume] = source
			l.ok(l.tasks.Stage(l.ctx, iscsiStage(volume, source)))
		}
		l.sessions(2, 1, 2)
		l.restart()
		for _, volume := range []string{"v1", "v2"} {
			for range 2 {
				l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage(volume, sources[volume])))
			}
			if volume == "v1" {
				l.sessions(1, 1, 1)
			}
		}
		l.sessions(0, 0, 0)
		l.noHolds()
	})
}

func TestC049_SeveralPortals(t *testing.T) {
	t.Parallel()
	overAll(t, func(l *netLab) {
		source := l.target(iqn1, 1)
		source.Portals = []host.TargetPortal{dead, portal2, portal1}
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		l.sessions(1, 2, 1)
		sessions, err := l.os.Sessions(l.ctx)
		if err != nil || sessions[0].Portals[0] != portal2 {
			l.Errorf("the session is %+v, %v; want it through %+v", sessions, err, portal2)
		}
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
		l.sessions(0, 0, 0)
		l.noHolds()
		source.Portals = []host.TargetPortal{dead}
		l.want(host.KindUnavailable, l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		l.sessions(0, 0, 0)
		l.noHolds()
	})
}

func TestC049_CredentialsAreChecked(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		source := l.target(iqn1, 1, func(t *sim.ISCSITarget) {
			t.ChapUser, t.ChapSecret, t.MutualSecret = "user", newLogin, "mutual-secret"
		})
		for _, chap := range []host.ConnectOptions{
			{AuthType: host.AuthNone, ChapSecret: newLogin}, {AuthType: host.AuthOneWayCHAP, ChapUsername: "user"},
		} {
			source.CHAP = chap
			l.want(host.KindInvalid, l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		}
		source.CHAP = host.ConnectOptions{AuthType: host.AuthMutualCHAP, ChapUsername: "user", ChapSecret: newLogin}
		l.want(host.KindPrecondition, l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		for _, secret := range []string{"elevenchars", "seventeen-letters"} {
			source.MutualSecret = secret
			l.want(host.KindInvalid, l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		}
		source.MutualSecret = "mutual-secret"
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
		l.sessions(0, 0, 0)
		for _, secret := range []string{newLogin, "mutual-secret", "elevenchars"} {
			if strings.Contains(l.log.String(), secret) {
				l.Errorf("the log holds %q", secret)
			}
		}
	})
}

func TestC050_EveryVolumeHasItsOwnCredentials(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		sources := map[string]node.ISCSISource{}
		for volume, secret := range map[string]string{"v1": "first-secret", "v2": "second-secret"} {
			source := l.target("iqn.2026-01.example:"+volume, 1, func(t *sim.ISCSITarget) {
				t.ChapUser, t.ChapSecret = "user-"+volume, secret
			})
			source.CHAP = host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "user-" + volume, ChapSecret: secret}
			sources[volume] = source
		}
		for volume, source := range sources {
			logins := l.calls(login, func() { l.ok(l.tasks.Stage(l.ctx, iscsiStage(volume, source))) })
			if len(logins) != 1 || logins[0].Params["ChapUsername"] != "user-"+volume {
				l.Errorf("logins are %+v", logins)
			}
		}
		l.sessions(2, 1, 2)
		for volume, source := range sources {
			l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage(volume, source)))
		}
		source := sources["v1"]
		source.CHAP.ChapSecret = "wrong-secret!"
		source.Portals = []host.TargetPortal{portal1, portal2}
		logins := l.calls(login, func() {
			err := l.tasks.Stage(l.ctx, iscsiStage("v1", source))
			l.want(host.KindUnauthenticated, err)
			if strings.Contains(fmt.Sprint(err), "wrong-secret!") {
				l.Errorf("the error holds the secret: %v", err)
			}
		})
		if len(logins) != 1 {
			l.Errorf("refused credentials were tried %d times", len(logins))
		}
		l.sessions(0, 0, 0)
		l.noHolds()
	})
}

func TestC052_NoLoginOutlivesARestart(t *testing.T) {
	t.Parallel()
	overAll(t, func(l *netLab) {
		source := l.target(iqn1, 1)
		logins := l.calls(login, func() { l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source))) })
		if len(logins) != 1 || logins[0].Params["IsPersistent"] != false {
			l.Errorf("logins are %+v", logins)
		}
		l.ok(l.agent.WriteVolumeCache(l.ctx, l.volumeAt("v1")))
		l.reboot()
		l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
		l.sessions(0, 1, 0)
		l.ok(l.agent.StopService(l.ctx, "MSiSCSI", true))
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		l.sessions(1, 1, 1)
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
		l.sessions(0, 0, 0)
		l.noHolds()
	})
}

// volumeAt is the volume at a staging path.
func (l *netLab) volumeAt(volume string) string {
	l.Helper()
	id, err := l.agent.GetVolumeIDFromTargetPath(l.ctx, netStaging(volume))
	l.ok(err)
	return id
}
