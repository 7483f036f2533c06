package mounter_test

import (
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

func TestMain(m *testing.M) { wiretest.Main(m) }

func TestSharesAreMappedAndLinked(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, l *lab, official bool) {
		const password = `MARKER,"$x; 'y`
		l.ok(l.node.SetSMBServer(t.Context(), sim.SMBServer{
			Name: "srv", Users: map[string]string{"u": password}, Shares: []sim.SMBShare{{Name: "s", Folder: t.TempDir()}},
		}))
		target := root + `\pods\share`
		l.ok(l.mounter.MakeDir(target)) // as drivers do before they mount
		for range 2 {
			l.ok(l.mounter.MountSensitive("//srv/s", target, "cifs", []string{"u"}, []string{password}))
		}
		if not, err := l.mounter.IsLikelyNotMountPoint(target); not || err != nil {
			t.Errorf("the share: %v, %v", not, err)
		}
		if stats, err := l.mounter.GetVolumeStats(target); (err != nil) != official || (stats.TotalBytes == 0) != official {
			t.Errorf("GetVolumeStats: %+v, %v", stats, err)
		}
		l.ok(l.mounter.Unmount(target))
		if exists, err := l.mounter.ExistsPath(target); exists || err != nil {
			t.Errorf("after the unmount: %v, %v", exists, err)
		}
	})
}

func TestC098_NoOptionIsInAnError(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	l.ok(l.node.SetSMBServer(t.Context(), sim.SMBServer{
		Name: "srv", Users: map[string]string{"u": "other"}, Shares: []sim.SMBShare{{Name: "s", Folder: t.TempDir()}},
	}))
	secret := []string{"MARKER-secret"}
	for name, err := range map[string]error{
		"wrong password": l.mounter.MountSensitive(`\\srv\s`, root+`\a`, "cifs", []string{"u"}, secret),
		"no user":        l.mounter.MountSensitive(`\\srv\s`, root+`\a`, "cifs", nil, secret),
		"no server":      l.mounter.MountSensitive(`\\gone\s`, root+`\a`, "cifs", []string{"u"}, secret),
		"bad source":     l.mounter.MountSensitive("tmpfs", root+`\a`, "tmpfs", []string{"MARKER"}, secret),
		"mount flags":    l.mounter.MountSensitiveWithoutSystemdWithMountFlags(`\\srv\s`, root+`\a`, "cifs", nil, secret, []string{"MARKER"}),
		"bad disk":       l.mounter.FormatAndMountSensitive("99", root+`\a`, "", []string{"MARKER"}, secret),
	} {
		if err == nil || strings.Contains(err.Error(), "MARKER") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMountRefusesWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	both(t, func(_ *testing.T, l *lab, _ bool) {
		l.ok(l.mounter.MakeDir(root + `\source`))
		l.write(root+`\full\file`, "precious")
		if err := l.mounter.Mount(root+`\source`, root+`\full`, "", []string{"bind"}); err == nil {
			l.Error("a folder with files gave way to a link")
		}
		l.holds(root+`\full\file`, "precious")
		l.ok(l.mounter.Unmount(root + `\full`)) // nothing is mounted there
		l.holds(root+`\full\file`, "precious")
		if err := l.mounter.CleanupMountPoint(root + `\full`); err == nil {
			l.Error("a folder with files was cleaned up")
		}
		l.want(host.KindInvalid, l.mounter.Mount(`relative\path`, root+`\x`, "", []string{"bind"}))
	})
}

func TestEvalHostSymlinks(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	l.mounted(root + `\mount`)
	l.ok(l.mounter.Mount(root+`\mount`, root+`\one`, "", []string{"bind"}))
	l.ok(l.mounter.Mount(root+`\one`, root+`\two`, "", []string{"bind"}))
	if path, err := l.mounter.EvalHostSymlinks(root + `\two`); err != nil || !strings.EqualFold(path, root+`\mount`) {
		t.Errorf("got %q, %v", path, err)
	}
	l.ok(l.node.MakeLink(t.Context(), root+`\a`, root+`\b`))
	l.ok(l.node.MakeLink(t.Context(), root+`\b`, root+`\a`))
	_, err := l.mounter.EvalHostSymlinks(root + `\a`)
	l.want(host.KindPrecondition, err)
	if _, err := l.mounter.EvalHostSymlinks(root + `\nothing`); err == nil {
		t.Error("what is missing was found")
	}
}
