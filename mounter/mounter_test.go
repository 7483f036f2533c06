package mounter_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	mount "k8s.io/mount-utils"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/mounter"
	"github.com/csi-windows/csi-windows/sim"
)

// both runs a test with our agent, and with what every csi-proxy has.
func both(t *testing.T, test func(t *testing.T, l *lab, official bool)) {
	t.Helper()
	for name, official := range map[string]bool{"ours": false, "official": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newLab(t, official), official)
		})
	}
}

func TestNewNeedsAHost(t *testing.T) {
	t.Parallel()
	if _, err := mounter.New(nil, mounter.Options{}); !host.IsKind(err, host.KindInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestC091_KindsOfPaths(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, l *lab, official bool) {
		l.ok(l.mounter.MakeDir(root + `\dir`))
		l.write(root+`\file`, "x")
		l.ok(l.mounter.Mount(root+`\dir`, root+`\link`, "", []string{"bind"}))
		l.mounted(root + `\mount`)
		l.detach(l.mounted(root + `\gone`))
		for name, want := range map[string]struct {
			not, corrupted, failed bool
		}{
			"dir": {not: true}, "file": {not: true, failed: true}, "link": {}, "mount": {}, "gone": {corrupted: true, failed: true},
		} {
			not, err := l.mounter.IsLikelyNotMountPoint(root + `\` + name)
			if not != want.not || (err != nil) != want.failed || mount.IsCorruptedMnt(err) != want.corrupted {
				t.Errorf("IsLikelyNotMountPoint(%s) = %v, %v", name, not, err)
			}
			is, err := l.mounter.IsMountPoint(root + `\` + name)
			if is == (want.not || want.failed) || (err != nil) != want.failed {
				t.Errorf("IsMountPoint(%s) = %v, %v", name, is, err)
			}
		}
		_, err := l.mounter.IsLikelyNotMountPoint(root + `\nothing`)
		if !errors.Is(err, fs.ErrNotExist) || !os.IsNotExist(err) {
			t.Errorf("what is missing: %v", err)
		}
		l.ok(l.mounter.MakeDir(root + `\mount`))
		if official {
			_, err := l.mounter.List()
			l.want(host.KindUnsupported, err)
			return
		}
		l.wantPoints(root+`\mount`, root+`\gone`)
		l.ok(l.mounter.CleanupMountPoint(root + `\gone`))
		l.wantPoints(root + `\mount`)
	})
}

// wantPoints fails the test unless exactly these paths are listed, beside drives.
func (l *lab) wantPoints(want ...string) {
	l.Helper()
	points, err := l.mounter.List()
	l.ok(err)
	var paths []string
	for _, point := range points {
		if len(strings.TrimRight(point.Path, `\`)) > len("C:") {
			paths = append(paths, strings.TrimRight(point.Path, `\`))
		}
		if !strings.HasPrefix(point.Device, `\\?\Volume{`) {
			l.Errorf("%s has the device %q", point.Path, point.Device)
		}
	}
	slices.Sort(paths)
	slices.Sort(want)
	if !slices.Equal(paths, want) {
		l.Errorf("mount points are %q, want %q", paths, want)
	}
}

func TestC091_LinkThatLeadsNowhereIsCorrupted(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, l *lab, _ bool) {
		l.ok(l.node.MakeLink(t.Context(), root+`\link`, root+`\nowhere`))
		not, err := l.mounter.IsLikelyNotMountPoint(root + `\link`)
		if not || !mount.IsCorruptedMnt(err) {
			t.Errorf("got %v, %v", not, err)
		}
		if refs, err := l.mounter.GetMountRefs(root + `\link`); err != nil || len(refs) > 0 {
			t.Errorf("GetMountRefs: %q, %v", refs, err)
		}
		l.ok(l.mounter.Unmount(root + `\link`))
		if exists, err := l.mounter.ExistsPath(root + `\link`); exists || err != nil {
			t.Errorf("after the unmount: %v, %v", exists, err)
		}
	})
}

func TestLifeOfADisk(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, l *lab, _ bool) {
		disk := l.disk()
		stage, pod := root+`\plugins\stage`, "/var/lib/kubelet/pods/mount"
		for range 2 { // a repetition changes nothing
			l.ok(l.mounter.FormatAndMount(disk, stage, "ntfs", nil))
			l.ok(l.mounter.Mount(stage, pod, "", []string{"bind"}))
		}
		l.write(stage+`\file`, "data")
		l.holds(root+`\pods\mount\file`, "data")
		id, err := l.mounter.GetDeviceNameFromMount(pod, "")
		l.ok(err)
		if refs, err := l.mounter.GetMountRefs(stage); err != nil || !slices.Equal(refs, []string{stage}) {
			t.Errorf("GetMountRefs: %q, %v", refs, err)
		}
		stats, err := l.mounter.GetVolumeStats(stage)
		if err != nil || stats.TotalBytes <= 0 || stats.TotalBytes > 256*mib {
			t.Errorf("GetVolumeStats: %+v, %v", stats, err)
		}
		_, err = l.mounter.GetVolumeStats(root)
		l.want(host.KindPrecondition, err)
		number, err := l.mounter.GetDiskNumber(stage)
		l.ok(err)
		l.ok(l.node.GrowDisk(t.Context(), number, 512*mib))
		l.ok(l.mounter.Rescan())
		l.ok(l.mounter.ResizeVolume(stage))
		if grown, err := l.mounter.GetVolumeStats(stage); err != nil || grown.TotalBytes < stats.TotalBytes+200*mib {
			t.Errorf("after growing: %+v, %v", grown, err)
		}
		for range 2 {
			l.ok(l.mounter.Unmount(pod))
			l.ok(l.mounter.Unmount(stage))
		}
		_, err = l.mounter.GetDeviceNameFromMount(stage, "")
		if err == nil {
			t.Error("the volume is still mounted")
		}
		l.ok(l.mounter.Mount(id, stage, "", nil))
		l.holds(stage+`\file`, "data")
		l.ok(l.mounter.CleanupMountPoint(stage))
		if exists, err := l.mounter.PathExists(stage); exists || err != nil {
			t.Errorf("after the cleanup: %v, %v", exists, err)
		}
	})
}

func TestC021_UnmountFlushesFirst(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, l *lab, _ bool) {
		l.mounted(root + `\mount`)
		l.ok(l.node.RecordCalls(t.Context(), true))
		l.ok(l.mounter.Unmount(root + `\mount`))
		log, err := l.node.CallLog(t.Context())
		l.ok(err)
		flush := slices.IndexFunc(log, func(c sim.Call) bool { return strings.Contains(c.Name, "Flush") })
		removal := slices.IndexFunc(log, func(c sim.Call) bool {
			return strings.Contains(c.Name, "DeleteVolumeMountPoint") || strings.Contains(c.Name, "RemoveAccessPath") || strings.Contains(c.Name, "SetFileInformation")
		})
		if flush < 0 || removal < flush {
			t.Errorf("flush is call %d, the removal call %d of %+v", flush, removal, log)
		}
	})
}

func TestC069_FileSystemsOfWindows(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	disk := l.disk()
	for _, fstype := range []string{"ext4", "xfs", "cifs"} {
		l.want(host.KindInvalid, l.mounter.FormatAndMount(disk, root+`\m`, fstype, nil))
	}
	states, err := l.node.Disks(t.Context())
	l.ok(err)
	if !slices.ContainsFunc(states, func(d sim.DiskStatus) bool { return !d.System && d.Style == "RAW" && d.Offline }) {
		t.Errorf("the disk was touched: %+v", states)
	}
	l.ok(l.mounter.FormatAndMount(disk, root+`\m`, "refs", nil))
	id, err := l.mounter.GetDeviceNameFromMount(root+`\m`, "")
	l.ok(err)
	if volume, err := l.host.GetVolume(t.Context(), id); err != nil || volume.FileSystem != "ReFS" {
		t.Errorf("got %+v, %v", volume, err)
	}
}

func TestReadOnlyChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	err := l.mounter.FormatAndMount(l.disk(), root+`\m`, "", []string{"ro"})
	var mountError mount.MountError
	if !errors.As(err, &mountError) || mountError.Type != mount.UnformattedReadOnly {
		t.Errorf("an empty disk: %v", err)
	}
	disk := l.mounted(root + `\rw`)
	l.ok(l.mounter.Unmount(root + `\rw`))
	l.ok(l.mounter.FormatAndMount(disk, root+`\ro`, "", []string{"ro"}))
}
