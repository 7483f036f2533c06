package node_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

// inUse is a volume that is staged, with a file in it.
type inUse struct {
	id     string
	source node.Source
}

func (v inUse) stage() node.StageRequest {
	return node.StageRequest{VolumeID: v.id, StagingPath: netStaging(v.id), Source: v.source}
}

// unstage is the end of the stage with a hint, which may be of another volume.
func (v inUse) unstage(hint node.Source) node.UnstageRequest {
	if hint.SMB != nil {
		hint = node.Source{SMB: &node.SMBSource{Path: hint.SMB.Path}}
	}
	return node.UnstageRequest{VolumeID: v.id, StagingPath: netStaging(v.id), Source: hint}
}

// use stages a volume and writes a file to it.
func (l *netLab) use(id string, source node.Source) inUse {
	l.Helper()
	v := inUse{id, source}
	l.ok(l.tasks.Stage(l.ctx, v.stage()))
	l.ok(l.node.WriteFile(l.ctx, netStaging(id)+`\of-`+id, []byte(id)))
	return v
}

// areWhole fails the test at once unless the volumes can be read and written.
func (l *netLab) areWhole(after string, volumes ...inUse) {
	l.Helper()
	for _, v := range volumes {
		path := netStaging(v.id) + `\of-` + v.id
		l.holds(path, v.id)
		if err := l.node.WriteFile(l.ctx, path, []byte(v.id)); err != nil {
			l.Errorf("%s cannot be written any more: %v", v.id, err)
		}
	}
	if l.Failed() {
		l.Fatal("after ", after)
	}
}

// useOneOfEach stages a disk, a unit and a share.
func (l *netLab) useOneOfEach(name, share string) []inUse {
	l.Helper()
	_, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: filepath.Join(l.TempDir(), name), SizeBytes: 64 << 20, Bus: "SAS", Serial: name})
	l.ok(err)
	unit := l.target("iqn.2026-01.example:"+name, 1)
	return []inUse{
		l.use("disk-"+name, node.Source{Disk: &node.DiskSource{SerialNumber: name}}),
		l.use("unit-"+name, node.Source{ISCSI: &unit}),
		l.use("share-"+name, node.Source{SMB: &node.SMBSource{Path: share, Username: "u", Password: "pw"}}),
	}
}

// A hint that names another volume lets go of nothing of that one: not while
// something is staged at the path, not when nothing is, and not when the first
// attempt was cut off.
func TestAWrongHintTouchesNoOtherVolume(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		ones, others := l.useOneOfEach("one", `\\srv\share\a`), l.useOneOfEach("two", `\\srv\second`)
		for _, v := range ones {
			for _, other := range others {
				what := v.id + " was unstaged with the hint of " + other.id
				l.ok(l.tasks.Stage(l.ctx, v.stage()))
				for range 2 {
					l.ok(l.tasks.Unstage(l.ctx, v.unstage(other.source)))
					l.areWhole(what, others...)
				}
				l.ok(l.tasks.Stage(l.ctx, v.stage()))
				l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "cim.Exec MSFT_Disk.Offline", ReturnValue: 4}))
				_ = l.tasks.Unstage(l.ctx, v.unstage(other.source)) // a share has no disk
				l.ok(l.tasks.Unstage(l.ctx, v.unstage(other.source)))
				l.ok(l.node.ClearFaults(l.ctx))
				l.areWhole(what+" at the second attempt", others...)
				l.ok(l.tasks.Stage(l.ctx, v.stage()))
				l.holds(netStaging(v.id)+`\of-`+v.id, v.id)
				l.ok(l.tasks.Unstage(l.ctx, v.unstage(v.source)))
			}
		}
	})
}

// Two volumes may name one thing, and one volume may be staged at two paths, as while
// a kubelet goes over to another form of staging paths. The first that ends takes
// nothing from the other.
func TestC009_TwoStagesOfOneSource(t *testing.T) {
	t.Parallel()
	overBoth(t, func(l *netLab) {
		for _, v := range l.useOneOfEach("one", `\\srv\share\a`) {
			second := l.use("second-"+v.id, v.source)
			for range 2 {
				l.ok(l.tasks.Unstage(l.ctx, v.unstage(v.source)))
				l.areWhole("the other stage of "+v.id+" has ended", second)
			}
			l.ok(l.tasks.Unstage(l.ctx, second.unstage(v.source)))
		}
		l.sessions(0, 0, 0)
		l.mapped(0)
		l.noHolds()
		l.allOffline()
	})
}

// allOffline fails the test when a disk other than the system's is online.
func (l *netLab) allOffline() {
	l.Helper()
	disks, err := l.node.Disks(l.ctx)
	l.ok(err)
	for _, d := range disks {
		if !d.System && !d.Offline {
			l.Errorf("disk %d stays online", d.Number)
		}
	}
}

// Unstage is not stopped by a hint that fits several disks; it lets go of none.
func TestAnAmbiguousHintIsNoObstacle(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		numbers := make([]uint32, 2)
		for i := range numbers {
			numbers[i], _ = l.attach(at(i, 1))
		}
		ambiguous := atLUN("", "1")
		l.ok(l.tasks.Stage(l.ctx, stageRequest(atLUN("0", "1"))))
		l.ok(l.tasks.Stage(l.ctx, node.StageRequest{VolumeID: "volume-2", StagingPath: root + `\plugins\two`, Source: atLUN("1", "1")}))
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(ambiguous)))
		if d := l.disk(numbers[0]); !d.Offline {
			l.Errorf("the disk is %+v", d)
		}
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(ambiguous)))
		if d := l.disk(numbers[1]); d.Offline || !strings.Contains(l.log.String(), "is not known") {
			l.Errorf("the disk is %+v, the log\n%s", d, l.log)
		}
	})
}
