package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

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

func TestC096_FinalPathAfterSwap(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\pods\x\sub`))
	held := b.open(`C:\pods\x\sub`)
	moved, err := b.ForceSwap(ctx, `C:\pods\x`, `C:\`)
	b.must(err)
	if path, err := b.FinalPath(ctx, held); path != `\\?\C:\pods\`+moved+`\sub` || err != nil {
		t.Errorf("final path %q, %v", path, err)
	}
	b.must(os.Rename(b.host("c", "pods", moved), b.host("outside", "taken")))
	_, err = b.FinalPath(ctx, held)
	b.wantCode(err, win32.ErrPathNotFound)
	b.wantCode(b.SetVolumeMountPoint(ctx, `C:\pods\`+moved+`\sub\`, volumeD), win32.ErrPathNotFound)
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

func TestParallelUse(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.changed = func() { b.Snapshot() }
	var workers sync.WaitGroup
	for worker := range 6 {
		workers.Go(func() {
			for round := range 10 {
				base := fmt.Sprintf(`C:\w\%d`, (worker+round)%4)
				_ = b.MakeFolder(ctx, base+`\m`)
				_ = b.SetVolumeMountPoint(ctx, base+`\m\`, volumeD)
				_ = b.WriteFile(ctx, base+`\m\f`, []byte("x"))
				_, _ = b.ReadFile(ctx, base+`\m\F`)
				_ = b.MakeLink(ctx, base+`\l`, base+`\m`, FolderSymlink)
				_, _ = b.ForceSwap(ctx, base, `C:\w`)
				b.MountPaths(volumeD)
				_ = b.DeleteVolumeMountPoint(ctx, base+`\m\`)
				_ = b.Rename(ctx, base, base+`r`)
				_ = b.delete(base + `\l`)
				if worker == 0 {
					b.DetachVolume(volumeD)
					_ = b.AttachVolume(Volume{ID: volumeD, Folder: b.d, HostsMountPoints: true})
					b.Refresh(ctx)
				}
			}
		})
	}
	workers.Wait()
}

func TestHandlesAreNotLeaked(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.WriteFile(ctx, `C:\a\b\f`, nil))
	b.must(b.symlink(`C:\a`, "self", `self`, true))
	b.must(b.symlink(`C:\a`, "gone", `C:\gone`, true))
	handles, nodes := b.OpenHandles(), len(b.nodes)
	for range 5 {
		for _, path := range []string{
			`C:\a\b\f`, `C:\a\b\none`, `C:\a\none\x`, `C:\a\b\f\x`, `C:\a\self\x`, `C:\a\gone\x`, `C:\a\b\f:s`, `Q:\x`, volumeE, `\\s\s\x`,
		} {
			for _, open := range []win32.Open{plain, {Directory: true}, {Access: win32.GenericWrite}} {
				if h, err := b.CreateFile(ctx, path, open); err == nil {
					b.must(b.CloseHandle(h))
				}
			}
			_, _ = b.VolumeAt(ctx, path)
			_, _ = b.ForceSwap(ctx, path, ``)
			_ = b.SetVolumeMountPoint(ctx, path+`\`, volumeE)
			_ = b.Rename(ctx, path, path)
		}
	}
	if b.OpenHandles() != handles || len(b.nodes) != nodes {
		t.Errorf("%d handles and %d objects, before %d and %d", b.OpenHandles(), len(b.nodes), handles, nodes)
	}
}
