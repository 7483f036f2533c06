package agent_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

func TestPathStatsOfVolumes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.mounted(root + `\m`)
	l.write(root+`\m\file`, "12345")
	want, err := l.agent.GetVolumeStats(l.ctx, id)
	l.ok(err)
	l.ok(l.agent.CreateSymlink(l.ctx, root+`\m`, root+`\link`))
	for _, path := range []string{root + `\m`, root + `\link`} {
		if got, err := l.agent.GetPathStats(l.ctx, path); err != nil || got != want {
			t.Errorf("GetPathStats(%s) = %+v, %v; want %+v", path, got, err, want)
		}
	}
	for path, kind := range map[string]host.Kind{
		root:           host.KindPrecondition, // never the drive's own sizes
		root + `\none`: host.KindNotFound,
		`C:\Windows`:   host.KindInvalid,
		`\\srv\share`:  host.KindInvalid,
	} {
		_, err := l.agent.GetPathStats(l.ctx, path)
		l.want(kind, err)
	}
	l.noHandles()
}

func TestPathStatsOfShares(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(_ *sim.Config, p *agent.Policy) { p.ProbeTimeout = 2 * time.Second })
	folder := l.share(func(s *sim.SMBServer) { s.Shares[0].SizeBytes = 1 << 30 })
	l.ok(os.MkdirAll(filepath.Join(folder, "sub"), 0o755))
	writeFile(t, filepath.Join(folder, "sub", "file"), make([]byte, 1<<20))
	l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share\sub`, root+`\one`, "u", "pw"))
	l.ok(l.agent.CreateSymlink(l.ctx, root+`\one`, root+`\two`))
	for _, path := range []string{root + `\one`, root + `\two`} {
		got, err := l.agent.GetPathStats(l.ctx, path)
		if err != nil || got.TotalBytes != 1<<30 || got.UsedBytes < 1<<20 || got.UsedBytes > 2<<20 {
			t.Errorf("GetPathStats(%s) = %+v, %v", path, got, err)
		}
	}
	l.ok(os.Rename(filepath.Join(folder, "sub"), filepath.Join(folder, "moved")))
	_, err := l.agent.GetPathStats(l.ctx, root+`\one`)
	l.want(host.KindNotFound, err)
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.DiskFreeSpace", Hang: true}))
	_, err = l.agent.GetPathStats(l.ctx, root+`\one`)
	l.want(host.KindUnavailable, err)
	l.ok(l.node.ClearFaults(l.ctx))
	l.ok(l.agent.RemoveSmbGlobalMapping(l.ctx, `\\srv\share`))
	_, err = l.agent.GetPathStats(l.ctx, root+`\one`)
	l.want(host.KindPrecondition, err)
}
