package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/image"
)

var _ = errors.Join
var _ = context.Background
var _ = bytes.Equal
var _ = time.Now
var _ = image.StyleGPT

// patch writes bytes into an image file.
func patch(t *testing.T, path string, size int64, at map[int64]string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for off, s := range at {
		if off < 0 {
			off += size
		}
		if _, err := f.WriteAt([]byte(s), off); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProbeEmptyMBROverForeign(t *testing.T) {
	for name, at := range map[string]map[int64]string{
		"ext4":     {510: "\x55\xaa", 1080: "\x53\xef"},
		"xfs?":     {510: "\x55\xaa", 65536 + 64: "_BHRfS_M"},
		"lvm":      {510: "\x55\xaa", 512: "LABELONE"},
		"luks2nd":  {510: "\x55\xaa", 0x4000: "SKUL\xba\xbe"},
		"raid end": {510: "\x55\xaa", -8192: "\xfc\x4e\x2b\xa9\x01\x00\x00\x00"},
	} {
		l := newLab(t)
		path := filepath.Join(t.TempDir(), "d")
		patch(t, path, 64*mib, at)
		n, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: path})
		l.ok(err)
		err = l.agent.PartitionDisk(l.ctx, n)
		fmt.Println("A", name, err)
	}
}

func TestProbeGPTOverBtrfs(t *testing.T) {
	l := newLab(t)
	path := filepath.Join(t.TempDir(), "d")
	patch(t, path, 64*mib, map[int64]string{65536 + 64: "_BHRfS_M", 0: "x"})
	img, err := image.Open(path)
	l.ok(err)
	l.ok(img.InitGPT("{11111111-2222-3333-4444-555555555555}"))
	l.ok(img.Close())
	n, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: path})
	l.ok(err)
	fmt.Println("B", l.diskState(n), l.agent.PartitionDisk(l.ctx, n))
}

func TestProbeRootOnRawDrive(t *testing.T) {
	l := newLab(t, withRoots(root, `D:\k`))
	id := l.volume(64 * mib)
	ctl := l.node
	l.ok(l.agent.Mkdir(l.ctx, root+`\x`))
	_ = ctl
	l.ok(l.node.SetVolumeMountPoint(l.ctx, `D:\`, id))
	fmt.Println("D rmdir", l.agent.Rmdir(l.ctx, root+`\x`, true))
	id2 := l.formatted(64 * mib)
	fmt.Println("D mount", l.agent.MountVolume(l.ctx, id2, root+`\m`))
	_, err := l.agent.PathExists(l.ctx, root+`\m\x`)
	fmt.Println("D exists", err)
}

func TestProbeDeep(t *testing.T) {
	l := newLab(t)
	start := time.Now()
	p := root
	for i := 0; i < 2000; i++ {
		p += `\d`
	}
	err := l.agent.Mkdir(l.ctx, p)
	fmt.Println("E mkdir", err, time.Since(start))
	start = time.Now()
	fmt.Println("E rmdir", l.agent.Rmdir(l.ctx, root+`\d`, true), time.Since(start))
	l.noHandles()
}

func TestProbePaused(t *testing.T) {
	l := newLab(t)
	l.ok(l.node.SetService(l.ctx, sim.Service{Name: "p", DisplayName: "p", StartType: 3, State: 7}))
	ctx, c := context.WithTimeout(l.ctx, 300*time.Millisecond)
	defer c()
	start := time.Now()
	fmt.Println("G start paused", l.agent.StartService(ctx, "p"), time.Since(start))
	fmt.Println("G stop paused", l.agent.StopService(l.ctx, "p", false))
	l.ok(l.node.SetService(l.ctx, sim.Service{Name: "q", StartType: 3, State: 2, Polls: 5}))
	fmt.Println("G stop starting", l.agent.StopService(l.ctx, "q", false))
	l.ok(l.node.SetService(l.ctx, sim.Service{Name: "r", StartType: 3, State: 1, DependsOn: []string{"missing"}}))
	fmt.Println("G dep missing", l.agent.StartService(l.ctx, "r"))
	l.ok(l.node.SetService(l.ctx, sim.Service{Name: "s", StartType: 3, State: 99}))
	ctx, c = context.WithTimeout(l.ctx, 300*time.Millisecond)
	defer c()
	fmt.Println("G unknown", l.agent.StartService(ctx, "s"))
	fmt.Println("G unknown", l.agent.StopService(ctx, "s", true))
}

func TestProbeShareNames(t *testing.T) {
	l := newLab(t)
	f1, f2 := t.TempDir(), t.TempDir()
	l.ok(l.node.SetSMBServer(l.ctx, sim.SMBServer{Name: "srv", Users: map[string]string{"u": "pw"}, Shares: []sim.SMBShare{
		{Name: "k", Folder: f1}, {Name: "\u212a", Folder: f2}, {Name: "İst", Folder: f2}, {Name: "ist", Folder: f1}, {Name: "my share", Folder: f1}, {Name: "ÄÖ", Folder: f1},
	}}))
	for _, s := range []string{"\u212a", "İst", "my share", "äö", "ÄÖ"} {
		fmt.Println("H", s, l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\`+s, "", "u", "pw"), l.mappings())
	}
}

func TestProbeReadErrors(t *testing.T) {
	for nth := 1; nth < 4; nth++ {
		l := newLab(t)
		n := l.disk(64 * mib)
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.ReadAt", Nth: nth, Win32: 23}))
		fmt.Println("J", nth, l.agent.PartitionDisk(l.ctx, n), l.diskState(n))
	}
}

func TestProbeWrongPasswordRemake(t *testing.T) {
	l := newLab(t)
	l.share()
	l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, root+`\l`, "u", "pw"))
	fmt.Println("L same share wrong pw", l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, "", "u", "bad"), l.mappings())
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.FileAttributes", Win32: 59}))
	fmt.Println("L glitch + wrong pw", l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, "", "u", "bad"), l.mappings())
}

func TestProbePowerCutFormat(t *testing.T) {
	l := newLab(t, func(c *sim.Config, _ *agent.Policy) { c.DiskWriteCache = true })
	for cut := 1; ; cut++ {
		number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: filepath.Join(t.TempDir(), "d"), SizeBytes: 64 * mib, Bus: "SAS"})
		l.ok(err)
		l.ok(l.agent.PartitionDisk(l.ctx, number))
		id := l.onlyVolume(number)
		seen, done := 0, false
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "*", Count: -1, Hook: func() {
			if seen++; seen == cut {
				done = true
				l.ok(l.node.PowerCut(l.ctx))
			}
		}}))
		_ = l.agent.FormatVolume(l.ctx, id)
		l.ok(l.node.ClearFaults(l.ctx))
		if !done {
			break
		}
		l.ok(l.node.Boot(l.ctx))
		l.restartAgent()
		if err := l.agent.PartitionDisk(l.ctx, number); err != nil {
			fmt.Println("F part", cut, err)
			break
		}
		id = l.onlyVolume(number)
		if err := l.agent.FormatVolume(l.ctx, id); err != nil {
			fmt.Println("F", cut, err)
		}
		l.ok(l.node.DetachDisk(l.ctx, number))
	}
}

func TestProbeResize(t *testing.T) {
	l := newLab(t)
	n := l.disk(64 * mib)
	l.ok(l.agent.PartitionDisk(l.ctx, n))
	id := l.onlyVolume(n)
	fmt.Println("M raw", l.agent.ResizeVolume(l.ctx, id, 0))
	l.ok(l.node.GrowDisk(l.ctx, n, 512*mib))
	fmt.Println("M raw grown", l.agent.ResizeVolume(l.ctx, id, 0))
	l.ok(l.node.GrowDisk(l.ctx, n, 1024*mib))
	l.ok(l.agent.FormatVolume(l.ctx, id))
	for _, s := range []int64{1, 1<<63 - 1, 900*mib + 1, 900*mib + 513, 1024 * mib} {
		err := l.agent.ResizeVolume(l.ctx, id, s)
		v, _ := l.os.Volume(l.ctx, id)
		fmt.Println("M", s, err, v.PartitionSizeBytes, v.SizeBytes)
	}
}

func TestProbeClosest(t *testing.T) {
	l := newLab(t)
	l.mounted(root + `\m`)
	_ = l.node.MakeLink(l.ctx, root+`\loop`, `loop`)
	_ = l.node.MakeLink(l.ctx, root+`\a`, root+`\b`)
	_ = l.node.MakeLink(l.ctx, root+`\b`, root+`\a`)
	_ = l.node.MakeLink(l.ctx, root+`\m\up`, `..\..`)
	_ = l.node.MakeLink(l.ctx, root+`\dang`, root+`\nowhere\x`)
	for _, p := range []string{`\loop`, `\a\x`, `\m\up`, `\m\up\x`, `\dang`, `\m`, `\m\`, `/m`, `\m\nope`, `\M\UP\..`} {
		id, err := l.agent.GetClosestVolumeIDFromTargetPath(l.ctx, root+p)
		fmt.Println("closest", p, id, err)
	}
	for _, id := range []string{`\\?\Volume{`, `\\?\volume{00000000-0000-0000-0000-000000000000}`, `\\.\Volume{00000000-0000-0000-0000-000000000000}\`, `Volume{}`, `C:\`, `\\?\Volume{00000000-0000-0000-0000-000000000000}\..`, strings.Repeat("x", 100000)} {
		_, err := l.agent.GetVolumeStats(l.ctx, id)
		fmt.Println("id", host.KindOf(err))
	}
}
