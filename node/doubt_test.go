package node_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/image"
)

// doubtful is a host on which one method, by name, fails while fails is set.
type doubtful struct {
	host.Host
	method string
	kind   host.Kind
	fails  *atomic.Bool
}

func (d doubtful) fail(method string) error {
	if method != d.method || !d.fails.Load() {
		return nil
	}
	return &host.Error{Op: method, Kind: d.kind, Cause: errors.New("no answer")}
}

func (d doubtful) IsVolumeFormatted(ctx context.Context, id string) (bool, error) {
	if err := d.fail("IsVolumeFormatted"); err != nil {
		return false, err
	}
	return d.Host.IsVolumeFormatted(ctx, id)
}

func (d doubtful) GetVolume(ctx context.Context, id string) (host.VolumeInfo, error) {
	if err := d.fail("GetVolume"); err != nil {
		return host.VolumeInfo{}, err
	}
	return d.Host.GetVolume(ctx, id)
}

func (d doubtful) ListVolumesOnDisk(ctx context.Context, disk, partition uint32) ([]string, error) {
	if err := d.fail("ListVolumesOnDisk"); err != nil {
		return nil, err
	}
	return d.Host.ListVolumesOnDisk(ctx, disk, partition)
}

// inDoubt runs a test over a host that fails one method with each kind of error.
func inDoubt(t *testing.T, method string, test func(l *lab, fails *atomic.Bool)) {
	t.Helper()
	for _, kind := range []host.Kind{host.KindInternal, host.KindUnavailable, host.KindTimeout, host.KindDenied} {
		t.Run(string(kind), func(t *testing.T) {
			d := doubtful{method: method, kind: kind, fails: &atomic.Bool{}}
			test(newLab(t, func(h host.Host) host.Host { d.Host = h; return d }), d.fails)
		})
	}
}

// noneOf fails the test when one of the calls is of a name.
func (l *lab) noneOf(calls []string, names ...string) {
	l.Helper()
	for _, call := range calls {
		if slices.Contains(names, call) {
			l.Errorf("%s was called in doubt", call)
		}
	}
}

// A question that fails is no answer: the disk is neither partitioned nor formatted.
func TestC014_NothingIsFormattedInDoubt(t *testing.T) {
	for _, method := range []string{"IsVolumeFormatted", "ListVolumesOnDisk"} {
		inDoubt(t, method, func(l *lab, fails *atomic.Bool) {
			_, source := l.staged()
			l.write(stagingPath+`\file`, "content")
			l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
			fails.Store(true)
			calls := l.calls(func() {
				if err := l.tasks.Stage(l.ctx, stageRequest(source)); err == nil {
					l.Error("staged in doubt")
				}
			})
			l.noneOf(calls, "cim.Exec MSFT_Volume.Format", "cim.Exec MSFT_Disk.Initialize", "cim.Exec MSFT_Disk.CreatePartition")
			fails.Store(false)
			l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
			l.holds(stagingPath+`\file`, "content")
		})
	}
}

// A volume about which nothing can be learned is not taken for one that has gone, and
// its disk not for one that nobody uses.
func TestC009_NothingIsLetGoOfInDoubt(t *testing.T) {
	inDoubt(t, "GetVolume", func(l *lab, fails *atomic.Bool) {
		number, source := l.staged()
		other := root + `\plugins\other`
		l.ok(l.agent.MountVolume(l.ctx, l.disk(number).Volumes[0], other))
		refused := func() {
			l.Helper()
			fails.Store(true)
			if err := l.tasks.Unstage(l.ctx, unstageRequest(source)); err == nil {
				l.Error("unstaged in doubt")
			}
			fails.Store(false)
			l.write(other+`\file`, "content")
		}
		refused()
		l.linkKind(stagingPath, host.LinkMountPoint)
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		refused()
	})
}

// attachTwo attaches a disk with two volumes, both formatted.
func (l *lab) attachTwo() (number uint32, source node.Source) {
	l.Helper()
	path := filepath.Join(l.TempDir(), "two")
	img, err := image.Create(path, 128*mib)
	l.ok(err)
	l.ok(img.InitGPT("11111111-2222-3333-4444-555555555555"))
	for range 2 {
		e, err := img.AddPartition(image.PartitionSpec{SizeBytes: 50 * mib})
		l.ok(err)
		l.ok(image.Format(img, e.OffsetBytes, e.SizeBytes, image.FormatSpec{Name: image.NTFS, Serial: uint64(e.OffsetBytes)}))
	}
	l.ok(img.Close())
	return l.attach(func(s *sim.DiskSpec) { s.Image, s.SizeBytes = path, 0 })
}

// Which of two volumes is meant is not guessed, and the second is in use in its own
// right.
func TestADiskWithTwoVolumes(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.attachTwo()
		err := l.tasks.Stage(l.ctx, stageRequest(source))
		l.want(host.KindPrecondition, err)
		l.exists(stagingPath, false)
		l.ok(l.agent.SetDiskState(l.ctx, number, true))
		volumes := l.disk(number).Volumes
		if len(volumes) != 2 || err == nil || !strings.Contains(err.Error(), volumes[0]) || !strings.Contains(err.Error(), volumes[1]) {
			l.Errorf("the error does not name %q: %v", volumes, err)
		}
		other := root + `\plugins\other`
		l.ok(l.agent.SetDiskReadOnly(l.ctx, number, false))
		l.ok(l.agent.MountVolume(l.ctx, volumes[0], stagingPath))
		l.ok(l.agent.MountVolume(l.ctx, volumes[1], other))
		l.write(other+`\file`, "content")
		for range 2 {
			l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
			l.holds(other+`\file`, "content")
		}
	})
}

// Who only reads gets neither a file system nor a larger one.
func TestReaderOnlyMakesNothing(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.attach()
		l.ok(l.agent.PartitionDisk(l.ctx, number))
		reader := stageRequest(source)
		reader.Access.ReadOnly, reader.Grow = true, true
		l.want(host.KindPrecondition, l.tasks.Stage(l.ctx, reader))
		if formatted, err := l.agent.IsVolumeFormatted(l.ctx, l.disk(number).Volumes[0]); err != nil || formatted {
			l.Errorf("formatted: %v, %v", formatted, err)
		}
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		l.ok(l.node.GrowDisk(l.ctx, number, 512*mib))
		l.ok(l.agent.Rescan(l.ctx))
		l.ok(l.tasks.Stage(l.ctx, reader))
		if total := l.totalBytes(stagingPath); total > 64*mib {
			l.Errorf("the file system has grown to %d bytes", total)
		}
	})
}

// What a stage makes is written to the medium before anybody is told that it is there.
func TestC021_WhatAStageMakesIsFlushed(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.attach()
		grow := stageRequest(source)
		grow.Grow = true
		flushedAfter := func(call string) {
			l.Helper()
			calls := l.calls(func() { l.ok(l.tasks.Stage(l.ctx, grow)) })
			made := slices.Index(calls, call)
			if made < 0 || !slices.Contains(calls[made:], "win32.FlushFileBuffers") {
				l.Errorf("after %s nothing is flushed: %q", call, changes(calls))
			}
		}
		flushedAfter("cim.Exec MSFT_Volume.Format")
		l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		l.ok(l.node.GrowDisk(l.ctx, number, 512*mib))
		l.ok(l.agent.Rescan(l.ctx))
		flushedAfter("cim.Exec MSFT_Partition.Resize")
	})
}

func TestC069_LabelAndClusterSize(t *testing.T) {
	for _, options := range []host.FormatOptions{{Label: "data"}, {ClusterBytes: 65536}, {FileSystem: "NTFS", Label: "data", ClusterBytes: 8192}} {
		l := newLab(t, nil)
		number, source := l.attach()
		request := stageRequest(source)
		request.Format = options
		l.ok(l.tasks.Stage(l.ctx, request))
		v, err := l.agent.GetVolume(l.ctx, l.disk(number).Volumes[0])
		if err != nil || v.Label != options.Label || options.ClusterBytes != 0 && v.ClusterBytes != options.ClusterBytes {
			t.Errorf("asked for %+v, the volume is %+v, %v", options, v, err)
		}
	}
}
