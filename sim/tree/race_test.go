package tree

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

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
