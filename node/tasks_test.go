package node_test

import (
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
)

// TestLifeOfADisk goes through every task once, each done twice.
func TestLifeOfADisk(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.attach()
		if d := l.disk(number); !d.Offline || !d.ReadOnly {
			l.Fatalf("a new disk is %+v, want offline and read-only", d)
		}
		for range 2 {
			l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		}
		if d := l.disk(number); d.Offline || d.ReadOnly || len(d.Volumes) != 1 {
			l.Fatalf("a staged disk is %+v", d)
		}
		l.linkKind(stagingPath, host.LinkMountPoint)
		for range 2 {
			l.ok(l.tasks.Publish(l.ctx, publishRequest()))
		}
		l.linkKind(targetPath, host.LinkSymlink)
		l.write(targetPath+`\file`, "content")
		l.holds(stagingPath+`\file`, "content")
		stats, err := l.tasks.Stats(l.ctx, node.StatsRequest{VolumeID: volumeID, Path: targetPath})
		if err != nil || stats.TotalBytes <= 0 || stats.TotalBytes > 64*mib || stats.AvailableBytes != stats.TotalBytes-stats.UsedBytes {
			l.Errorf("Stats = %+v, %v", stats, err)
		}
		health, err := l.tasks.Health(l.ctx, node.HealthRequest{VolumeID: volumeID, StagingPath: stagingPath, TargetPath: targetPath})
		if err != nil || len(health.Conditions) != 0 {
			l.Errorf("Health = %+v, %v", health, err)
		}
		for range 2 {
			l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
		}
		l.exists(targetPath, false)
		l.holds(stagingPath+`\file`, "content")
		for range 2 {
			l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		}
		l.linkKind(stagingPath, host.NotALink)
		if d := l.disk(number); !d.Offline {
			l.Errorf("an unstaged disk is %+v", d)
		}
		l.clean()
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		l.holds(stagingPath+`\file`, "content")
	})
}
