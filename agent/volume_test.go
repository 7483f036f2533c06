package agent_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

func TestVolumeLife(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	path := root + `\plugins\stage`
	id := l.volume(64 * mib)
	formatted, err := l.agent.IsVolumeFormatted(l.ctx, id)
	l.ok(err)
	if formatted {
		t.Error("a new volume counts as formatted")
	}
	l.ok(l.agent.FormatVolume(l.ctx, id))
	l.ok(l.agent.MountVolume(l.ctx, strings.TrimSuffix(strings.ToUpper(id), `\`), path))
	l.write(path+`\file`, "kept")
	l.ok(l.agent.FormatVolume(l.ctx, id)) // a repeat changes nothing
	l.ok(l.agent.MountVolume(l.ctx, id, path))
	l.holds(path+`\file`, "kept")
	stats, err := l.agent.GetVolumeStats(l.ctx, id)
	l.ok(err)
	if stats.TotalBytes < 32*mib || stats.UsedBytes < 0 || stats.UsedBytes > stats.TotalBytes {
		t.Errorf("stats are %+v", stats)
	}
	for _, ask := range []func() (string, error){
		func() (string, error) { return l.agent.GetVolumeIDFromTargetPath(l.ctx, path) },
		func() (string, error) { return l.agent.GetClosestVolumeIDFromTargetPath(l.ctx, path+`\file`) },
	} {
		if got, err := ask(); err != nil || !strings.EqualFold(got, id) {
			t.Errorf("the path is of volume %q, %v; want %s", got, err, id)
		}
	}
	info, err := l.agent.GetVolume(l.ctx, id)
	l.ok(err)
	if info.FileSystem != "NTFS" || len(info.MountPaths) != 1 || info.Health != host.HealthOK {
		t.Errorf("GetVolume = %+v", info)
	}
	l.ok(l.agent.WriteVolumeCache(l.ctx, id))
	l.ok(l.agent.UnmountVolume(l.ctx, id, path))
	l.exists(path, true)
	l.exists(path+`\file`, false)
	l.ok(l.agent.MountVolume(l.ctx, id, path))
	l.holds(path+`\file`, "kept")
	mounts, err := l.agent.ListMounts(l.ctx)
	l.ok(err)
	if !strings.Contains(strings.ToLower(mounts[len(mounts)-1].Path), "stage") {
		t.Errorf("mounts are %v", mounts)
	}
	l.noHandles()
}

func TestMountRefusals(t *testing.T) {
	t.Parallel()
	l := newLab(t, withRoots(root, `C:\empty`))
	l.ok(l.node.MakeDir(l.ctx, `C:\empty`))
	id, other := l.formatted(64*mib), l.formatted(64*mib)
	l.write(root+`\full\file`, "x")
	l.want(host.KindPrecondition, l.agent.MountVolume(l.ctx, id, root+`\full`))
	l.want(host.KindPrecondition, l.agent.MountVolume(l.ctx, id, root+`\full\file`))
	l.want(host.KindPrecondition, l.agent.MountVolume(l.ctx, id, root))
	l.want(host.KindPrecondition, l.agent.MountVolume(l.ctx, id, `C:\empty`))
	l.want(host.KindInvalid, l.agent.MountVolume(l.ctx, id, `C:\elsewhere`))
	l.want(host.KindInvalid, l.agent.MountVolume(l.ctx, `C:\`, root+`\m`))
	l.want(host.KindNotFound, l.agent.MountVolume(l.ctx, `\\?\Volume{00000000-1111-2222-3333-444444444444}\`, root+`\m`))
	l.ok(l.agent.MountVolume(l.ctx, id, root+`\m`))
	l.want(host.KindPrecondition, l.agent.MountVolume(l.ctx, other, root+`\m`))
	l.want(host.KindPrecondition, l.agent.UnmountVolume(l.ctx, other, root+`\m`))
	l.ok(l.agent.CreateSymlink(l.ctx, root+`\m`, root+`\link`))
	l.want(host.KindPrecondition, l.agent.MountVolume(l.ctx, id, root+`\link`))
	l.want(host.KindPrecondition, l.agent.UnmountVolume(l.ctx, id, root+`\link`))
	l.ok(l.agent.UnmountVolume(l.ctx, id, root+`\missing`))
	l.ok(l.agent.UnmountVolume(l.ctx, id, root+`\full`))
	l.linkKind(root+`\m`, host.LinkMountPoint)
	l.holds(root+`\full\file`, "x")
	system := l.systemVolume()
	l.want(host.KindPrecondition, l.agent.MountVolume(l.ctx, system, root+`\sys`))
	l.want(host.KindInvalid, l.agent.UnmountVolume(l.ctx, system, `C:\`))
}

func (l *lab) systemVolume() string {
	l.Helper()
	mounts, err := l.agent.ListMounts(l.ctx)
	l.ok(err)
	for _, m := range mounts {
		if m.Path == `C:\` {
			return m.VolumeID
		}
	}
	l.Fatalf("no volume is C: in %v", mounts)
	return ""
}

func TestC017_ClosestVolume(t *testing.T) {
	t.Parallel()
	l := newLab(t, withRoots(`C:\`))
	a := l.systemVolume()
	b, c := l.formatted(64*mib), l.formatted(64*mib)
	l.ok(l.agent.MountVolume(l.ctx, b, `C:\mnt\volume`))
	l.ok(l.agent.MountVolume(l.ctx, c, `C:\mnt\single`))
	l.ok(l.agent.Mkdir(l.ctx, `C:\mnt\volume\a\b`))
	l.ok(l.agent.Mkdir(l.ctx, `C:\mnt\single\q`))
	l.ok(l.agent.Mkdir(l.ctx, `C:\disks`))
	l.ok(l.agent.Mkdir(l.ctx, `C:\foo`))
	l.ok(l.node.MakeLink(l.ctx, `C:\disks\x`, `C:\mnt\volume\a\b`))
	l.ok(l.node.MakeLink(l.ctx, `C:\disks\relative`, `..\mnt\single`))
	l.ok(l.node.MakeLink(l.ctx, `C:\disks\chain`, `C:\disks\x`))
	l.ok(l.node.MakeLink(l.ctx, `C:\disks\up`, `x\..\..\mnt\single\q`))
	for path, want := range map[string]string{
		`C:\disks\x`: b, `C:\mnt\single\q`: c, `C:\foo`: a, `C:\disks\relative`: c, `C:\disks\relative\q`: c,
		`C:\disks\chain`: b, `C:\`: a, `C:\mnt\volume`: b, `C:\disks\up`: c,
	} {
		if got, err := l.agent.GetClosestVolumeIDFromTargetPath(l.ctx, path); err != nil || !strings.EqualFold(got, want) {
			t.Errorf("closest(%s) = %s, %v; want %s", path, got, err, want)
		}
	}
	for path, want := range map[string]string{`C:\mnt\volume`: b, `C:\disks\relative`: c, `C:\`: a} {
		if got, err := l.agent.GetVolumeIDFromTargetPath(l.ctx, path); err != nil || !strings.EqualFold(got, want) {
			t.Errorf("exact(%s) = %s, %v; want %s", path, got, err, want)
		}
	}
	l.want(host.KindPrecondition, second(l.agent.GetVolumeIDFromTargetPath(l.ctx, `C:\foo`)))
	l.want(host.KindPrecondition, second(l.agent.GetVolumeIDFromTargetPath(l.ctx, `C:\disks\x`)))
	l.want(host.KindNotFound, second(l.agent.GetVolumeIDFromTargetPath(l.ctx, `C:\missing`)))
	l.want(host.KindNotFound, second(l.agent.GetClosestVolumeIDFromTargetPath(l.ctx, `C:\missing\x`)))
}

func TestC019_LoopsAndVolumeTargets(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.mounted(root + `\m`)
	l.ok(l.agent.Mkdir(l.ctx, root+`\m\d`))
	l.ok(l.node.MakeLink(l.ctx, root+`\a`, root+`\b`))
	l.ok(l.node.MakeLink(l.ctx, root+`\b`, root+`\a`))
	l.ok(l.node.MakeLink(l.ctx, root+`\byid`, id))
	l.ok(l.node.MakeLink(l.ctx, root+`\byiddeep`, id+`d`))
	for _, path := range []string{root + `\a`, root + `\a\x`} {
		l.want(host.KindPrecondition, second(l.agent.GetVolumeIDFromTargetPath(l.ctx, path)))
	}
	l.want(host.KindPrecondition, l.agent.Mkdir(l.ctx, root+`\a\x`))
	if got, err := l.agent.GetVolumeIDFromTargetPath(l.ctx, root+`\byid`); err != nil || !strings.EqualFold(got, id) {
		t.Errorf("a link to the volume: %s, %v", got, err)
	}
	l.want(host.KindPrecondition, second(l.agent.GetVolumeIDFromTargetPath(l.ctx, root+`\byiddeep`)))
	// The volume is mounted below the root, so what the link leads to is inside.
	l.ok(l.agent.Mkdir(l.ctx, root+`\byid\new`))
	l.exists(root+`\m\new`, true)
	l.ok(l.agent.UnmountVolume(l.ctx, id, root+`\m`))
	l.want(host.KindInvalid, l.agent.Mkdir(l.ctx, root+`\byid\again`))
}

func TestC021_FlushBeforeUnmount(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.mounted(root + `\m`)
	calls := l.calls(func() {
		for range 3 {
			l.ok(l.agent.UnmountVolume(l.ctx, id, root+`\m`))
		}
	})
	flush, remove := -1, -1
	for i, call := range calls {
		if strings.HasPrefix(call, "win32.FlushFileBuffers") {
			flush = i
		}
		if strings.HasPrefix(call, "win32.DeleteVolumeMountPoint") {
			remove = i
		}
	}
	if flush < 0 || remove < flush || count(calls, "win32.FlushFileBuffers") != 1 {
		t.Errorf("three unmounts called %q", calls)
	}
	l.ok(l.agent.MountVolume(l.ctx, id, root+`\m`))
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.FlushFileBuffers", Count: -1, Win32: 1117}))
	if err := l.agent.UnmountVolume(l.ctx, id, root+`\m`); err == nil {
		t.Error("unmounted although the flush failed")
	}
	if err := l.agent.Rmdir(l.ctx, root+`\m`, true); err == nil {
		t.Error("removed although the flush failed")
	}
	l.linkKind(root+`\m`, host.LinkMountPoint)
}

// Invariant 1 for volumes.
func TestInvariant1_ForeignVolumesAreNotFormatted(t *testing.T) {
	t.Parallel()
	for _, foreign := range foreignData {
		t.Run(foreign.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			path := filepath.Join(t.TempDir(), "disk")
			makeMBRAround(t, path, foreign)
			before := readFile(t, path)
			number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: path})
			l.ok(err)
			l.ok(l.agent.SetDiskState(l.ctx, number, true))
			l.ok(l.agent.SetDiskReadOnly(l.ctx, number, false))
			id := l.onlyVolume(number)
			for _, err := range []error{
				l.agent.FormatVolume(l.ctx, id), second(l.agent.IsVolumeFormatted(l.ctx, id)),
				l.agent.FormatVolumeWith(l.ctx, id, host.FormatOptions{FileSystem: "ReFS"}),
			} {
				l.want(host.KindPrecondition, err)
				if err != nil && !strings.Contains(err.Error(), foreign.says) {
					t.Errorf("%v does not say %q", err, foreign.says)
				}
			}
			l.ok(l.node.DetachDisk(l.ctx, number))
			if !bytes.Equal(before, readFile(t, path)) {
				t.Error("the disk's bytes have changed")
			}
		})
	}
}

// makeMBRAround makes a disk with one partition of 4 MiB that holds the data.
func makeMBRAround(t *testing.T, path string, f foreign) {
	t.Helper()
	makeMBR(t, path, 0x07)
	data := readFile(t, path)
	clear(data[mib:])
	offset := int64(mib) + f.offset
	if f.offset < 0 {
		offset += 4 * mib
	}
	copy(data[offset:], f.bytes)
	writeFile(t, path, data)
}

func TestFormatReadErrorIsNotUnformatted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.volume(64 * mib)
	for _, fault := range []sim.Fault{
		{Call: "win32.ReadAt", Count: -1, Win32: 1117},
		{Call: "win32.ReadAt", Nth: 2, Count: -1, Win32: 23},
		{Call: "cim.Query MSFT_Volume", Count: -1, CIM: &cim.Error{HRESULT: 0x80041001}},
	} {
		l.ok(l.node.AddFault(l.ctx, fault))
		if formatted, err := l.agent.IsVolumeFormatted(l.ctx, id); err == nil {
			t.Errorf("%+v: formatted = %v without an error", fault, formatted)
		}
		if err := l.agent.FormatVolume(l.ctx, id); err == nil {
			t.Errorf("%+v: formatted", fault)
		}
		l.ok(l.node.ClearFaults(l.ctx))
	}
	l.ok(l.agent.FormatVolume(l.ctx, id))
}

func TestFormatVolumeWith(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.volume(128 * mib)
	l.ok(l.agent.FormatVolumeWith(l.ctx, id, host.FormatOptions{FileSystem: "exfat", ClusterBytes: 32768, Label: "DATA"}))
	l.ok(l.agent.FormatVolumeWith(l.ctx, id, host.FormatOptions{FileSystem: "EXFAT"}))
	l.want(host.KindPrecondition, l.agent.FormatVolumeWith(l.ctx, id, host.FormatOptions{}))
	l.ok(l.agent.FormatVolume(l.ctx, id)) // any file system of Windows is left as it is
	l.want(host.KindInvalid, l.agent.FormatVolumeWith(l.ctx, id, host.FormatOptions{FileSystem: "ext4"}))
	info, err := l.agent.GetVolume(l.ctx, id)
	l.ok(err)
	if !strings.EqualFold(info.FileSystem, "exFAT") || info.Label != "DATA" || info.ClusterBytes != 32768 {
		t.Errorf("GetVolume = %+v", info)
	}
}

func TestC011_ResizeThreshold(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	number := l.disk(64 * mib)
	l.ok(l.agent.PartitionDisk(l.ctx, number))
	id := l.onlyVolume(number)
	l.ok(l.agent.FormatVolume(l.ctx, id))
	resizes := func(sizeBytes int64) int {
		return count(l.calls(func() { l.ok(l.agent.ResizeVolume(l.ctx, id, sizeBytes)) }), "cim.Exec MSFT_Partition.Resize")
	}
	size := func() int64 {
		volume, err := l.os.Volume(l.ctx, id)
		l.ok(err)
		return volume.PartitionSizeBytes
	}
	if n := resizes(0); n != 0 {
		t.Errorf("%d resizes without a gain", n)
	}
	l.ok(l.node.GrowDisk(l.ctx, number, 512*mib))
	l.ok(l.agent.Rescan(l.ctx))
	partition := size()
	for _, tc := range []struct {
		sizeBytes int64
		want      int
	}{{partition - 4096, 0}, {1, 0}, {partition + 100*mib - 1, 0}, {partition + 100*mib, 0}, {partition + 100*mib + 1, 1}} {
		if n := resizes(tc.sizeBytes); n != tc.want {
			t.Errorf("ResizeVolume(%d) of %d: %d resizes, want %d", tc.sizeBytes, partition, n, tc.want)
		}
	}
	l.want(host.KindExhausted, l.agent.ResizeVolume(l.ctx, id, 1<<40))
	l.want(host.KindInvalid, l.agent.ResizeVolume(l.ctx, id, -1))
	if n := resizes(0); n != 1 || size() < 480*mib {
		t.Errorf("to the maximum: %d resizes, %d bytes", n, size())
	}
}

func TestC013_SupportedSizeUnknown(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	number := l.disk(64 * mib)
	l.ok(l.agent.PartitionDisk(l.ctx, number))
	id := l.onlyVolume(number)
	l.ok(l.agent.FormatVolume(l.ctx, id))
	l.ok(l.node.GrowDisk(l.ctx, number, 512*mib))
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "cim.Exec MSFT_Partition.GetSupportedSize", Count: -1, ReturnValue: 4}))
	err := l.agent.ResizeVolume(l.ctx, id, 0)
	stats, statsErr := l.agent.GetVolumeStats(l.ctx, id)
	l.ok(statsErr)
	if err == nil && stats.TotalBytes < 480*mib || stats.TotalBytes < 32*mib {
		t.Errorf("resize: %v, %d bytes", err, stats.TotalBytes)
	}
}
