package tree

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

func TestFsctlReparsePoint(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\d`))
	b.must(b.WriteFile(ctx, `C:\t\f`, []byte("x")))
	h := b.open(`C:\d`)
	buffer := make([]byte, win32.ReparseBufferMaxBytes)
	_, err := b.FsctlGetReparsePoint(ctx, h, buffer)
	b.wantCode(err, win32.ErrNotAReparsePoint)

	in := encodeReparse(&Link{Tag: win32.TagMountPoint, Substitute: `\??\C:\t`, Print: `C:\t`})
	b.must(b.FsctlSetReparsePoint(ctx, h, in))
	if got := b.read(`C:\d\f`); got != "x" {
		t.Errorf("through the junction: %q", got)
	}
	n, err := b.FsctlGetReparsePoint(ctx, h, buffer)
	if err != nil || !bytes.Equal(buffer[:n], in) {
		t.Errorf("got %x, %v, want %x", buffer[:n], err, in)
	}
	n, err = b.FsctlGetReparsePoint(ctx, h, buffer[:20])
	if b.wantCode(err, win32.ErrMoreData); n != 20 {
		t.Errorf("%d bytes of a cut answer", n)
	}
	_, err = b.FsctlGetReparsePoint(ctx, h, buffer[:7])
	b.wantCode(err, win32.ErrInsufficientBuffer)

	again := encodeReparse(&Link{Tag: win32.TagMountPoint, Substitute: `\??\` + volumeD[4:], Print: volumeD})
	b.must(b.FsctlSetReparsePoint(ctx, h, again))
	if got := b.MountPaths(volumeD); len(got) != 1 {
		t.Errorf("mount paths %q", got)
	}
	symlink := encodeReparse(&Link{Tag: win32.TagSymlink, Substitute: `\??\C:\t`, Print: `C:\t`})
	b.wantCode(b.FsctlSetReparsePoint(ctx, h, symlink), errReparseTagMismatch)

	header := func(tag uint32, length int) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, tag), make([]byte, length-4)...)
	}
	b.wantCode(b.FsctlDeleteReparsePoint(ctx, h, header(win32.TagMountPoint, 9)), errInvalidReparseData)
	b.wantCode(b.FsctlDeleteReparsePoint(ctx, h, nil), errInvalidReparseData)
	b.wantCode(b.FsctlDeleteReparsePoint(ctx, h, in), errInvalidReparseData)
	b.wantCode(b.FsctlDeleteReparsePoint(ctx, h, header(0, 8)), win32.ErrReparseTagInvalid)
	b.wantCode(b.FsctlDeleteReparsePoint(ctx, h, header(win32.TagSymlink, 8)), errReparseTagMismatch)
	b.must(b.FsctlDeleteReparsePoint(ctx, h, header(win32.TagMountPoint, 8)))
	b.wantCode(b.FsctlDeleteReparsePoint(ctx, h, header(win32.TagMountPoint, 8)), win32.ErrNotAReparsePoint)
	if info := b.info(`C:\d`); info.Attributes != win32.AttrDirectory {
		t.Errorf("what remains: %+v", info)
	}
}

func TestFsctlSetReparsePointCodes(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\d`))
	b.must(b.WriteFile(ctx, `C:\full\f`, []byte("x")))
	b.must(b.WriteFile(ctx, `C:\empty`, nil))
	b.must(os.Mkdir(b.host("e"), 0o755))
	b.must(b.AttachVolume(Volume{ID: volumeE, Folder: b.host("e")}))
	b.must(b.MakeFolder(ctx, volumeE+`d`))
	mount := encodeReparse(&Link{Tag: win32.TagMountPoint, Substitute: `\??\C:\t`})
	symlink := encodeReparse(&Link{Tag: win32.TagSymlink, Substitute: `\??\C:\full\f`})
	for _, test := range []struct {
		path string
		in   []byte
		code uint32
	}{
		{`C:\full`, mount, win32.ErrDirNotEmpty},
		{`C:\full`, symlink, win32.ErrDirNotEmpty},
		{`C:\empty`, mount, win32.ErrDirectory},
		{`C:\full\f`, symlink, win32.ErrNotSupported},
		{`C:\`, mount, win32.ErrAccessDenied},
		{volumeE + `d`, mount, win32.ErrInvalidFunction},
		{volumeE + `d`, symlink, 0},
		{`C:\empty`, symlink, 0},
		{`C:\d`, mount[:10], errInvalidReparseData},
	} {
		if got := code(t, b.FsctlSetReparsePoint(ctx, b.open(test.path), test.in)); got != test.code {
			t.Errorf("%s: code %d, want %d", test.path, got, test.code)
		}
	}
	if got := b.read(`C:\empty`); got != "x" {
		t.Errorf("through the file link: %q", got)
	}
	weak, err := b.CreateFile(ctx, `C:\d`, win32.Open{Access: win32.FileListDir, Share: shareAll})
	b.must(err)
	b.wantCode(b.FsctlSetReparsePoint(ctx, weak, mount), win32.ErrAccessDenied)
	b.must(b.CloseHandle(weak))
}

func TestOtherReparseTags(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	const appExecLink = 0x8000001B
	b.must(b.MakeFolder(ctx, `C:\d`))
	b.must(b.WriteFile(ctx, `C:\f`, []byte("content")))
	in := encodeReparse(&Link{Tag: appExecLink, Data: []byte{1, 2, 3}})
	for path, attributes := range map[string]uint32{`C:\d`: win32.AttrDirectory, `C:\f`: attrArchive} {
		b.must(b.FsctlSetReparsePoint(ctx, b.open(path), in))
		if info := b.info(path); info.ReparseTag != appExecLink || info.Attributes != attributes|win32.AttrReparse {
			t.Errorf("%s: %+v", path, info)
		}
		_, err := b.ReadFile(ctx, path)
		b.wantCode(err, errCantAccessFile)
	}
	_, err := b.CreateFile(ctx, `C:\d\x`, plain)
	b.wantCode(err, errCantAccessFile)
	b.must(b.delete(`C:\d`))
	b.must(b.MakeFolder(ctx, `C:\d`))
	if info := b.info(`C:\d`); info.ReparseTag != 0 {
		t.Errorf("a new folder: %+v", info)
	}
	h := b.open(`C:\f`)
	b.must(b.FsctlDeleteReparsePoint(ctx, h, []byte{0x1B, 0, 0, 0x80, 0, 0, 0, 0}))
	if got := b.read(`C:\f`); got != "content" {
		t.Errorf("content after the tag is gone: %q", got)
	}
}
