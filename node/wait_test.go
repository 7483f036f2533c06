package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
)

// waits fails the test unless a task waits for a lock that somebody has, and gives up
// with its caller.
func waits(t *testing.T, what string, held node.Held, err error, do func(context.Context) error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	for !held.IsWanted() {
		select {
		case err := <-ended:
			t.Errorf("%s did not wait: %v", what, err)
			return
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; !host.IsKind(err, host.KindBusy) {
		t.Errorf("%s: got %v, want kind %q", what, err, host.KindBusy)
	}
}

// What changes a disk waits for who changes it now.
func TestTasksWaitForTheLockOfTheirDisk(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.published()
		disk := func(what string, do func(context.Context) error) {
			l.Helper()
			held, err := l.tasks.HoldDisk(l.ctx, number)
			waits(l.T, what, held, err, do)
		}
		unstage := func(ctx context.Context) error { return l.tasks.Unstage(ctx, unstageRequest(source)) }
		disk("a repeated stage", func(ctx context.Context) error { return l.tasks.Stage(ctx, stageRequest(source)) })
		disk("an expansion", func(ctx context.Context) error {
			_, err := l.tasks.Expand(ctx, node.ExpandRequest{VolumeID: volumeID, Path: targetPath})
			return err
		})
		l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
		disk("an unstage", unstage)
		l.linkKind(stagingPath, host.LinkMountPoint)
		// Cut off after the volume was unmounted, it is repeated.
		l.ok(l.agent.UnmountVolume(l.ctx, l.disk(number).Volumes[0], stagingPath))
		disk("a repeated unstage", unstage)
		if l.disk(number).Offline {
			l.Error("the disk is offline already")
		}
		l.ok(unstage(l.ctx))
		if !l.disk(number).Offline {
			l.Error("the disk stays online")
		}
		l.clean()
	})
}

// Who looks whether it is the last on a share meets nobody who begins to use it.
func TestTasksWaitForTheLockOfTheirShare(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		share := func(what string, do func(context.Context) error) {
			l.Helper()
			held, err := l.tasks.HoldShare(l.ctx, `\\SRV\Share`)
			waits(l.T, what, held, err, do)
		}
		share("a stage", func(ctx context.Context) error { return l.tasks.Stage(ctx, smbStage("v1", `\\srv\share\a`)) })
		l.mapped(0)
		l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
		share("an unstage", func(ctx context.Context) error { return l.tasks.Unstage(ctx, smbUnstage("v1", `\\srv\share\a`)) })
		if !l.official {
			share("an unstage without a hint", func(ctx context.Context) error { return l.tasks.Unstage(ctx, smbUnstage("v1", "")) })
		}
		l.mapped(1)
		l.ok(l.tasks.Unstage(l.ctx, smbUnstage("v1", `\\srv\share\a`)))
		l.mapped(0)
		l.noHolds()
	})
}

// A login is begun and ended under the lock of its target, however its name is spelled.
func TestTasksWaitForTheLockOfTheirTarget(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		source := l.target(iqn1, 1)
		l.ok(l.agent.StartService(l.ctx, "MSiSCSI"))
		target := func(what string, do func(context.Context) error) {
			l.Helper()
			held, err := l.tasks.HoldTarget(l.ctx, strings.ToUpper(iqn1))
			waits(l.T, what, held, err, do)
		}
		target("a stage", func(ctx context.Context) error { return l.tasks.Stage(ctx, iscsiStage("v1", source)) })
		l.sessions(0, 0, 0)
		l.ok(l.tasks.Stage(l.ctx, iscsiStage("v1", source)))
		target("an unstage", func(ctx context.Context) error { return l.tasks.Unstage(ctx, iscsiUnstage("v1", source)) })
		l.sessions(1, 1, 1)
		l.ok(l.tasks.Unstage(l.ctx, iscsiUnstage("v1", source)))
		l.sessions(0, 0, 0)
		l.noHolds()
	})
}
