package tree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

const (
	volumeC = `\\?\Volume{aaaaaaaa-0000-0000-0000-00000000000c}\`
	volumeD = `\\?\Volume{aaaaaaaa-0000-0000-0000-00000000000d}\`
	volumeE = `\\?\Volume{aaaaaaaa-0000-0000-0000-00000000000e}\`
)

// bed is a tree with volume C at C:, volume D without letter, and a canary
// folder beside them that no test may touch.
type bed struct {
	*Tree
	t          *testing.T
	base, c, d string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{Tree: New(Config{}), t: t, base: base, c: filepath.Join(base, "c"), d: filepath.Join(base, "d")}
	for _, folder := range []string{b.c, b.d, filepath.Join(base, "outside")} {
		b.must(os.Mkdir(folder, 0o755))
	}
	b.must(os.WriteFile(filepath.Join(base, "outside", "canary"), []byte("alive"), 0o644))
	b.must(b.AttachVolume(Volume{ID: volumeC, Folder: b.c, Serial: 0xC, HostsMountPoints: true, ShortNames: true}))
	b.must(b.AttachVolume(Volume{ID: volumeD, Folder: b.d, Serial: 0xD, HostsMountPoints: true, ShortNames: true}))
	b.SetDrive('c', volumeC)
	t.Cleanup(func() {
		if open := b.OpenHandles(); open != 0 {
			t.Errorf("%d handles left open", open)
		}
		b.Close()
		if len(b.nodes) != 0 {
			t.Errorf("%d host objects left open", len(b.nodes))
		}
		if data, err := os.ReadFile(filepath.Join(base, "outside", "canary")); string(data) != "alive" {
			t.Errorf("canary: %q, %v", data, err)
		}
	})
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// code is the system error number of err, 0 for nil.
func code(t *testing.T, err error) uint32 {
	t.Helper()
	if err == nil {
		return 0
	}
	var e *win32.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *win32.Error", err)
	}
	return e.Code
}

func (b *bed) wantCode(err error, want uint32) {
	b.t.Helper()
	if got := code(b.t, err); got != want {
		b.t.Errorf("error %d (%v), want %d", got, err, want)
	}
}

// open opens a path for everything, sharing everything.
func (b *bed) open(path string) win32.Handle {
	b.t.Helper()
	h, err := b.CreateFile(b.t.Context(), path, win32.Open{
		Access: win32.GenericRead | win32.AccessDelete | win32.FileWriteAttr, Share: shareAll,
	})
	b.must(err)
	b.t.Cleanup(func() { _ = b.CloseHandle(h) })
	return h
}

func (b *bed) info(path string) win32.FileInfo {
	b.t.Helper()
	h := b.open(path)
	defer func() { b.must(b.CloseHandle(h)) }()
	info, err := b.Info(b.t.Context(), h)
	b.must(err)
	return info
}

func (b *bed) read(path string) string {
	b.t.Helper()
	data, err := b.ReadFile(b.t.Context(), path)
	b.must(err)
	return string(data)
}

func (b *bed) delete(path string) error {
	b.t.Helper()
	h, err := b.CreateFile(b.t.Context(), path, win32.Open{Access: win32.AccessDelete, Share: shareAll})
	if err != nil {
		return err
	}
	defer func() { b.must(b.CloseHandle(h)) }()
	return b.Delete(b.t.Context(), h)
}

// host is the host path of a path below the base.
func (b *bed) host(names ...string) string {
	return filepath.Join(append([]string{b.base}, names...)...)
}

// hostLeads checks that what a process of the host writes through a link is in
// a folder of the node, where the host has links.
func (b *bed) hostLeads(link []string, folder string) {
	b.t.Helper()
	if !hostLinks {
		return
	}
	b.must(os.WriteFile(filepath.Join(b.host(link...), "by-host"), []byte("kubelet"), 0o644))
	if got := b.read(folder + `by-host`); got != "kubelet" {
		b.t.Errorf("%s has %q", folder, got)
	}
	b.must(b.delete(folder + `by-host`))
}

func TestMountedFolderIsTheVolume(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\mnt\v`))
	b.must(b.SetVolumeMountPoint(ctx, `C:\MNT\v\`, volumeD))
	b.must(b.WriteFile(ctx, `C:\mnt\V\a\f.txt`, []byte("x")))
	if data, err := os.ReadFile(filepath.Join(b.d, "a", "f.txt")); string(data) != "x" {
		t.Fatalf("on the volume: %q, %v", data, err)
	}
	names, err := b.VolumePathNames(ctx, volumeD)
	if want := []string{`C:\mnt\v\`}; err != nil || !slices.Equal(names, want) {
		t.Fatalf("path names %q, %v, want %q", names, err, want)
	}
	if got, want := b.info(`\\?\`+volumeD[4:]+`a\f.txt`), b.info(`C:\mnt\v\a\F.TXT`); got != want {
		t.Fatalf("identities differ: %+v, %+v", got, want)
	}
	if path, err := b.FinalPath(ctx, b.open(volumeD+`A`)); path != `\\?\C:\mnt\v\a` {
		t.Fatalf("final path %q, %v", path, err)
	}
	b.must(b.DeleteVolumeMountPoint(ctx, `C:\mnt\v\`))
	if info := b.info(`C:\mnt\v`); info.Attributes != win32.AttrDirectory {
		t.Fatalf("after unmount: %+v", info)
	}
	if got := b.MountPaths(volumeD); len(got) != 0 {
		t.Fatalf("mount paths after unmount: %q", got)
	}
}
