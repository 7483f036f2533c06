package node_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

// changes are the calls that change something, of a list of calls.
func changes(calls []string) []string {
	var found []string
	for _, call := range calls {
		for _, word := range []string{"cim.Exec", "Delete", "CreateSymlink", "SetVolumeMountPoint", "Flush"} {
			if strings.Contains(call, word) {
				found = append(found, call)
			}
		}
	}
	return found
}

func TestC021_FlushThenUnmountThenOffline(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		_, source := l.staged()
		calls := l.calls(func() {
			for range 3 {
				l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
			}
		})
		isStep := func(call string) bool {
			return !slices.Contains([]string{"win32.FlushFileBuffers", "win32.DeleteVolumeMountPoint", "cim.Exec MSFT_Disk.Offline"}, call)
		}
		steps := slices.DeleteFunc(calls, isStep)
		if want := []string{"win32.FlushFileBuffers", "win32.DeleteVolumeMountPoint", "cim.Exec MSFT_Disk.Offline"}; !slices.Equal(steps, want) {
			l.Errorf("the steps were %q, want %q", steps, want)
		}
	})
}

func TestC021_FailedFlushKeepsTheMount(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.staged()
		l.write(stagingPath+`\file`, "content")
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.FlushFileBuffers", Win32: 1117, Count: -1})) // ERROR_IO_DEVICE
		if err := l.tasks.Unstage(l.ctx, unstageRequest(source)); err == nil {
			l.Error("unstaged although the flush failed")
		}
		l.linkKind(stagingPath, host.LinkMountPoint)
		if d := l.disk(number); d.Offline {
			l.Error("the disk went offline although the flush failed")
		}
		l.ok(l.node.ClearFaults(l.ctx))
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		l.holds(stagingPath+`\file`, "content")
	})
}

func TestC022_DeadMountPointIsReplaced(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, _ := l.staged()
		l.ok(l.node.DetachDisk(l.ctx, number))
		l.linkKind(stagingPath, host.LinkMountPoint)
		_, source := l.attach()
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		l.write(stagingPath+`\file`, "content")
		calls := l.calls(func() { l.ok(l.tasks.Stage(l.ctx, stageRequest(source))) })
		if changed := changes(calls); len(changed) > 0 && !l.isOfficial {
			l.Errorf("a repeated stage made changes: %q", changed)
		}
		l.holds(stagingPath+`\file`, "content")
	})
}

func TestC022_UnstageOfADeadMountPoint(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.staged()
		l.ok(l.node.DetachDisk(l.ctx, number))
		for range 2 {
			l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
			l.linkKind(stagingPath, host.NotALink) // the folder is the kubelet's
		}
		l.clean()
	})
}

func TestC022_DanglingLinksAreReplaced(t *testing.T) {
	for name, wrap := range map[string]func(host.Host) host.Host{"additions": nil, "official": official} {
		t.Run(name, func(t *testing.T) { newLab(t, wrap).replaceDanglingLinks() })
	}
}

func (l *lab) makeDanglingLinks() {
	l.Helper()
	l.ok(l.agent.Mkdir(l.ctx, root+`\plugins\kubernetes.io\csi\disk.example\0123`))
	l.ok(l.agent.Mkdir(l.ctx, root+`\pods\4567\volumes\kubernetes.io~csi\pvc-89`))
	l.ok(l.node.MakeLink(l.ctx, stagingPath, root+`\nowhere`))
	l.ok(l.node.MakeLink(l.ctx, targetPath, root+`\nowhere`))
}

func (l *lab) replaceDanglingLinks() {
	l.Helper()
	_, source := l.attach()
	l.makeDanglingLinks()
	l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
	l.linkKind(stagingPath, host.LinkMountPoint)
	l.ok(l.tasks.Publish(l.ctx, publishRequest()))
	l.write(targetPath+`\file`, "content")
	l.holds(stagingPath+`\file`, "content")
}

// A csi-proxy that takes a dangling link for no link cannot tell it from a file,
// and a file is not taken away.
func TestC022_WhatMayBeAFileIsKept(t *testing.T) {
	l := newLab(t, upstream)
	_, source := l.attach()
	l.makeDanglingLinks()
	if err := l.tasks.Stage(l.ctx, stageRequest(source)); err == nil {
		t.Error("staged over what may be a file")
	}
	l.linkKind(stagingPath, host.LinkSymlink)
	l.want(host.KindPrecondition, l.tasks.Unpublish(l.ctx, unpublishRequest()))
	l.linkKind(targetPath, host.LinkSymlink)
}

func TestPowerCutLeavesWhatAStageFinds(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		_, source := l.published()
		l.write(targetPath+`\file`, "content")
		l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		l.ok(l.node.PowerCut(l.ctx))
		l.ok(l.node.Boot(l.ctx))
		l.restart()
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		l.ok(l.tasks.Publish(l.ctx, publishRequest()))
		l.holds(targetPath+`\file`, "content")
	})
}

func TestAnotherVolumeAtTheStagingPathIsKept(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.staged()
		l.write(stagingPath+`\file`, "content")
		number, source := l.attach()
		l.want(host.KindExists, l.tasks.Stage(l.ctx, stageRequest(source)))
		l.holds(stagingPath+`\file`, "content")
		if d := l.disk(number); d.Style != "RAW" {
			l.Errorf("the disk was touched: %+v", d)
		}
	})
}

func TestC069_FileSystems(t *testing.T) {
	for asked, want := range map[string]string{"": "NTFS", "ntfs": "NTFS", "ReFS": "ReFS", "exfat": "exFAT", "FAT32": "FAT32"} {
		t.Run("fs "+asked, func(t *testing.T) {
			l := newLab(t, nil)
			number, source := l.attach(func(s *sim.DiskSpec) { s.SizeBytes = 4 << 30 })
			request := stageRequest(source)
			request.Format.FileSystem = asked
			l.ok(l.tasks.Stage(l.ctx, request))
			volume, err := l.agent.GetVolume(l.ctx, l.disk(number).Volumes[0])
			if err != nil || volume.FileSystem != want {
				t.Errorf("the file system is %q, %v; want %q", volume.FileSystem, err, want)
			}
		})
	}
	for _, asked := range []string{"ext4", "xfs"} {
		inEveryWorld(t, func(l *lab) {
			number, source := l.attach()
			request := stageRequest(source)
			request.Format.FileSystem = asked
			l.want(host.KindInvalid, l.tasks.Stage(l.ctx, request))
			if d := l.disk(number); d.Style != "RAW" || !d.Offline {
				l.Errorf("the disk was touched: %+v", d)
			}
		})
	}
}

func TestC069_OfficialPrimitivesMakeNTFSOnly(t *testing.T) {
	l := newLab(t, official)
	_, source := l.attach()
	request := stageRequest(source)
	request.Format.FileSystem = "ReFS"
	l.want(host.KindUnsupported, l.tasks.Stage(l.ctx, request))
	l.exists(stagingPath, false)
}

func TestC014_ForeignDataIsNeverFormatted(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.attach()
		l.ok(l.node.CorruptDisk(l.ctx, number, 1024+56, []byte{0x53, 0xEF})) // the magic of ext4
		if err := l.tasks.Stage(l.ctx, stageRequest(source)); err == nil {
			l.Error("a disk with foreign data was staged")
		}
		if d := l.disk(number); d.Style != "RAW" {
			l.Errorf("the disk was touched: %+v", d)
		}
	})
}

func TestDiskThatArrivesLateIsWaitedFor(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.diskTime = 30 * time.Second // a look may take long on a busy machine
		l.restart()
		late := make(chan error, 1)
		source := stageRequest(l.sourceOf("LATE"))
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "cim.Exec *UpdateHostStorageCache", Nth: 2, Latency: 1, Hook: func() {
			_, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{
				Image: l.TempDir() + "/late", SizeBytes: 64 * mib, IDs: l.idOf(source.Source),
			})
			late <- err
		}}))
		l.ok(l.tasks.Stage(l.ctx, source))
		l.ok(<-late)
		l.linkKind(stagingPath, host.LinkMountPoint)
	})
}
