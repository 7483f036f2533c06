package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
)

// Where the tasks keep their holds nothing is staged or published, and nothing is
// taken away: a hold that is gone takes a mapping from under its users.
func TestTheTasksOwnFolderIsNotForVolumes(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		_, source := l.published()
		for _, path := range []string{folder, strings.ToUpper(folder) + `\`, folder + `\publish`, `/var/lib/kubelet/plugins/csi-windows/smb/x/users/y`, root + `\plugins`} {
			l.want(host.KindInvalid, l.tasks.Stage(l.ctx, node.StageRequest{VolumeID: "v", StagingPath: path, Source: source}))
			l.want(host.KindInvalid, l.tasks.Unstage(l.ctx, node.UnstageRequest{VolumeID: "v", StagingPath: path}))
			l.want(host.KindInvalid, l.tasks.Publish(l.ctx, node.PublishRequest{VolumeID: "v", StagingPath: stagingPath, TargetPath: path}))
			l.want(host.KindInvalid, l.tasks.Unpublish(l.ctx, node.UnpublishRequest{VolumeID: "v", TargetPath: path}))
		}
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		l.ok(l.tasks.Unpublish(l.ctx, node.UnpublishRequest{VolumeID: "v", TargetPath: folder + "-other"}))
	})
}

// Paths that Windows takes for something else than they seem, or that lie outside,
// are refused by the agent, whatever the task.
func TestHostilePathsChangeNothing(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.published()
		l.write(targetPath+`\file`, "content")
		_, source := l.attach()
		paths := []string{
			`C:\`, `C:`, `\`, `D:\x`, `\\srv\share\x`, `//srv/share/x`, `\\?\UNC\srv\share\x`, `\\.\PhysicalDrive1`, `NUL`, `relative\x`, `C:\Windows\x`,
			root + `\NUL`, root + `\x:stream`, root + `\x.`, root + `\x `, root + `\..\..\x`, root + `\` + strings.Repeat("x", 300),
		}
		changed := changes(l.calls(func() {
			for _, path := range paths {
				for what, err := range map[string]error{
					"stage":     l.tasks.Stage(l.ctx, node.StageRequest{VolumeID: "v", StagingPath: path, Source: source}),
					"unstage":   l.tasks.Unstage(l.ctx, node.UnstageRequest{VolumeID: "v", StagingPath: path, Source: source}),
					"publish":   l.tasks.Publish(l.ctx, node.PublishRequest{VolumeID: "v", StagingPath: stagingPath, TargetPath: path}),
					"unpublish": l.tasks.Unpublish(l.ctx, node.UnpublishRequest{VolumeID: "v", TargetPath: path}),
				} {
					if err == nil {
						l.Errorf("%s at %q is success", what, path)
					}
				}
			}
		}))
		if len(changed) > 0 {
			l.Errorf("these were made: %q", changed)
		}
		l.holds(targetPath+`\file`, "content")
	})
}

// A target that is the staging path, or in the volume, is refused, and so is the end of
// a publish there.
func TestATargetIsNoStagingPath(t *testing.T) {
	for name, wrap := range map[string]func(host.Host) host.Host{"additions": nil, "upstream": upstream} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, wrap)
			l.staged()
			for _, target := range []string{stagingPath, strings.ToUpper(stagingPath) + `\`, stagingPath + `/inside`} {
				r := publishRequest()
				r.TargetPath = target
				l.want(host.KindInvalid, l.tasks.Publish(l.ctx, r))
			}
			l.want(host.KindExists, l.tasks.Unpublish(l.ctx, node.UnpublishRequest{VolumeID: volumeID, TargetPath: stagingPath}))
			l.write(stagingPath+`\file`, "content")
			r := publishRequest()
			r.TargetPath = stagingPath + "-beside"
			l.ok(l.tasks.Publish(l.ctx, r))
		})
	}
}

// The specification forbids to unstage what is published. Nothing is lost by it.
func TestUnstageWhilePublished(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		_, source := l.published()
		l.write(targetPath+`\file`, "content")
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		for range 2 {
			l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
		}
		l.clean()
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		l.holds(stagingPath+`\file`, "content")
	})
}

// A path is one lock however it is spelled, and a volume one at whatever path.
func TestPathsAndVolumesAreLocked(t *testing.T) {
	waits := make(chan struct{}, 1)
	l := newLab(t, func(h host.Host) host.Host { return stalled{h, waits} })
	_, source := l.attach()
	ctx, cancel := context.WithCancel(l.ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.tasks.Stage(ctx, stageRequest(source)) }()
	<-waits
	spelled := strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(stagingPath, "C:"), `\`, "//"))
	spelled = strings.Replace(spelled, "//", "/", 1)
	short, stop := context.WithTimeout(l.ctx, 20*time.Millisecond)
	defer stop()
	l.want(host.KindBusy, l.tasks.Unstage(short, node.UnstageRequest{VolumeID: "other", StagingPath: spelled}))
	l.want(host.KindBusy, l.tasks.Publish(short, node.PublishRequest{VolumeID: "other", StagingPath: spelled, TargetPath: targetPath}))
	l.want(host.KindBusy, l.tasks.Unstage(short, node.UnstageRequest{VolumeID: volumeID, StagingPath: stagingPath + "-other"}))
	cancel()
	l.want(host.KindTimeout, <-ended)
}
