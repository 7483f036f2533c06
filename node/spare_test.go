package node_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

// sparing is a host that removes no folder with what is in it.
type sparing struct {
	host.Host
	forced *atomic.Int64
}

func (s sparing) Rmdir(ctx context.Context, path string, force bool) error {
	if force {
		s.forced.Add(1)
		return &host.Error{Op: "Rmdir", Object: path, Kind: host.KindDenied, Cause: errors.New("with what is in it")}
	}
	return s.Host.Rmdir(ctx, path, force)
}

// No task ever asks for a folder to be removed with what is in it: a link that was
// replaced by a folder after it was looked at loses nothing.
func TestNothingIsRemovedWithWhatIsInIt(t *testing.T) {
	for name, world := range map[string]func(host.Host) host.Host{"additions": nil, "official": official, "upstream": upstream} {
		t.Run(name, func(t *testing.T) {
			forced := &atomic.Int64{}
			l := newLab(t, func(h host.Host) host.Host {
				if world != nil {
					h = world(h)
				}
				return sparing{h, forced}
			})
			l.ok(l.agent.Mkdir(l.ctx, stagingPath))
			l.ok(l.agent.Mkdir(l.ctx, targetPath)) // both as some kubelets make them
			number, source := l.published()
			request := publishRequest()
			request.Access.SingleWriter = true
			l.ok(l.tasks.Publish(l.ctx, request))
			l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
			l.ok(l.agent.Mkdir(l.ctx, targetPath))
			l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
			l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
			l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
			l.ok(l.tasks.Publish(l.ctx, publishRequest()))
			request.StagingPath = l.another()
			request.Access.SingleWriter = false
			l.ok(l.node.DetachDisk(l.ctx, number)) // what is left is dead
			l.ok(l.tasks.Publish(l.ctx, request))
			other, otherSource := l.attach()
			l.ok(l.tasks.Stage(l.ctx, stageRequest(otherSource)))
			l.ok(l.node.DetachDisk(l.ctx, other))
			l.ok(l.tasks.Unstage(l.ctx, unstageRequest(otherSource)))
			if n := forced.Load(); n > 0 {
				t.Errorf("%d times a folder was to be removed with what is in it", n)
			}
		})
	}
}

// loud is a host that writes the ids of volumes in capitals, in lists only.
type loud struct{ host.Host }

func (h loud) ListVolumesOnDisk(ctx context.Context, disk, partition uint32) ([]string, error) {
	ids, err := h.Host.ListVolumesOnDisk(ctx, disk, partition)
	for i := range ids {
		ids[i] = strings.ToUpper(ids[i])
	}
	return ids, err
}

// A volume that is staged stays as it is, however its id is spelled.
func TestAVolumeIsItselfInEverySpelling(t *testing.T) {
	for name, world := range map[string]func(host.Host) host.Host{"additions": nil, "official": official} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, func(h host.Host) host.Host {
				if world != nil {
					h = world(h)
				}
				return loud{h}
			})
			number, source := l.staged()
			l.write(stagingPath+`\file`, "content")
			calls := l.calls(func() { l.ok(l.tasks.Stage(l.ctx, stageRequest(source))) })
			l.noneOf(calls, "win32.DeleteVolumeMountPoint", "win32.SetVolumeMountPoint")
			l.holds(stagingPath+`\file`, "content")
			l.linkKind(stagingPath, host.LinkMountPoint)
			l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
			if !l.disk(number).Offline {
				l.Error("the disk stays online")
			}
			l.clean()
		})
	}
}

// A stage that fails takes back no mapping that somebody else has made.
func TestAFailedStageSparesAForeignMapping(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false)
	l.ok(l.os.CreateSMBMapping(l.ctx, agent.SMBRequest{Share: `\\srv\share`, Username: "u", Password: "pw", RequirePrivacy: true}))
	if err := l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\none`)); err == nil {
		t.Error("a folder that is missing was staged")
	}
	l.mapped(1)
	l.noHolds()
}

// lateMapping is a host on which a mapping is made although the time is over.
type lateMapping struct {
	host.Host
	late *atomic.Bool
}

func (h lateMapping) NewSmbGlobalMapping(ctx context.Context, remote, local, username, password string) error {
	err := h.Host.NewSmbGlobalMapping(ctx, remote, local, username, password)
	if err == nil && h.late.Load() {
		err = &host.Error{Op: "NewSmbGlobalMapping", Kind: host.KindTimeout, Cause: context.DeadlineExceeded}
	}
	return err
}

// With the outcome of a mapping unknown nothing is taken back: the next attempt finds
// it, and the unstage ends it.
func TestAStageWithUnknownOutcomeIsLeftForTheNext(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false)
	late := &atomic.Bool{}
	late.Store(true)
	tasks, err := node.New(lateMapping{l.agent, late}, node.Options{Logger: l.policy.Logger})
	l.ok(err)
	removed := l.calls(removeMapping, func() {
		l.want(host.KindTimeout, tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
	})
	if len(removed) > 0 {
		t.Errorf("the mapping was removed: %+v", removed)
	}
	l.mapped(1)
	late.Store(false)
	l.ok(tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
	l.holds(netStaging("v1")+`\file`, "a")
	l.ok(tasks.Unstage(l.ctx, smbUnstage("v1", "")))
	l.mapped(0)
	l.noHolds()
}

// A link to a share that cannot be reached for now is live, and no other source takes
// its place.
func TestALinkToASilentServerIsKept(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false)
	l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
	other := smbStage("v1", `\\srv\second`)
	for range 2 {
		if err := l.tasks.Stage(l.ctx, other); err == nil {
			t.Error("another share took the place")
		}
		link, err := l.agent.GetLink(l.ctx, netStaging("v1"))
		if err != nil || !strings.Contains(link.Target, `share\a`) {
			t.Errorf("the link is %+v, %v", link, err)
		}
		l.mapped(1)
		l.serve(func(s *sim.SMBServer) { s.Failure = 53 })
	}
	l.serve(nil)
	l.holds(netStaging("v1")+`\file`, "a")
}

// A target has one name in every spelling: its units share a login, and a target that
// was made after its portal was asked is found.
func TestATargetIsItselfInEverySpelling(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		l.target(iqn1, 1)
		l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
		l.ok(l.agent.AddTargetPortal(l.ctx, portal1))
		small := l.target(iqn2, 2) // after the portal was asked
		large := small
		large.IQN, large.LUN = strings.ToUpper(iqn2), 1
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v2", large)))
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", small)))
		l.sessions(1, 1, 2)
		l.ok(l.node.WriteFile(l.ctx, netStaging("v1")+`\file`, []byte("one")))
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v2", large))) // which has logged in
		l.sessions(1, 1, 2)
		l.holds(netStaging("v1")+`\file`, "one")
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", small)))
		l.sessions(0, 1, 0) // the portal is somebody else's
		l.noHolds()
		// The hint of an unstage may be spelled in another way.
		l.ok(l.agent.RemoveTargetPortal(l.ctx, portal1))
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", small)))
		hint := small
		hint.IQN = strings.ToUpper(iqn2)
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", hint)))
		l.sessions(0, 0, 0)
		l.noHolds()
	})
}
