package node_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

// protect makes a formatted disk that is offline and read-only, as a disk looks
// that has come from another node.
func (l *lab) protect() (number uint32, source node.Source) {
	l.Helper()
	number, source = l.staged()
	l.write(stagingPath+`\file`, "before")
	l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
	l.ok(l.agent.SetDiskState(l.ctx, number, true))
	l.ok(l.agent.SetDiskReadOnly(l.ctx, number, true))
	l.ok(l.agent.SetDiskState(l.ctx, number, false))
	return number, source
}

func TestC001_ReadOnlyFlagIsCleared(t *testing.T) {
	l := newLab(t, nil)
	number, source := l.protect()
	l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
	if d := l.disk(number); d.Offline || d.ReadOnly {
		t.Errorf("the staged disk is %+v", d)
	}
	l.holds(stagingPath+`\file`, "before")
	l.write(stagingPath+`\file`, "x")
}

func TestC001_FlagThatCannotBeSeenIsFoundByWriting(t *testing.T) {
	l := newLab(t, official)
	number, source := l.protect()
	for range 2 {
		l.want(host.KindPrecondition, l.tasks.Stage(l.ctx, stageRequest(source)))
		l.linkKind(stagingPath, host.NotALink)
	}
	l.ok(l.agent.SetDiskReadOnly(l.ctx, number, false))
	l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
	names, err := l.node.ListDir(l.ctx, stagingPath)
	l.ok(err)
	if !slices.Equal(names, []string{"file"}) {
		t.Errorf("the volume holds %q", names)
	}
}

func TestC001_ClearingRefusedMountsNothing(t *testing.T) {
	l := newLab(t, nil)
	_, source := l.protect()
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "cim.Exec MSFT_Disk.SetAttributes", ReturnValue: 40001, Count: -1}))
	if err := l.tasks.Stage(l.ctx, stageRequest(source)); err == nil {
		t.Error("staged although the read-only flag stays")
	}
	l.linkKind(stagingPath, host.NotALink)
}

func TestC001_MediumThatRefusesWritesMountsNothing(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.staged()
		image := l.disk(number).Spec.Image
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		l.ok(l.node.DetachDisk(l.ctx, number))
		_, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: image, WriteProtected: true, IDs: l.idOf(source)})
		l.ok(err)
		l.want(host.KindPrecondition, l.tasks.Stage(l.ctx, stageRequest(source)))
		l.linkKind(stagingPath, host.NotALink)
	})
}

// idOf is the identifier a source asks for.
func (l *lab) idOf(source node.Source) []sim.DeviceID {
	return []sim.DeviceID{{CodeSet: 2, Type: 1, ID: []byte(source.Disk.Page83)}}
}

func TestC001_ReaderOnlyLeavesTheFlag(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.protect()
		request := stageRequest(source)
		request.Access.ReadOnly = true
		for range 2 {
			l.ok(l.tasks.Stage(l.ctx, request))
		}
		if d := l.disk(number); d.Offline || !d.ReadOnly {
			l.Errorf("the staged disk is %+v", d)
		}
		l.holds(stagingPath+`\file`, "before")
		l.ok(l.tasks.Publish(l.ctx, node.PublishRequest{
			VolumeID: volumeID, StagingPath: stagingPath, TargetPath: targetPath, ReadOnly: true, Access: request.Access,
		}))
		l.holds(targetPath+`\file`, "before")
		l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
	})
}

func TestReaderOnlyOfABlankDiskIsRefused(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.attach()
		request := stageRequest(source)
		request.Access.ReadOnly = true
		l.want(host.KindPrecondition, l.tasks.Stage(l.ctx, request))
		if d := l.disk(number); d.Style != "RAW" {
			l.Errorf("the disk was touched: %+v", d)
		}
		l.exists(stagingPath, false)
	})
}

// at is the location Windows prints for a place on an adapter.
func at(adapter, lun int) func(*sim.DiskSpec) {
	text := fmt.Sprintf("Integrated : Adapter %d : Port 0 : Target 0 : LUN %d", adapter, lun)
	return func(s *sim.DiskSpec) { s.Location = &text }
}

func atLUN(adapter, lun string) node.Source {
	return node.Source{Disk: &node.DiskSource{Location: host.DiskLocation{Adapter: adapter, LUNID: lun}}}
}

// A number is the same however it is written.
func TestC007_CoordinatesAreNumbers(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, _ := l.attach(at(0, 7))
		l.attach(at(0, 70))
		l.ok(l.tasks.Stage(l.ctx, stageRequest(atLUN("00", "007"))))
		if d := l.disk(number); d.Offline || len(d.Volumes) != 1 {
			l.Errorf("the disk is %+v", d)
		}
	})
}

func TestC007_EveryFieldMustFit(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			inEveryWorld(t, func(l *lab) {
				var data uint32
				for _, adapter := range order {
					number, _ := l.attach(at(adapter, 1))
					if adapter == 1 {
						data = number
					}
				}
				err := l.tasks.Stage(l.ctx, stageRequest(atLUN("", "1")))
				l.want(host.KindPrecondition, err)
				for number := data; number < 3; number++ {
					if name := fmt.Sprintf("disk %d ", number); err == nil || !strings.Contains(err.Error(), name) {
						l.Errorf("%v does not name %s", err, name)
					}
				}
				l.ok(l.tasks.Stage(l.ctx, stageRequest(atLUN("1", "1"))))
				if d := l.disk(data); len(d.Volumes) != 1 {
					l.Errorf("disk %d was not taken: %+v", data, d)
				}
			})
		})
	}
}

func TestC007_ACandidateThatFailsOneFieldIsNotTaken(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.attach(at(0, 1))
		source.Disk.Location.LUNID = "2"
		l.want(host.KindNotFound, l.tasks.Stage(l.ctx, stageRequest(source)))
		if d := l.disk(number); d.Style != "RAW" || !d.Offline {
			l.Errorf("the disk was touched: %+v", d)
		}
	})
}

func TestDiskBySerialNumber(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.attach()
		number, source := l.attach(func(s *sim.DiskSpec) { s.Serial = "  ab-12  " })
		source.Disk = &node.DiskSource{SerialNumber: " AB-12"}
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		if d := l.disk(number); len(d.Volumes) != 1 {
			l.Errorf("another disk was taken: %+v", d)
		}
	})
}

func TestTheDiskOfTheSystemIsRefused(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		disks, err := l.agent.ListDisks(l.ctx)
		l.ok(err)
		for _, d := range disks {
			if d.System {
				source := node.Source{Disk: &node.DiskSource{Page83: d.IDs.Page83, SerialNumber: d.IDs.SerialNumber, Location: d.Location}}
				if err := l.tasks.Stage(l.ctx, stageRequest(source)); err == nil {
					l.Error("the system disk was staged")
				}
				l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
				return
			}
		}
		l.Error("the simulated node has no system disk")
	})
}

func TestC009_LastUnstageTakesTheDiskOffline(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.published()
		l.write(targetPath+`\file`, "content")
		l.ok(l.tasks.Unpublish(l.ctx, unpublishRequest()))
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		if d := l.disk(number); !d.Offline {
			l.Errorf("the disk is %+v", d)
		}
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		if d := l.disk(number); d.Offline || d.ReadOnly {
			l.Errorf("the disk is %+v", d)
		}
		l.holds(stagingPath+`\file`, "content")
	})
}

func TestC009_DiskInUseStaysOnline(t *testing.T) {
	l := newLab(t, nil)
	number, source := l.staged()
	other := root + `\plugins\other`
	l.ok(l.agent.MountVolume(l.ctx, l.disk(number).Volumes[0], other))
	for range 2 {
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		if d := l.disk(number); d.Offline {
			t.Errorf("the disk is offline while it is mounted at %s", other)
		}
	}
	l.ok(l.agent.UnmountVolume(l.ctx, l.disk(number).Volumes[0], other))
	l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
	if d := l.disk(number); !d.Offline {
		t.Errorf("the disk is %+v", d)
	}
}

// Windows gives a volume that arrives a drive letter by itself. With it the disk stays
// as little in use as without: a detach would never end.
func TestC009_ADriveLetterOfWindowsKeepsNoDiskOnline(t *testing.T) {
	l := newLab(t, nil, func(c *sim.Config) { c.AutomountLetters = true })
	number, source := l.staged()
	volume := l.disk(number).Volumes[0]
	if info, err := l.agent.GetVolume(l.ctx, volume); err != nil || len(info.MountPaths) != 2 {
		t.Fatalf("the volume is %+v, %v; want one with a drive letter", info, err)
	}
	other := root + `\plugins\other`
	l.ok(l.agent.MountVolume(l.ctx, volume, other))
	l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
	if d := l.disk(number); d.Offline {
		t.Fatalf("the disk is offline while it is mounted at %s", other)
	}
	l.ok(l.agent.UnmountVolume(l.ctx, volume, other))
	l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source))) // as after a cut between the two steps
	if d := l.disk(number); !d.Offline {
		t.Error("the drive letter keeps the disk online")
	}
	for range 2 {
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		if d := l.disk(number); !d.Offline {
			t.Error("the drive letter keeps the disk online")
		}
	}
}

func TestC009_CutOffUnstageIsFinished(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.staged()
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "cim.Exec MSFT_Disk.Offline", ReturnValue: 4}))
		if err := l.tasks.Unstage(l.ctx, unstageRequest(source)); err == nil {
			l.Fatal("the fault did not show")
		}
		if d := l.disk(number); d.Offline {
			l.Fatal("the disk went offline")
		}
		l.restart()
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		if d := l.disk(number); !d.Offline {
			l.Errorf("the disk is %+v", d)
		}
		l.clean()
	})
}

func TestC010_CloneGetsANewSignature(t *testing.T) {
	// A disk on a bus that is not shared is brought online by Windows at once,
	// which is where the collision shows; the other is offline by policy anyway.
	for bus, reason := range map[string]uint16{"SATA": 4, "SAS": 1} {
		t.Run(bus, func(t *testing.T) {
			inEveryWorld(t, func(l *lab) { l.stageClone(bus, reason) })
		})
	}
}

func (l *lab) stageClone(bus string, reason uint16) {
	l.Helper()
	first, source := l.staged()
	l.write(stagingPath+`\file`, "content")
	l.ok(l.agent.WriteVolumeCache(l.ctx, l.disk(first).Volumes[0]))
	image := filepath.Join(l.TempDir(), "clone")
	l.ok(sim.CopyMedium(l.ctx, l.disk(first).Spec.Image, image))
	before := l.disk(first)
	second, clone := l.attach(func(s *sim.DiskSpec) { s.Image, s.SizeBytes, s.Bus = image, 0, bus })
	if d := l.disk(second); !d.Offline || d.OfflineReason != reason {
		l.Fatalf("the clone is %+v, want offline for reason %d", d, reason)
	}
	other := root + `\plugins\clone`
	err := l.tasks.Stage(l.ctx, node.StageRequest{VolumeID: "volume-2", StagingPath: other, Source: clone})
	if l.isOfficial && reason == 1 {
		// Offline by policy is read-only too, which these primitives cannot clear.
		l.want(host.KindPrecondition, err)
		l.ok(l.agent.SetDiskReadOnly(l.ctx, second, false))
		err = l.tasks.Stage(l.ctx, node.StageRequest{VolumeID: "volume-2", StagingPath: other, Source: clone})
	}
	l.ok(err)
	if d := l.disk(second); d.Offline || d.ReadOnly {
		l.Errorf("the clone is %+v", d)
	}
	l.holds(other+`\file`, "content")
	l.write(other+`\file`, "of the clone")
	l.holds(stagingPath+`\file`, "content")
	if after := l.disk(first); after.Offline || !slices.Equal(after.Volumes, before.Volumes) {
		l.Errorf("the first disk was %+v and is %+v", before, after)
	}
	l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
	l.holds(other+`\file`, "of the clone")
}

func TestC010_RefusedSignatureNamesBothDisks(t *testing.T) {
	l := newLab(t, nil)
	first, _ := l.staged()
	l.ok(l.agent.WriteVolumeCache(l.ctx, l.disk(first).Volumes[0]))
	image := filepath.Join(l.TempDir(), "clone")
	l.ok(sim.CopyMedium(l.ctx, l.disk(first).Spec.Image, image))
	second, clone := l.attach(func(s *sim.DiskSpec) { s.Image, s.SizeBytes, s.Bus = image, 0, "SATA" })
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "cim.Exec MSFT_Disk.Online", ReturnValue: 4, Count: -1}))
	err := l.tasks.Stage(l.ctx, node.StageRequest{VolumeID: "volume-2", StagingPath: root + `\plugins\clone`, Source: clone})
	l.want(host.KindPrecondition, err)
	for _, number := range []uint32{first, second} {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(number)) {
			t.Errorf("%v does not name disk %d", err, number)
		}
	}
	l.exists(root+`\plugins\clone`, false)
}
