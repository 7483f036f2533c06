package node_test

import (
	"errors"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

// What a disk was formatted with before is kept, whatever the next stage asks for.
func TestC069_EveryFileSystemIsKept(t *testing.T) {
	for _, fileSystem := range []string{"NTFS", "ReFS", "exFAT", "FAT32"} {
		t.Run(fileSystem, func(t *testing.T) {
			inEveryWorld(t, func(l *lab) {
				number, source := l.attach(func(s *sim.DiskSpec) { s.SizeBytes = 4 << 30 })
				l.ok(l.agent.PartitionDisk(l.ctx, number))
				volume := l.disk(number).Volumes[0]
				l.ok(l.agent.FormatVolumeWith(l.ctx, volume, host.FormatOptions{FileSystem: fileSystem, Label: "THEIRS"}))
				l.ok(l.agent.SetDiskState(l.ctx, number, false))
				for i, asked := range []string{"", fileSystem, "NTFS"} {
					request := stageRequest(source)
					request.Format.FileSystem, request.Grow = asked, i > 0
					calls := l.calls(func() { l.ok(l.tasks.Stage(l.ctx, request)) })
					l.noneOf(calls, "cim.Exec MSFT_Volume.Format", "cim.Exec MSFT_Disk.Initialize", "cim.Exec MSFT_Disk.CreatePartition")
					if i == 0 {
						l.write(stagingPath+`\file`, "content")
					}
					l.holds(stagingPath+`\file`, "content")
					found, err := l.agent.GetVolume(l.ctx, volume)
					if err != nil || found.FileSystem != fileSystem || found.Label != "THEIRS" {
						l.Errorf("asked for %q, the volume is %+v, %v", asked, found, err)
					}
					l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
				}
				l.clean()
			})
		})
	}
}

// After a restart of the node a disk may have another number, and another disk the
// one it had. It is found by its id, and the other is not touched.
func TestADiskIsFoundByItsIDWhenItsNumberChanges(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		lower, _ := l.attach()
		number, source := l.staged()
		l.write(stagingPath+`\file`, "content")
		l.ok(errors.Join(l.node.DetachDisk(l.ctx, lower), l.node.Reboot(l.ctx)))
		l.restart()
		next, _ := l.attach()
		if next != number || l.disk(lower).Style != "GPT" {
			l.Fatalf("disk %d has not become disk %d: the test shows nothing", number, lower)
		}
		for range 2 {
			l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
			l.holds(stagingPath+`\file`, "content")
		}
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		if ours, other := l.disk(lower), l.disk(next); !ours.Offline || other.Style != "RAW" || !other.Offline {
			l.Errorf("the disks are %+v and %+v", ours, other)
		}
		l.clean()
	})
}
