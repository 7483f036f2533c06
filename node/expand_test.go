package node_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

func expandRequest(required int64) node.ExpandRequest {
	return node.ExpandRequest{VolumeID: volumeID, Path: targetPath, RequiredBytes: required}
}

func (l *lab) totalBytes(path string) int64 {
	l.Helper()
	stats, err := l.tasks.Stats(l.ctx, node.StatsRequest{VolumeID: volumeID, Path: path})
	l.ok(err)
	return stats.TotalBytes
}

func TestExpandFollowsTheDisk(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, _ := l.published()
		l.write(targetPath+`\file`, "content")
		l.want(host.KindPrecondition, second(l.tasks.Expand(l.ctx, expandRequest(512*mib))))
		l.ok(l.node.GrowDisk(l.ctx, number, 512*mib))
		for range 2 {
			result, err := l.tasks.Expand(l.ctx, expandRequest(512*mib))
			if err != nil || result.CapacityBytes != 512*mib {
				l.Fatalf("Expand = %+v, %v", result, err)
			}
		}
		if total := l.totalBytes(targetPath); total < 480*mib {
			l.Errorf("the file system has %d bytes", total)
		}
		l.holds(targetPath+`\file`, "content")
		limited := expandRequest(0)
		limited.LimitBytes = 256 * mib
		l.want(host.KindInvalid, second(l.tasks.Expand(l.ctx, limited)))
	})
}

// second returns the error of a call with a result.
func second[T any](_ T, err error) error { return err }

func TestC011_ATinyGainIsNotTaken(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, _ := l.published()
		l.ok(l.node.GrowDisk(l.ctx, number, 65*mib))
		before := l.totalBytes(targetPath)
		calls := l.calls(func() { l.ok(second(l.tasks.Expand(l.ctx, expandRequest(65*mib)))) })
		if slices.Contains(calls, "cim.Exec MSFT_Partition.Resize") || l.totalBytes(targetPath) != before {
			l.Errorf("the partition was resized: %q", calls)
		}
	})
}

func TestGrowAtStage(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.staged()
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		l.ok(l.node.GrowDisk(l.ctx, number, 512*mib))
		l.ok(l.agent.Rescan(l.ctx))
		request := stageRequest(source)
		l.ok(l.tasks.Stage(l.ctx, request))
		if total := l.totalBytes(stagingPath); total > 64*mib {
			l.Errorf("the file system grew unasked to %d bytes", total)
		}
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		request.Grow = true
		for range 2 {
			l.ok(l.tasks.Stage(l.ctx, request))
			if total := l.totalBytes(stagingPath); total < 480*mib {
				l.Errorf("the file system has %d bytes", total)
			}
		}
	})
}

func TestC015_StatsAreThoseOfTheVolume(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, _ := l.published()
		for _, path := range []string{stagingPath, targetPath} {
			if total := l.totalBytes(path); total <= 0 || total > 64*mib {
				l.Errorf("the volume at %s has %d bytes", path, total)
			}
		}
		for path, kind := range map[string]host.Kind{
			root: host.KindPrecondition, root + `\pods`: host.KindPrecondition, root + `\missing`: host.KindNotFound,
		} {
			l.want(kind, second(l.tasks.Stats(l.ctx, node.StatsRequest{VolumeID: volumeID, Path: path})))
			if path != root {
				l.want(kind, second(l.tasks.Expand(l.ctx, node.ExpandRequest{VolumeID: volumeID, Path: path})))
			}
		}
		l.ok(l.node.DetachDisk(l.ctx, number))
		l.want(host.KindUnavailable, second(l.tasks.Stats(l.ctx, node.StatsRequest{VolumeID: volumeID, Path: targetPath})))
	})
}

// reasons are what Health says, joined.
func (l *lab) reasons() string {
	l.Helper()
	health, err := l.tasks.Health(l.ctx, node.HealthRequest{VolumeID: volumeID, StagingPath: stagingPath, TargetPath: targetPath})
	l.ok(err)
	var reasons []string
	for _, c := range health.Conditions {
		reasons = append(reasons, string(c.Status)+" "+c.Reason)
		if c.Message == "" {
			l.Errorf("%s has no message", c.Reason)
		}
	}
	return strings.Join(reasons, ", ")
}

func TestHealth(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		expect := func(want string) {
			l.Helper()
			if got := l.reasons(); got != want {
				l.Errorf("Health says %q, want %q", got, want)
			}
		}
		expect("INACCESSIBLE PathMissing")
		number, source := l.published()
		expect("")
		if !l.isOfficial {
			l.ok(l.agent.SetDiskReadOnly(l.ctx, number, true))
			expect("DEGRADED DiskReadOnly")
			l.ok(l.agent.SetDiskReadOnly(l.ctx, number, false))
		}
		l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
		expect("INACCESSIBLE PathMissing")
		l.ok(l.tasks.Publish(l.ctx, publishRequest()))
		l.ok(l.agent.SetDiskState(l.ctx, number, false))
		expect("INACCESSIBLE VolumeMissing")
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		l.ok(l.agent.Mkdir(l.ctx, stagingPath))
		expect("INACCESSIBLE NotMounted")
	})
}

func TestInfoSaysWhatIsLacking(t *testing.T) {
	l := newLab(t, nil, func(c *sim.Config) { c.BIOSSerial = "SERIAL-1" })
	info, err := l.tasks.Info(l.ctx)
	if err != nil || info.BIOSSerialNumber != "SERIAL-1" || len(info.Lacks) != 0 {
		t.Errorf("Info = %+v, %v", info, err)
	}
	l = newLab(t, official)
	info, err = l.tasks.Info(l.ctx)
	want := []string{"FormatVolumeWith", "GetLink", "GetPathStats", "GetVolume", "ListDisks", "ListMounts",
		"ListSmbGlobalMappings", "ListTargets", "ListVolumes", "SetDiskReadOnly"}
	if err != nil || !slices.Equal(info.Lacks, want) {
		t.Errorf("Info = %+v, %v; want lacks %q", info, err, want)
	}
}

// quotaHost is a host whose shares have sizes that do not fit together.
type quotaHost struct {
	host.Host
	sizes host.VolumeStats
}

func (q quotaHost) GetPathStats(context.Context, string) (host.VolumeStats, error) {
	return q.sizes, nil
}

func TestStatsAreNeverNegative(t *testing.T) {
	t.Parallel()
	l := newNetLab(t, false)
	l.kubeletFolder("v1")
	l.ok(l.tasks.Stage(l.ctx, smbStage("v1", `\\srv\share\a`)))
	for told, want := range map[host.VolumeStats]node.Stats{
		{TotalBytes: 10, UsedBytes: -90}: {TotalBytes: 10, UsedBytes: 0, AvailableBytes: 10},
		{TotalBytes: 10, UsedBytes: 15}:  {TotalBytes: 10, UsedBytes: 15, AvailableBytes: 0},
	} {
		tasks, err := node.New(quotaHost{l.agent, told}, node.Options{})
		l.ok(err)
		if got, err := tasks.Stats(l.ctx, node.StatsRequest{VolumeID: "v1", Path: netStaging("v1")}); err != nil || got != want {
			t.Errorf("Stats = %+v, %v; want %+v", got, err, want)
		}
	}
}
