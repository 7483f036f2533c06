package tree

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// symlink makes a link through the API.
func (b *bed) symlink(folder, name, target string, directory bool) error {
	b.t.Helper()
	h := b.open(folder)
	defer func() { b.must(b.CloseHandle(h)) }()
	return b.CreateSymlink(context.Background(), h, name, target, directory)
}

func TestC017_ResolutionThroughLinksAndMounts(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\mnt\volume`))
	b.must(b.MakeFolder(ctx, `C:\disks`))
	b.must(b.SetVolumeMountPoint(ctx, `C:\mnt\volume\`, volumeD))
	b.must(b.WriteFile(ctx, volumeD+`a\b\f`, []byte("d")))
	b.must(b.WriteFile(ctx, `C:\foo\f`, []byte("c")))
	b.must(b.symlink(`C:\disks`, "abs", `C:\mnt\volume\a\b`, true))
	b.must(b.symlink(`C:\disks`, "rel", `..\MNT\volume\a\b`, true))
	b.must(b.symlink(`C:\disks`, "rooted", `\mnt\volume\a\b`, true))
	b.must(b.symlink(`C:\disks`, "id", volumeD+`a`, true))
	b.must(b.symlink(`C:\mnt\volume\a`, "above", `..\..\..\..\foo`, true)) // ends at the root of D
	b.must(b.symlink(`C:\disks`, "chain", `abs`, true))
	b.must(b.MakeLink(ctx, `C:\disks\junction`, `C:\mnt\volume\a`, Junction))
	b.must(b.symlink(`C:\disks`, "file", `abs\f`, false))
	for _, path := range []string{`abs\f`, `rel\f`, `rooted\f`, `id\b\f`, `chain\f`, `junction\b\f`, `file`, `id\..\abs\f`} {
		if got := b.read(`C:\disks\` + path); got != "d" {
			t.Errorf("%s: read %q", path, got)
		}
		if id, err := b.VolumeAt(ctx, `C:\disks\`+path); id != volumeD || err != nil {
			t.Errorf("%s: volume %s, %v", path, id, err)
		}
	}
	_, err := b.ReadFile(ctx, `C:\mnt\volume\a\above\f`)
	b.wantCode(err, win32.ErrPathNotFound)
	for path, want := range map[string]string{`C:\foo`: volumeC, `C:\mnt\volume`: volumeD, volumeD: volumeD, `C:\`: volumeC} {
		if id, err := b.VolumeAt(ctx, path); id != want || err != nil {
			t.Errorf("%s: volume %s, %v", path, id, err)
		}
	}
}

func TestLinksAreOpenedThemselves(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.WriteFile(ctx, `C:\t\f`, []byte("kept")))
	b.must(b.symlink(`C:\`, "dir", `C:\t`, true))
	b.must(b.symlink(`C:\`, "file", `t\f`, false))
	b.must(b.MakeLink(ctx, `C:\junction`, `C:\t`, Junction))
	for path, want := range map[string]win32.FileInfo{
		`C:\dir`:      {Attributes: win32.AttrDirectory | win32.AttrReparse, ReparseTag: win32.TagSymlink},
		`C:\dir\`:     {Attributes: win32.AttrDirectory | win32.AttrReparse, ReparseTag: win32.TagSymlink},
		`C:\file`:     {Attributes: attrArchive | win32.AttrReparse, ReparseTag: win32.TagSymlink},
		`C:\junction`: {Attributes: win32.AttrDirectory | win32.AttrReparse, ReparseTag: win32.TagMountPoint},
	} {
		got := b.info(path)
		if attributes, err := b.FileAttributes(ctx, path); attributes != want.Attributes || err != nil {
			t.Errorf("%s: attributes %#x, %v", path, attributes, err)
		}
		if got.Attributes != want.Attributes || got.ReparseTag != want.ReparseTag || got.SizeBytes != 0 {
			t.Errorf("%s: %+v", path, got)
		}
	}
	link := b.open(`C:\dir`)
	if names, err := b.ReadDir(ctx, link); err != nil || len(names) != 0 {
		t.Errorf("names in the link itself: %q, %v", names, err)
	}
	_, err := b.OpenAt(ctx, link, "f", plain)
	b.wantCode(err, win32.ErrFileNotFound)
	_, err = b.OpenAt(ctx, link, "new", win32.Open{Create: true})
	b.wantCode(err, win32.ErrAccessDenied)
	b.wantCode(b.symlink(`C:\`, "DIR", `C:\x`, true), win32.ErrAlreadyExists)
	b.wantCode(b.symlink(`C:\`, "a*b", `C:\x`, true), win32.ErrInvalidName)
	b.wantCode(b.symlink(`C:\`, "empty", ``, true), win32.ErrInvalidParameter)
}

func TestC027_DeletingLinksKeepsTheirTargets(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.WriteFile(ctx, `C:\t\f`, []byte("kept")))
	b.must(b.WriteFile(ctx, volumeD+`f`, []byte("kept")))
	b.must(b.MakeFolder(ctx, `C:\x\mount`))
	b.must(b.SetVolumeMountPoint(ctx, `C:\x\mount\`, volumeD))
	b.must(b.symlink(`C:\x`, "dir", `C:\t`, true))
	b.must(b.symlink(`C:\x`, "file", `..\t\f`, false))
	b.must(b.MakeLink(ctx, `C:\x\junction`, `C:\t`, Junction))
	for _, name := range []string{"mount", "dir", "file", "junction"} {
		b.must(b.delete(`C:\x\` + name))
		_, err := b.CreateFile(ctx, `C:\x\`+name, plain)
		b.wantCode(err, win32.ErrFileNotFound)
	}
	b.must(b.delete(`C:\x`))
	if b.read(`C:\t\f`) != "kept" || b.read(volumeD+`f`) != "kept" {
		t.Error("a target lost its file")
	}
	if links := b.Snapshot().Links; len(links) != 0 {
		t.Errorf("links left in the table: %+v", links)
	}
}

func TestTooManyLinks(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.WriteFile(ctx, `C:\0\f`, []byte("x")))
	for n := 1; n <= maxReparsePoints+1; n++ {
		b.must(b.symlink(`C:\`, strconv.Itoa(n), `C:\`+strconv.Itoa(n-1), true))
	}
	if got := b.read(`C:\63\f`); got != "x" {
		t.Errorf("read %q", got)
	}
	_, err := b.ReadFile(ctx, `C:\64\f`)
	b.wantCode(err, errCantResolve)
	b.must(b.symlink(`C:\`, "self", `self`, true))
	_, err = b.CreateFile(ctx, `C:\self\f`, plain)
	b.wantCode(err, errCantResolve)
	b.must(b.MakeFolder(ctx, `C:\loop`))
	b.must(b.SetVolumeMountPoint(ctx, `C:\loop\`, volumeC)) // a volume in itself
	if got := b.read(`C:\loop\loop\loop\0\f`); got != "x" {
		t.Errorf("read %q", got)
	}
	if paths := b.MountPaths(volumeC); len(paths) != 1 {
		t.Errorf("paths of a volume mounted in itself: %q", paths)
	}
}

func TestC022_DanglingLinksAreLinks(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\mount`))
	b.must(b.SetVolumeMountPoint(ctx, `C:\mount\`, volumeD))
	b.must(b.symlink(`C:\`, "drive", `Z:\x`, true))
	b.must(b.symlink(`C:\`, "share", `\\gone\share\x`, true))
	b.must(b.symlink(`C:\`, "folder", `C:\nowhere`, true))
	b.must(b.symlink(`C:\`, "bad", `a:b`, true))
	b.DetachVolume(volumeD)
	for name, want := range map[string]uint32{
		"mount": win32.ErrPathNotFound, "drive": win32.ErrPathNotFound, "share": win32.ErrBadNetPath,
		"folder": win32.ErrPathNotFound, "bad": win32.ErrInvalidName,
	} {
		if info := b.info(`C:\` + name); info.Attributes != win32.AttrDirectory|win32.AttrReparse {
			t.Errorf("%s: %+v", name, info)
		}
		_, err := b.CreateFile(ctx, `C:\`+name+`\f`, plain)
		b.wantCode(err, want)
		if _, err := os.Stat(b.host("c", name)); hostLinks && err == nil {
			t.Errorf("%s: the host follows it", name)
		}
		b.must(b.delete(`C:\` + name))
	}
}

func TestC029_ShortNames(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.WriteFile(ctx, `C:\variable folder\kubelet root\f`, []byte("long")))
	b.must(b.WriteFile(ctx, `C:\literal~1\f`, []byte("literal")))
	if got := b.read(`C:\VARIAB~1\kubele~1\f`); got != "long" {
		t.Errorf("read %q", got)
	}
	if got := b.read(volumeC + `VARIAB~1\KUBELE~1\f`); got != "long" {
		t.Errorf("through the volume: read %q", got)
	}
	if got := b.info(`C:\variab~1`); got != b.info(`C:\variable folder`) {
		t.Errorf("another object: %+v", got)
	}
	if path, err := b.FinalPath(ctx, b.open(`C:\VARIAB~1\KUBELE~1`)); path != `\\?\C:\variable folder\kubelet root` {
		t.Errorf("final path %q, %v", path, err)
	}
	b.must(b.MakeFolder(ctx, `C:\variable aaa`)) // comes later, so its number does
	if got := b.read(`C:\VARIAB~1\KUBELE~1\f`); got != "long" {
		t.Error("the short name moved to another object")
	}
	if got := b.info(`C:\VARIAB~2`); got != b.info(`C:\variable aaa`) {
		t.Errorf("second name: %+v", got)
	}
	if b.read(`C:\LITERAL~1\f`) != "literal" {
		t.Error("a literal name with ~1 is not found")
	}
	_, err := b.CreateFile(ctx, `C:\ADMINI~1`, plain)
	b.wantCode(err, win32.ErrFileNotFound)
	b.must(b.SetShortName(ctx, `C:\variable aaa`, "ALIAS"))
	b.wantCode(b.SetShortName(ctx, `C:\variable folder`, "alias"), win32.ErrAlreadyExists)
	b.wantCode(b.SetShortName(ctx, `C:\variable folder`, "much too long"), win32.ErrInvalidName)
	b.wantCode(b.SetShortName(ctx, `C:\`, "X"), win32.ErrAccessDenied)
	if got := b.info(`C:\alias`); got != b.info(`C:\variable aaa`) {
		t.Errorf("alias: %+v", got)
	}
	_, err = b.CreateFile(ctx, `C:\Alias`, win32.Open{Create: true, Directory: true})
	b.wantCode(err, win32.ErrAlreadyExists)
	b.must(b.delete(`C:\variable aaa`))
	_, err = b.CreateFile(ctx, `C:\alias`, plain)
	b.wantCode(err, win32.ErrFileNotFound)
}
