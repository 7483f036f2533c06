package agent_test

import (
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
)

func TestFilesystemLife(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dir := root + `\pods\a\b`
	l.exists(dir, false)
	l.ok(l.agent.Mkdir(l.ctx, dir))
	l.ok(l.agent.Mkdir(l.ctx, dir))
	l.ok(l.agent.Mkdir(l.ctx, strings.ToUpper(dir)))
	l.exists(dir, true)
	l.linkKind(dir, host.NotALink)
	l.write(dir+`\file`, "x")
	l.want(host.KindExists, l.agent.Mkdir(l.ctx, dir+`\file`))
	l.want(host.KindExists, l.agent.Mkdir(l.ctx, dir+`\file\below`))
	l.exists(dir+`\file`, true)
	l.exists(dir+`\file\below`, false)
	l.want(host.KindPrecondition, l.agent.Rmdir(l.ctx, dir, false))
	l.holds(dir+`\file`, "x")
	l.ok(l.agent.RmdirContents(l.ctx, dir))
	l.exists(dir+`\file`, false)
	l.ok(l.agent.Rmdir(l.ctx, dir, false))
	l.ok(l.agent.Rmdir(l.ctx, dir, false))
	l.ok(l.agent.Rmdir(l.ctx, root+`\nothing\at\all`, true))
	l.ok(l.agent.Rmdir(l.ctx, root+`\pods`, true))
	l.exists(root+`\pods`, false)
	_, err := l.agent.IsSymlink(l.ctx, dir)
	l.want(host.KindNotFound, err)
	l.want(host.KindNotFound, l.agent.RmdirContents(l.ctx, dir))
	l.noHandles()
}

func TestCreateSymlink(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	source, target := root+`\plugins\stage`, root+`\pods\mount`
	l.want(host.KindNotFound, l.agent.CreateSymlink(l.ctx, source, target))
	l.ok(l.agent.Mkdir(l.ctx, source))
	l.want(host.KindNotFound, l.agent.CreateSymlink(l.ctx, source, target))
	l.ok(l.agent.Mkdir(l.ctx, root+`\pods`))
	l.ok(l.agent.CreateSymlink(l.ctx, `\\?\c:/VAR/lib\kubelet/plugins\stage\`, target))
	l.ok(l.agent.CreateSymlink(l.ctx, source, target))
	link, err := l.agent.GetLink(l.ctx, target)
	l.ok(err)
	if !strings.EqualFold(link.Target, source) {
		t.Errorf("the link leads to %q", link.Target)
	}
	l.write(target+`\file`, "through the link")
	l.holds(source+`\file`, "through the link")
	l.ok(l.agent.Mkdir(l.ctx, root+`\another`))
	l.want(host.KindExists, l.agent.CreateSymlink(l.ctx, root+`\another`, target))
	l.want(host.KindExists, l.agent.CreateSymlink(l.ctx, source, root+`\another`))
	l.ok(l.agent.CreateSymlink(l.ctx, target, root+`\second`)) // a link to a link
	l.linkKind(root+`\second`, host.LinkSymlink)
	l.ok(l.agent.Rmdir(l.ctx, target, false))
	l.holds(source+`\file`, "through the link")
	l.noHandles()
}

func TestC022_DanglingLinks(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ok(l.node.MakeLink(l.ctx, root+`\dead`, root+`\gone`))
	l.ok(l.node.MakeLink(l.ctx, root+`\share`, `\\gone\share`))
	for _, path := range []string{root + `\dead`, root + `\share`} {
		l.exists(path, true)
		l.linkKind(path, host.LinkSymlink)
	}
	l.want(host.KindExists, l.agent.Mkdir(l.ctx, root+`\dead`))
	l.want(host.KindPrecondition, l.agent.Mkdir(l.ctx, root+`\dead\below`))
	l.exists(root+`\dead\below`, false)
	l.ok(l.agent.Rmdir(l.ctx, root+`\dead`, false))
	l.ok(l.agent.Rmdir(l.ctx, root+`\share`, true))
	l.exists(root+`\dead`, false)
}

func TestC022_MountOfMissingVolume(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	number := l.disk(64 * mib)
	l.ok(l.agent.PartitionDisk(l.ctx, number))
	id := l.onlyVolume(number)
	l.ok(l.agent.FormatVolume(l.ctx, id))
	l.ok(l.agent.MountVolume(l.ctx, id, root+`\m`))
	l.ok(l.node.DetachDisk(l.ctx, number))
	l.exists(root+`\m`, true)
	l.linkKind(root+`\m`, host.LinkMountPoint)
	l.exists(root+`\m\x`, false)
	l.want(host.KindExists, l.agent.Mkdir(l.ctx, root+`\m`))
	l.ok(l.agent.UnmountVolume(l.ctx, id, root+`\m`))
	l.linkKind(root+`\m`, host.NotALink)
}

func TestC091_MkdirOverLinksToFolders(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.mounted(root + `\mount`)
	l.ok(l.agent.Mkdir(l.ctx, root+`\dir`))
	l.ok(l.node.MakeLink(l.ctx, root+`\link`, root+`\dir`))
	l.junction(root+`\junction`, root+`\dir`)
	l.ok(l.node.MakeLink(l.ctx, root+`\tomount`, root+`\mount`))
	for _, name := range []string{`\mount`, `\dir`, `\link`, `\junction`, `\tomount`} {
		if err := l.agent.Mkdir(l.ctx, root+name); err != nil {
			t.Errorf("Mkdir(%s): %v", name, err)
		}
	}
	l.linkKind(root+`\mount`, host.LinkMountPoint)
	l.linkKind(root+`\junction`, host.LinkJunction)
	l.ok(l.agent.Mkdir(l.ctx, root+`\tomount\in\volume`))
	l.exists(root+`\mount\in\volume`, true)
}

func TestC023_LongPaths(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	long := root + strings.Repeat(`\aaaaaaaaaaaaaaaaaaa`, 15)
	if len(long) < 300 {
		t.Fatalf("only %d characters", len(long))
	}
	l.ok(l.agent.Mkdir(l.ctx, long))
	l.exists(long, true)
	l.ok(l.agent.Rmdir(l.ctx, long, false))
	l.exists(long, false)
	tooLong := root + strings.Repeat(`\aaaaaaaaaaaaaaaaaaa`, 1600)
	for _, err := range []error{
		l.agent.Mkdir(l.ctx, tooLong), l.agent.Rmdir(l.ctx, tooLong, true), second(l.agent.PathExists(l.ctx, tooLong)),
	} {
		l.want(host.KindInvalid, err)
		if !strings.Contains(err.Error(), "32000") || len(err.Error()) > 1000 {
			t.Errorf("the limit is not named, or the text is long: %.200s", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestC029_ShortNames(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ok(l.agent.Mkdir(l.ctx, root+`\some folder`))
	// A name of 8 letters has no alias, so this one is taken literally.
	l.want(host.KindInvalid, second(l.agent.PathExists(l.ctx, `C:\var\lib\KUBELE~1\some folder`)))
	l.ok(l.agent.Mkdir(l.ctx, root+`\SOMEFO~1\below`))
	l.exists(root+`\some folder\below`, true)
	l.ok(l.agent.CreateSymlink(l.ctx, root+`\SOMEFO~1\below`, root+`\link`))
	link, err := l.agent.GetLink(l.ctx, root+`\link`)
	l.ok(err)
	if !strings.EqualFold(link.Target, root+`\some folder\below`) {
		t.Errorf("the link leads to %q, not to the long name", link.Target)
	}
	l.ok(l.agent.Mkdir(l.ctx, root+`\new~1`))
	l.exists(root+`\new~1`, true)
}

func TestC030_Spellings(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, path := range []string{`c:\VAR\lib\kubelet\p`, `C:/var\lib/kubelet/p`, `/var/lib/kubelet/p`, `\\?\C:\Var\Lib\Kubelet\P`} {
		l.ok(l.agent.Mkdir(l.ctx, path))
	}
	names, err := l.node.ListDir(l.ctx, root)
	l.ok(err)
	if len(names) != 1 {
		t.Errorf("the spellings made %q", names)
	}
	l.want(host.KindInvalid, l.agent.Mkdir(l.ctx, `C:\var\lib\kubelet2`))
	l.want(host.KindInvalid, l.agent.Mkdir(l.ctx, `C:\var\lib`))
}

func TestRootUnderAnotherName(t *testing.T) {
	t.Parallel()
	l := newLab(t, withRoots(`C:\work folder long`, root, `C:\k`))
	l.ok(l.node.MakeDir(l.ctx, `C:\work folder long\a`))
	l.exists(`C:\WORKFO~1\a`, true)
	l.ok(l.agent.Mkdir(l.ctx, `C:\WORKFO~1\b`))
	l.exists(`C:\work folder long\b`, true)
	l.want(host.KindPrecondition, l.agent.Rmdir(l.ctx, `C:\WORKFO~1`, true))
	// A link of the administrator's above the root, and a root that is one.
	l.ok(l.node.MakeDir(l.ctx, `C:\real`))
	l.ok(l.node.MakeLink(l.ctx, `C:\k`, `C:\real`))
	l.ok(l.node.MakeLink(l.ctx, `C:\alias`, `C:\var`))
	l.ok(l.agent.Mkdir(l.ctx, `C:\alias\lib\kubelet\via`))
	l.exists(root+`\via`, true)
	l.ok(l.agent.Mkdir(l.ctx, `C:\k\x`))
	l.exists(`C:\real\x`, true)
	l.want(host.KindPrecondition, l.agent.Rmdir(l.ctx, `C:\real`, true))
	l.want(host.KindPrecondition, l.agent.Rmdir(l.ctx, `C:\k`, false))
	l.want(host.KindPrecondition, l.agent.Rmdir(l.ctx, root, true))
	l.want(host.KindPrecondition, l.agent.RmdirContents(l.ctx, root))
	l.want(host.KindInvalid, l.agent.Rmdir(l.ctx, `C:\var`, true))
	l.exists(root+`\via`, true)
}

// Which letters outside ASCII are one but for their case is up to the volume,
// so the objects are compared.
func TestRootOutsideASCII(t *testing.T) {
	t.Parallel()
	l := newLab(t, withRoots(`C:\kübel`))
	l.ok(l.node.MakeDir(l.ctx, `C:\kübel`))
	l.ok(l.agent.Mkdir(l.ctx, `C:\KÜBEL\x`))
	l.exists(`C:\kübel\X`, true)
	l.want(host.KindInvalid, l.agent.Mkdir(l.ctx, `C:\kubel\x`))
	l.want(host.KindPrecondition, l.agent.Rmdir(l.ctx, `C:\KÜBEL`, true))
}

// A working folder on a drive that cannot be read now holds up nobody else.
func TestRootOnUnusableDrive(t *testing.T) {
	t.Parallel()
	l := newLab(t, withRoots(root, `D:\k`))
	l.ok(l.node.SetVolumeMountPoint(l.ctx, `D:\`, l.volume(64*mib)))
	l.mounted(root + `\m`)
	l.ok(l.agent.Mkdir(l.ctx, root+`\m\sub`))
	l.ok(l.agent.Rmdir(l.ctx, root+`\m\sub`, true))
	if err := l.agent.Mkdir(l.ctx, `D:\k\x`); err == nil {
		t.Error("a folder was made on a volume without file system")
	}
}

func TestMissingRoot(t *testing.T) {
	t.Parallel()
	l := newLab(t, withRoots(`C:\not\there`, root))
	l.exists(`C:\not\there\x`, false)
	l.exists(`C:\not\there`, false)
	l.want(host.KindInvalid, l.agent.Mkdir(l.ctx, `C:\not\therefore`))
	l.want(host.KindInvalid, l.agent.Mkdir(l.ctx, `C:\not`))
	l.ok(l.agent.Rmdir(l.ctx, `C:\not\there\x`, true))
	l.ok(l.node.MakeDir(l.ctx, `C:\real`))
	l.ok(l.node.MakeLink(l.ctx, `C:\not`, `C:\real`))
	l.ok(l.agent.Mkdir(l.ctx, `C:\not\there\x`))
	l.exists(`C:\not\there\x`, true)
	l.exists(`C:\real\there\x`, true)
}
