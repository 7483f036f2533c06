package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// The tests of this file need a host with descriptors and symbolic links of
// its own, and with file names that Windows does not have.

func TestForeignLinks(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.WriteFile(ctx, `C:\t\f`, []byte("c")))
	b.must(b.WriteFile(ctx, volumeD+`f`, []byte("d")))
	for name, text := range map[string]string{
		"abs": b.host("c", "t"), "rel": "t", "up": "../../../t", "volume": b.host("d"), "out": b.host("outside"), "etc": "/etc",
	} {
		b.must(os.Symlink(text, b.host("c", name)))
	}
	for path, want := range map[string]string{`C:\abs\f`: "c", `C:\rel\f`: "c", `C:\up\f`: "c", `C:\volume\f`: "d"} {
		if got := b.read(path); got != want {
			t.Errorf("%s: read %q", path, got)
		}
	}
	for name, want := range map[string]string{"abs": `\??\C:\t`, "rel": "t", "volume": `\??\` + volumeD[4:], "etc": "/etc"} {
		buffer := make([]byte, win32.ReparseBufferMaxBytes)
		n, err := b.FsctlGetReparsePoint(ctx, b.open(`C:\`+name), buffer)
		b.must(err)
		if link, code := decodeReparse(buffer[:n]); code != 0 || link.Substitute != want || link.Tag != win32.TagSymlink {
			t.Errorf("%s: %+v, code %d", name, link, code)
		}
	}
	for _, name := range []string{"out", "etc"} {
		_, err := b.CreateFile(ctx, `C:\`+name+`\passwd`, plain)
		b.wantCode(err, errCantResolve)
		b.wantCode(b.WriteFile(ctx, `C:\`+name+`\canary`, []byte("dead")), errCantResolve)
	}
}

func TestStaleRowsAreDropped(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(b *bed, path string) error{
		"gone":    func(_ *bed, path string) error { return os.Remove(path) },
		"folder":  func(_ *bed, path string) error { return os.Mkdir(path+".new", 0o755) },
		"retaken": func(b *bed, path string) error { return os.Symlink(b.host("outside"), path+".new") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, ctx := newBed(t), context.Background()
			b.must(b.MakeFolder(ctx, `C:\m`))
			b.must(b.SetVolumeMountPoint(ctx, `C:\m\`, volumeD))
			path := b.host("c", "m")
			b.must(swap(b, path))
			if name != "gone" {
				b.must(os.Remove(path))
				b.must(os.Rename(path+".new", path))
			}
			if got := b.MountPaths(volumeD); len(got) != 0 {
				t.Errorf("mount paths %q", got)
			}
			if links := b.Snapshot().Links; len(links) != 0 {
				t.Errorf("rows %+v", links)
			}
			if _, err := b.ReadFile(ctx, `C:\m\canary`); err == nil {
				t.Error("the walk left the volumes")
			}
		})
	}
}

func TestHostNamesThatWindowsForbids(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	for _, name := range []string{`a:b`, `x\y`, "bad\xff"} {
		b.must(os.WriteFile(b.host("c", name), []byte(name), 0o644))
	}
	root := b.open(`C:\`)
	names, err := b.ReadDir(ctx, root)
	if err != nil || len(names) != 3 {
		t.Fatalf("names %q, %v", names, err)
	}
	for _, name := range names {
		h, err := b.OpenAt(ctx, root, name, win32.Open{Access: win32.AccessDelete, Share: shareAll})
		b.must(err)
		b.must(b.Delete(ctx, h))
		b.must(b.CloseHandle(h))
	}
}

func TestC096_HandlesStayWithTheObject(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(b *bed) error{
		"process of the node": func(b *bed) error {
			_, err := b.ForceSwap(context.Background(), `C:\pods\x`, `C:\secret`)
			return err
		},
		"process of the host": func(b *bed) error {
			path := b.host("c", "pods", "x")
			return errors.Join(os.Rename(path, path+".swapped-1"), os.Symlink(b.host("outside"), path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, ctx := newBed(t), context.Background()
			b.must(b.MakeFolder(ctx, `C:\pods\x\sub`))
			b.must(b.WriteFile(ctx, `C:\secret\sub\f`, []byte("secret")))
			held := b.open(`C:\pods\x`)
			b.must(swap(b))
			if info := b.info(`C:\pods\x`); info.ReparseTag != win32.TagSymlink {
				t.Fatalf("not swapped: %+v", info)
			}
			h, err := b.OpenAt(ctx, held, "new", win32.Open{Create: true, Directory: true})
			b.must(err)
			b.must(b.CloseHandle(h))
			b.must(b.CreateSymlink(ctx, held, "link", `C:\secret`, true))
			sub, err := b.OpenAt(ctx, held, "sub", win32.Open{Access: win32.AccessDelete, Share: shareAll})
			b.must(err)
			b.must(b.Delete(ctx, sub))
			b.must(b.CloseHandle(sub))
			if b.read(`C:\secret\sub\f`) != "secret" {
				t.Error("the secret is gone")
			}
			for _, made := range []string{"new", "link"} {
				if _, err := os.Lstat(b.host("c", "pods", "x.swapped-1", made)); err != nil {
					t.Errorf("%s is not in the folder that was open: %v", made, err)
				}
			}
		})
	}
}

func TestC096_FinalPathOfWhatTheHostMovedAway(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\pods\x\sub`))
	held := b.open(`C:\pods\x\sub`)
	b.must(os.Rename(b.host("c", "pods", "x"), b.host("outside", "taken")))
	_, err := b.FinalPath(ctx, held)
	b.wantCode(err, win32.ErrPathNotFound)
	b.wantCode(b.SetVolumeMountPoint(ctx, `C:\pods\x\sub\`, volumeD), win32.ErrPathNotFound)
}

// TestC096_SwapRace lets a process of the host swap a folder for a link out of
// the volume, over and over, while others walk, make, write and delete below it.
func TestC096_SwapRace(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\p\x`))
	b.must(os.Mkdir(b.host("outside", "sub"), 0o755))
	b.must(os.Symlink(b.host("outside"), b.host("evil")))
	var stop atomic.Bool
	var attacker, workers sync.WaitGroup
	attacker.Go(func() {
		x, aside, evil := b.host("c", "p", "x"), b.host("c", "p", "aside"), b.host("evil")
		for !stop.Load() {
			_ = os.Rename(x, aside)
			_ = os.Rename(evil, x)
			_ = os.Rename(x, evil)
			_ = os.Rename(aside, x)
		}
	})
	for worker := range 4 {
		workers.Go(func() {
			for round := range 40 {
				name := fmt.Sprintf(`C:\p\x\%d-%d`, worker, round)
				_ = b.WriteFile(ctx, name, []byte("dead"))
				_ = b.WriteFile(ctx, `C:\p\x\canary`, []byte("dead"))
				_ = b.MakeFolder(ctx, `C:\p\x\sub\deep`)
				_ = b.delete(`C:\p\x\canary`)
				_ = b.delete(`C:\p\x\sub`)
				_ = b.MakeLink(ctx, name+"l", `C:\`, FolderSymlink)
			}
		})
	}
	workers.Wait()
	stop.Store(true)
	attacker.Wait()
	entries, err := os.ReadDir(b.host("outside"))
	if err != nil || len(entries) != 2 {
		t.Errorf("outside the volume: %v, %v", entries, err)
	}
	if entries, err := os.ReadDir(b.host("outside", "sub")); err != nil || len(entries) != 0 {
		t.Errorf("outside the volume: %v, %v", entries, err)
	}
}

func TestNamesThatOnlyLiteralPathsHave(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	for _, name := range []string{"CON", "trail. ", "dot.", "blank "} {
		b.must(b.MakeFolder(ctx, `\\?\C:\`+name))
		b.info(`\\?\C:\` + name)
		_, err := b.CreateFile(ctx, `C:\`+name, plain)
		b.wantCode(err, win32.ErrFileNotFound)
	}
}

func TestDeletedObjectsLiveOnInTheirHandles(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.WriteFile(ctx, `C:\f`, []byte("x")))
	h, other := b.open(`C:\f`), b.open(`C:\f`)
	b.must(b.Delete(ctx, h))
	if info, err := b.Info(ctx, other); err != nil || info.SizeBytes != 1 {
		t.Errorf("info after delete: %+v, %v", info, err)
	}
	buffer := make([]byte, 1)
	if _, err := b.ReadAt(ctx, other, buffer, 0); err != nil || buffer[0] != 'x' {
		t.Errorf("read after delete: %q, %v", buffer, err)
	}
}

func TestC027_DeletingAForeignLink(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(os.Symlink(b.host("outside"), b.host("c", "folder")))
	b.must(os.Symlink(b.host("outside", "canary"), b.host("c", "file")))
	b.must(b.delete(`C:\folder`))
	b.must(b.delete(`C:\file`))
	h := b.open(`C:\`)
	if names, err := b.ReadDir(ctx, h); err != nil || !slices.Equal(names, nil) {
		t.Errorf("names %q, %v", names, err)
	}
}

func TestDriveOverTheWholeHost(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.AttachVolume(Volume{ID: volumeC, Folder: "/", HostsMountPoints: true}))
	base := `C:` + strings.ReplaceAll(b.base, "/", `\`) + `\outside`
	b.must(b.MakeFolder(ctx, base+`\m`))
	defer func() { b.must(os.RemoveAll(b.host("outside", "m"))) }()
	b.must(b.SetVolumeMountPoint(ctx, base+`\m\`, volumeD))
	b.hostLeads([]string{"outside", "m"}, volumeD)
	if got, want := b.MountPaths(volumeD), []string{base + `\m\`}; !slices.Equal(got, want) {
		t.Errorf("mount paths %q, want %q", got, want)
	}
	if got := b.read(`C:\proc\self\root` + base[2:] + `\canary`); got != "alive" {
		t.Errorf("through a host link to the root: %q", got)
	}
	h := b.open(`C:\dev\zero`)
	_, err := b.ReadAt(ctx, h, make([]byte, 1), 0)
	b.wantCode(err, win32.ErrInvalidFunction)
}
