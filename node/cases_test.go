package node_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

// A disk with a GPT that holds the reserved partition alone is empty: a stage makes
// one partition for data, however often it is repeated.
func TestC003_TheReservedPartitionIsNoData(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, source := l.attach()
		l.ok(l.agent.PartitionDisk(l.ctx, number))
		for range 2 {
			l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
			if d := l.disk(number); len(d.Volumes) != 1 {
				l.Errorf("the disk has the volumes %q, want one", d.Volumes)
			}
			l.write(stagingPath+`\file`, "content")
			l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		}
		l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
		l.holds(stagingPath+`\file`, "content")
	})
}

// A disk with an MBR and a partition of somebody is not partitioned and not formatted.
func TestC003_C014_MBRWithDataIsLeftAlone(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		image := filepath.Join(l.TempDir(), "mbr")
		sector := make([]byte, 8*mib)
		copy(sector[440:], "\x01\x02\x03\x04")
		copy(sector[446:], []byte{0, 0, 2, 0, 0x07, 0xfe, 0xff, 0xff, 0, 8, 0, 0, 0, 0x20, 0, 0}) // IFS
		sector[510], sector[511] = 0x55, 0xAA
		copy(sector[mib+4096:], "somebody's data")
		l.ok(os.WriteFile(image, sector, 0o600))
		number, source := l.attach(func(s *sim.DiskSpec) { s.Image, s.SizeBytes = image, 0 })
		if err := l.tasks.Stage(l.ctx, stageRequest(source)); err == nil {
			l.Error("a disk with foreign data was staged")
		}
		l.exists(stagingPath, false)
		l.ok(l.node.DetachDisk(l.ctx, number))
		if after, err := os.ReadFile(image); err != nil || !bytes.Equal(after, sector) {
			l.Errorf("the disk's bytes have changed (%v)", err)
		}
	})
}

// Looking for a disk among disks that do not answer leaves no handle open.
func TestC006_ABadDiskLeavesNoHandle(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		l.attach()
		_, source := l.attach()
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.DeviceIoControl*", Object: "*PhysicalDrive1", Count: -1, Win32: 1117}))
		for range 50 {
			l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
			l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
		}
		l.want(host.KindNotFound, l.tasks.Stage(l.ctx, stageRequest(l.sourceOf("NONE"))))
		if n, err := l.node.HandleCount(l.ctx); err != nil || n != 0 {
			l.Errorf("%d handles are open, %v", n, err)
		}
	})
}

// Where Windows cannot say how large a partition may become, that is not taken for
// nothing: it grows by what the disk has, or the failure names the service.
func TestC013_UnknownMaximum(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, _ := l.published()
		l.write(targetPath+`\file`, "content")
		before := l.totalBytes(targetPath)
		l.ok(l.node.GrowDisk(l.ctx, number, 512*mib))
		l.ok(l.node.SetService(l.ctx, sim.Service{Name: "defragsvc", StartType: 4, State: 1}))
		_, err := l.tasks.Expand(l.ctx, expandRequest(512*mib))
		total := l.totalBytes(targetPath)
		switch {
		case err == nil && total < 480*mib:
			l.Errorf("success, and the volume has %d bytes", total)
		case err != nil && (!strings.Contains(err.Error(), "defragsvc") || total != before):
			l.Errorf("got %v, and %d bytes that were %d", err, total, before)
		}
		l.holds(targetPath+`\file`, "content")
	})
}

// The volume at a path is the one behind all links and mount points on the way, never
// the drive that holds them.
func TestC017_C019_TheVolumeBehindLinks(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		number, _ := l.published()
		want := l.totalBytes(stagingPath)
		further := root + `\further`
		l.ok(l.node.MakeLink(l.ctx, further, targetPath))
		if total := l.totalBytes(further); total != want {
			l.Errorf("behind two links and a mount point there are %d bytes, want %d", total, want)
		}
		l.linkKind(stagingPath, host.LinkMountPoint)
		l.ok(l.node.GrowDisk(l.ctx, number, 512*mib))
		l.ok(second(l.tasks.Expand(l.ctx, node.ExpandRequest{VolumeID: volumeID, Path: further})))
		if total := l.totalBytes(stagingPath); total < 480*mib {
			l.Errorf("after the growth there are %d bytes", total)
		}
	})
}

// Paths longer than Windows' own old limit are paths like others; beyond the new one,
// and with a character that no path has, the answer names the field.
func TestC020_C023_LongAndBrokenPaths(t *testing.T) {
	inEveryWorld(t, func(l *lab) {
		_, source := l.attach()
		deep := root + strings.Repeat(`\`+strings.Repeat("d", 60), 5)
		staging, target := deep+`\globalmount`, deep+`\mount`
		l.ok(l.tasks.Stage(l.ctx, node.StageRequest{VolumeID: volumeID, StagingPath: staging, Source: source}))
		l.ok(l.tasks.Publish(l.ctx, node.PublishRequest{VolumeID: volumeID, StagingPath: staging, TargetPath: target}))
		l.write(`\\?\`+target+`\file`, "content")
		l.holds(`\\?\`+staging+`\file`, "content")
		l.ok(l.tasks.Unpublish(l.ctx, node.UnpublishRequest{VolumeID: volumeID, TargetPath: target}))
		l.ok(l.tasks.Unstage(l.ctx, node.UnstageRequest{VolumeID: volumeID, StagingPath: staging, Source: source}))
		for what, path := range map[string]string{
			"too long": root + strings.Repeat(`\d`, 50_000), "NUL": root + "\\a\x00b", "control": root + "\\a\x01b",
		} {
			calls := l.calls(func() {
				err := l.tasks.Publish(l.ctx, node.PublishRequest{VolumeID: volumeID, StagingPath: stagingPath, TargetPath: path})
				var failed *host.Error
				if !errors.As(err, &failed) || failed.Kind != host.KindInvalid || len(err.Error()) > 4096 {
					l.Errorf("%s: %.300v, want it refused as invalid", what, err)
				}
			})
			if len(calls) > 0 {
				l.Errorf("%s: the node was asked %q", what, calls)
			}
		}
		l.clean()
	})
}
