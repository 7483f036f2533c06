package node_test

import (
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
)

func TestC045_PublishNeedsALiveStage(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.want(host.KindPrecondition, l.tasks.Publish(l.ctx, publishRequest()))
		l.ok(l.agent.Mkdir(l.ctx, stagingPath))
		l.want(host.KindPrecondition, l.tasks.Publish(l.ctx, publishRequest()))
		l.ok(l.agent.Rmdir(l.ctx, stagingPath, false))
		number, _ := l.staged()
		l.ok(l.node.DetachDisk(l.ctx, number))
		l.want(host.KindPrecondition, l.tasks.Publish(l.ctx, publishRequest()))
		l.exists(targetPath, false)
	})
}

func TestC068_RepeatsAreSuccess(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		_, source := l.staged()
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		for range 2 {
			l.ok(l.tasks.Publish(l.ctx, publishRequest()))
		}
		for range 2 {
			l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
		}
		for range 2 {
			l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		}
		l.ok(l.tasks.Unstage(l.ctx, node.UnstageRequest{VolumeID: "unknown", StagingPath: root + `\unknown`}))
		l.ok(l.tasks.Unpublish(l.ctx, node.UnpublishRequest{VolumeID: "unknown", TargetPath: root + `\unknown`}))
		l.want(host.KindNotFound, l.tasks.Stage(l.ctx, stageRequest(l.sourceOf("unknown"))))
	})
}

func TestRepeatedPublishChangesNothing(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.published()
		calls := l.calls(func() { l.ok(l.tasks.Publish(l.ctx, publishRequest())) })
		if changed := changes(calls); len(changed) > 0 {
			l.Errorf("a repeated publish made changes: %q", changed)
		}
	})
}

func TestC026_C030_PathsInEverySpelling(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.published()
		spelled := node.PublishRequest{
			VolumeID:    volumeID,
			StagingPath: strings.ReplaceAll(strings.TrimPrefix(stagingPath, "C:"), `\`, "/"),
			TargetPath:  strings.ToUpper(targetPath),
		}
		l.ok(l.tasks.Publish(l.ctx, spelled))
		l.ok(l.tasks.Unpublish(l.ctx, node.UnpublishRequest{VolumeID: volumeID, TargetPath: `\\?\` + targetPath + `\`}))
		l.exists(targetPath, false)
	})
}

func TestPublishReplacesAnEmptyFolder(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.ok(l.agent.Mkdir(l.ctx, targetPath))
		l.published()
		l.linkKind(targetPath, host.LinkSymlink)
	})
}

func TestC027_PublishKeepsAFolderWithFiles(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.staged()
		l.ok(l.agent.Mkdir(l.ctx, targetPath))
		l.write(targetPath+`\file`, "content")
		l.want(host.KindPrecondition, l.tasks.Publish(l.ctx, publishRequest()))
		l.holds(targetPath+`\file`, "content")
		l.want(host.KindPrecondition, l.tasks.Unpublish(l.ctx, unpublishRequest()))
		l.holds(targetPath+`\file`, "content")
	})
}

func TestAFileAtTheTargetIsKept(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.staged()
		l.ok(l.agent.Mkdir(l.ctx, root+`\pods\4567\volumes\kubernetes.io~csi\pvc-89`))
		l.write(targetPath, "content")
		l.want(host.KindPrecondition, l.tasks.Publish(l.ctx, publishRequest()))
		l.want(host.KindPrecondition, l.tasks.Unpublish(l.ctx, unpublishRequest()))
		l.holds(targetPath, "content")
	})
}

// another stages a second volume and returns where.
func (l *lab) another() (path string) {
	l.Helper()
	path = root + `\plugins\another`
	_, source := l.attach()
	l.ok(l.tasks.Stage(l.ctx, node.StageRequest{VolumeID: "volume-2", StagingPath: path, Source: source}))
	return path
}

func TestALiveLinkElsewhereIsKept(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.staged()
		other := l.another()
		l.write(other+`\file`, "content")
		l.ok(l.agent.Mkdir(l.ctx, root+`\pods\4567\volumes\kubernetes.io~csi\pvc-89`))
		l.ok(l.agent.CreateSymlink(l.ctx, other, targetPath))
		l.want(host.KindExists, l.tasks.Publish(l.ctx, publishRequest()))
		l.holds(targetPath+`\file`, "content")
		l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
		l.holds(other+`\file`, "content")
	})
}

func TestAMountPointAtTheTargetIsKept(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.staged()
		number, _ := l.attach()
		l.ok(l.agent.PartitionDisk(l.ctx, number))
		volume := l.disk(number).Volumes[0]
		l.ok(l.agent.FormatVolume(l.ctx, volume))
		l.ok(l.agent.MountVolume(l.ctx, volume, targetPath))
		l.want(host.KindExists, l.tasks.Publish(l.ctx, publishRequest()))
		l.linkKind(targetPath, host.LinkMountPoint)
		l.ok(l.node.DetachDisk(l.ctx, number))
		l.ok(l.tasks.Publish(l.ctx, publishRequest()))
		l.linkKind(targetPath, host.LinkSymlink)
	})
}

func TestALinkToAnotherDeadVolumeIsReplaced(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, _ := l.published()
		l.ok(l.node.DetachDisk(l.ctx, number))
		other := l.another()
		l.ok(l.tasks.Publish(l.ctx, node.PublishRequest{VolumeID: volumeID, StagingPath: other, TargetPath: targetPath}))
		l.write(targetPath+`\file`, "content")
		l.holds(other+`\file`, "content")
	})
}

func TestSingleWriterIsPublishedOnce(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		_, source := l.staged()
		first, second := publishRequest(), publishRequest()
		first.Access.SingleWriter, second.Access.SingleWriter = true, true
		second.TargetPath = root + `\pods\other\mount`
		for range 2 {
			l.ok(l.tasks.Publish(l.ctx, first))
			l.want(host.KindPrecondition, l.tasks.Publish(l.ctx, second))
			l.exists(second.TargetPath, false)
		}
		l.restart()
		l.want(host.KindPrecondition, l.tasks.Publish(l.ctx, second))
		for range 2 {
			l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
		}
		l.ok(l.tasks.Publish(l.ctx, second))
		l.linkKind(second.TargetPath, host.LinkSymlink)
		l.want(host.KindPrecondition, l.tasks.Publish(l.ctx, first))
		l.ok(l.tasks.Unpublish(l.ctx, node.UnpublishRequest{VolumeID: volumeID, TargetPath: second.TargetPath}))
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		l.clean()
	})
}
