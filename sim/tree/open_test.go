package tree

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// plain opens nothing but attributes and shares everything.
var plain = win32.Open{Access: win32.FileReadAttr, Share: shareAll}

func TestCreateFileCodes(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.WriteFile(ctx, `C:\dir\file`, []byte("x")))
	b.must(b.AttachVolume(Volume{ID: volumeE, ReadOnly: true}))
	folder, file := win32.Open{Directory: true}, win32.Open{}
	newFolder, newFile := win32.Open{Create: true, Directory: true}, win32.Open{Create: true}
	for _, test := range []struct {
		path string
		open win32.Open
		code uint32
	}{
		{`C:\dir\file`, file, 0},
		{`C:\DIR\FILE`, file, 0},
		{`C:\dir`, file, 0},
		{`C:\dir\`, folder, 0},
		{`\\?\C:\`, folder, 0},
		{volumeC, folder, 0},
		{`C:\dir\none`, file, win32.ErrFileNotFound},
		{`C:\none\none`, file, win32.ErrPathNotFound},
		{`C:\dir\file\x`, file, win32.ErrPathNotFound},
		{`C:\dir\file`, folder, win32.ErrDirectory},
		{`C:\dir\file\`, file, win32.ErrInvalidName},
		{`\\?\C:\dir\file\`, file, win32.ErrInvalidName},
		{`C:\dir\new\`, newFile, win32.ErrInvalidName},
		{`C:\dir\file`, newFile, win32.ErrFileExists},
		{`C:\dir\FILE`, newFolder, win32.ErrAlreadyExists},
		{`C:\dir`, newFolder, win32.ErrAlreadyExists},
		{`C:\none\x`, newFolder, win32.ErrPathNotFound},
		{`C:\dir\CON`, file, win32.ErrFileNotFound},
		{`C:\dir\nul.txt`, newFolder, win32.ErrDirectory},
		{`C:\dir\file. .`, file, 0},
		{`C:\dir\file:stream`, file, win32.ErrInvalidName},
		{`Z:\x`, file, win32.ErrPathNotFound},
		{`\\?\Z:\`, folder, win32.ErrPathNotFound},
		{`\\?\Volume{bbbbbbbb-0000-0000-0000-00000000000c}\`, folder, win32.ErrPathNotFound},
		{volumeE, folder, win32.ErrUnrecognizedVolume},
		{volumeE + `x`, file, win32.ErrUnrecognizedVolume},
		{`\\srv\sh\x`, file, win32.ErrBadNetPath},
		{`\\.\PhysicalDrive0`, file, win32.ErrFileNotFound},
	} {
		h, err := b.CreateFile(ctx, test.path, test.open)
		if got := code(t, err); got != test.code {
			t.Errorf("CreateFile(%q, %+v): code %d, want %d", test.path, test.open, got, test.code)
		}
		if err == nil {
			b.must(b.CloseHandle(h))
		}
	}
}

func TestC023_PathsBeyond260(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	deep := `C:\` + strings.Repeat(strings.Repeat("d", 99)+`\`, 3)
	b.wantCode(b.MakeFolder(ctx, deep), win32.ErrPathNotFound)
	b.must(b.MakeFolder(ctx, `\\?\`+deep))
	b.must(b.WriteFile(ctx, `\\?\`+deep+`f`, []byte("x")))
	if got := b.read(`\\?\` + deep + `f`); got != "x" {
		t.Errorf("read %q", got)
	}
	path, err := b.FinalPath(ctx, b.open(`\\?\`+deep+`f`))
	if want := `\\?\` + deep + `f`; err != nil || path != want {
		t.Errorf("final path %q, %v", path, err)
	}
}

func TestOpenAtTakesNamesLiterally(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	root := b.open(`\\?\C:\`)
	for _, name := range []string{"%PATH%", "a&calc", "na\u00efve", strings.Repeat("x", 255)} {
		h, err := b.OpenAt(ctx, root, name, win32.Open{Create: true, Directory: true})
		b.must(err)
		b.must(b.CloseHandle(h))
	}
	for _, name := range []string{"", ".", "..", `a\b`, "a/b", "a:b", "a*", "\x01", "a\x00", "\xff", strings.Repeat("x", 256)} {
		_, err := b.OpenAt(ctx, root, name, win32.Open{Create: true, Directory: true})
		b.wantCode(err, win32.ErrInvalidName)
	}
	_, err := b.OpenAt(ctx, root, "CON", plain)
	b.wantCode(err, win32.ErrFileNotFound)
	_, err = b.OpenAt(ctx, root, "A&CALC", win32.Open{Create: true})
	b.wantCode(err, win32.ErrAlreadyExists)
	_, err = b.OpenAt(ctx, 4711, "x", plain)
	b.wantCode(err, win32.ErrInvalidHandle)
	names, err := b.ReadDir(ctx, root)
	slices.Sort(names)
	if want := []string{"%PATH%", "a&calc", "na\u00efve", strings.Repeat("x", 255)}; err != nil || !slices.Equal(names, want) {
		t.Errorf("names %q, %v", names, err)
	}
}

func TestHandleRights(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.WriteFile(ctx, `C:\f`, []byte("hello")))
	b.must(b.MakeFolder(ctx, `C:\d`))
	weak, err := b.CreateFile(ctx, `C:\f`, plain)
	b.must(err)
	buffer := make([]byte, 8)
	_, err = b.ReadAt(ctx, weak, buffer, 0)
	b.wantCode(err, win32.ErrAccessDenied)
	b.wantCode(b.Delete(ctx, weak), win32.ErrAccessDenied)
	b.wantCode(b.FlushFileBuffers(ctx, weak), win32.ErrAccessDenied)
	b.must(b.CloseHandle(weak))
	_, err = b.Info(ctx, weak)
	b.wantCode(err, win32.ErrInvalidHandle)
	b.wantCode(b.CloseHandle(weak), win32.ErrInvalidHandle)

	file, folder := b.open(`C:\f`), b.open(`C:\d`)
	n, err := b.ReadAt(ctx, file, buffer, 1)
	if string(buffer[:n]) != "ello" || err != nil {
		t.Errorf("read %q, %v", buffer[:n], err)
	}
	_, err = b.ReadAt(ctx, file, buffer, 5)
	b.wantCode(err, win32.ErrHandleEOF)
	_, err = b.ReadAt(ctx, file, buffer, -1)
	b.wantCode(err, win32.ErrInvalidParameter)
	_, err = b.ReadAt(ctx, folder, buffer, 0)
	b.wantCode(err, win32.ErrInvalidFunction)
	_, err = b.ReadDir(ctx, file)
	b.wantCode(err, win32.ErrInvalidParameter)
	write, err := b.CreateFile(ctx, `C:\f`, win32.Open{Access: win32.GenericWrite, Share: shareAll})
	b.must(err)
	b.must(b.FlushFileBuffers(ctx, write))
	b.must(b.CloseHandle(write))
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err = b.Info(done, file)
	b.wantCode(err, errOperationAborted)
	_, err = b.CreateFile(done, `C:\f`, plain)
	b.wantCode(err, errOperationAborted)
}

func TestShareModes(t *testing.T) {
	t.Parallel()
	const read, write, remove, attributes = win32.GenericRead, win32.GenericWrite, win32.AccessDelete, win32.FileReadAttr
	for _, test := range []struct {
		name                  string
		firstAccess, firstAll uint32
		nextAccess, nextShare uint32
		code                  uint32
	}{
		{"readers", read, win32.ShareRead, read, win32.ShareRead, 0},
		{"writer beside a reader who shares reading", read, win32.ShareRead, write, shareAll, win32.ErrSharingViolation},
		{"reader who does not let the writer be", write, shareAll, read, win32.ShareRead, win32.ErrSharingViolation},
		{"delete of what is held", read, win32.ShareRead | win32.ShareWrite, remove, shareAll, win32.ErrSharingViolation},
		{"delete that is shared", read, shareAll, remove, shareAll, 0},
		{"open of what may be deleted", remove, shareAll, read, win32.ShareRead | win32.ShareWrite, win32.ErrSharingViolation},
		{"attributes take no part", read, 0, attributes, 0, 0},
		{"attributes hold nothing", attributes, 0, remove, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b, ctx := newBed(t), context.Background()
			b.must(b.WriteFile(ctx, `C:\f`, nil))
			first, err := b.CreateFile(ctx, `C:\f`, win32.Open{Access: test.firstAccess, Share: test.firstAll})
			b.must(err)
			next, err := b.CreateFile(ctx, `C:\F`, win32.Open{Access: test.nextAccess, Share: test.nextShare})
			b.wantCode(err, test.code)
			if err == nil {
				b.must(b.CloseHandle(next))
			}
			b.must(b.CloseHandle(first))
			next, err = b.CreateFile(ctx, `C:\f`, win32.Open{Access: test.nextAccess, Share: test.nextShare})
			b.must(err)
			b.must(b.CloseHandle(next))
		})
	}
}

func TestHeldFoldersCannotMove(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\a\b\c`))
	held, err := b.CreateFile(ctx, `C:\a\b`, win32.Open{Access: win32.FileListDir, Share: win32.ShareRead | win32.ShareWrite})
	b.must(err)
	b.wantCode(b.Rename(ctx, `C:\a\b`, `C:\x`), win32.ErrSharingViolation)
	b.wantCode(b.Rename(ctx, `C:\a`, `C:\x`), win32.ErrAccessDenied)
	b.wantCode(b.delete(`C:\a\b`), win32.ErrSharingViolation)
	b.must(b.Rename(ctx, `C:\a\b\c`, `C:\a\b\d`))
	b.wantCode(b.Rename(ctx, `C:\a\b\d`, `C:\A`), win32.ErrAlreadyExists)
	b.wantCode(b.Rename(ctx, `C:\a\b\d`, volumeD+`d`), errNotSameDevice)
	b.wantCode(b.Rename(ctx, `C:\`, `C:\x`), win32.ErrAccessDenied)
	b.must(b.CloseHandle(held))
	b.must(b.Rename(ctx, `C:\a`, `C:\x`))
	b.info(`C:\x\b\d`)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.WriteFile(ctx, `C:\d\f`, []byte("x")))
	b.must(os.Chmod(filepath.Join(b.c, "d", "f"), 0o444))
	if got := b.info(`C:\d\f`); got.Attributes != attrArchive|win32.AttrReadOnly || got.SizeBytes != 1 {
		t.Errorf("info %+v", got)
	}
	b.wantCode(b.delete(`C:\d`), win32.ErrDirNotEmpty)
	b.wantCode(b.delete(`C:\`), win32.ErrAccessDenied)
	h, other := b.open(`C:\d\f`), b.open(`C:\d\f`)
	b.must(b.Delete(ctx, h)) // read-only and open elsewhere
	b.wantCode(b.Delete(ctx, other), win32.ErrAccessDenied)
	_, err := b.FinalPath(ctx, other)
	b.wantCode(err, win32.ErrPathNotFound)
	b.must(b.WriteFile(ctx, `C:\d\f`, []byte("new"))) // the name is free at once
	if b.read(`C:\d\f`) != "new" {
		t.Error("the new file is the old one")
	}
	b.must(b.delete(`C:\d\f`))
	folder := b.open(`C:\d`)
	b.must(b.Delete(ctx, folder))
	_, err = b.OpenAt(ctx, folder, "x", win32.Open{Create: true})
	b.wantCode(err, win32.ErrAccessDenied)
	if names, err := b.ReadDir(ctx, folder); err != nil || len(names) != 0 {
		t.Errorf("names in a deleted folder: %q, %v", names, err)
	}
	if _, err := os.Lstat(filepath.Join(b.c, "d")); !os.IsNotExist(err) {
		t.Errorf("the host still has the folder: %v", err)
	}
}

func TestReadOnlyVolume(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.WriteFile(ctx, `C:\f`, []byte("x")))
	b.must(b.MakeFolder(ctx, `C:\d`))
	b.must(b.AttachVolume(Volume{ID: volumeC, Folder: b.c, ReadOnly: true, HostsMountPoints: true}))
	b.wantCode(b.WriteFile(ctx, `C:\f`, nil), win32.ErrWriteProtect)
	b.wantCode(b.MakeFolder(ctx, `C:\e`), win32.ErrWriteProtect)
	b.wantCode(b.delete(`C:\f`), win32.ErrWriteProtect)
	b.wantCode(b.Rename(ctx, `C:\f`, `C:\g`), win32.ErrWriteProtect)
	b.wantCode(b.SetVolumeMountPoint(ctx, `C:\d\`, volumeD), win32.ErrWriteProtect)
	b.wantCode(b.MakeLink(ctx, `C:\l`, `C:\f`, FileSymlink), win32.ErrWriteProtect)
	if b.read(`C:\f`) != "x" {
		t.Error("the file changed")
	}
}

func TestC030_OneObjectUnderEverySpelling(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\var\Lib\Größe`))
	want := b.info(`C:\var\Lib\Größe`)
	for _, spelling := range []string{`c:/VAR/lib/GRÖßE`, `\\?\C:\VAR\LIB\größe`, volumeC + `Var\LIB\Größe`, `C:\var\.\x\..\lib\größe. `} {
		if got := b.info(spelling); got != want {
			t.Errorf("%q: %+v, want %+v", spelling, got, want)
		}
		h := b.open(spelling)
		if path, err := b.FinalPath(ctx, h); err != nil || path != `\\?\C:\var\Lib\Größe` {
			t.Errorf("%q: final path %q, %v", spelling, path, err)
		}
	}
	if other := b.info(`C:\var\lib`); other.FileID == want.FileID {
		t.Error("two folders have one id")
	}
}
