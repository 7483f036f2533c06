package standin

import (
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// What a program leaves open is closed when it ends, and nothing of others.
func TestProgramThatEnds(t *testing.T) {
	t.Parallel()
	l := open(t)
	ctx := t.Context()
	folder := win32.Open{Access: win32.FileListDir, Share: shareAll, Directory: true}
	life, first, second, other := l.dial(), l.dial(), l.dial(), l.dial()
	program, err := life.Program(ctx, 0)
	l.ok(err)
	for _, c := range []*Client{first, second} {
		if same, err := c.Program(ctx, program); err != nil || same != program {
			t.Fatalf("program %d became %d, %v", program, same, err)
		}
		root, err := c.CreateFile(ctx, `\\?\C:\`, folder)
		l.ok(err)
		_, err = c.OpenAt(ctx, root, "Windows", folder)
		l.ok(err)
	}
	disk, err := first.CreateDisk(ctx, 1<<30, `C:\scratch.vhdx`)
	l.ok(err)
	_, err = first.AttachDisk(ctx, disk)
	l.ok(err)
	kept, err := other.CreateFile(ctx, `\\?\C:\`, folder)
	l.ok(err)
	l.ok(life.Close())
	for l.server.Stats().Handles > 1 {
		time.Sleep(time.Millisecond)
	}
	l.ok(other.CloseHandle(kept))
	for { // the disk goes after the handles
		disks, err := l.node.Disks(ctx)
		if l.ok(err); len(disks) == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if n, err := l.node.HandleCount(ctx); err != nil || n != 0 {
		t.Errorf("%d handles, %v", n, err)
	}
	if _, err := second.CreateFile(ctx, `\\?\C:\`, folder); err == nil {
		t.Error("a program that has ended opens files")
	}
	if n, err := l.node.HandleCount(ctx); err != nil || n != 0 {
		t.Errorf("%d handles, %v", n, err)
	}
	_, err = other.Program(ctx, program)
	l.code(err, win32.ErrNotFound)
}

func TestProgramsAreApart(t *testing.T) {
	t.Parallel()
	l := open(t)
	a, b := l.dial(), l.dial()
	first, err := a.Program(t.Context(), 0)
	l.ok(err)
	second, err := b.Program(t.Context(), 0)
	l.ok(err)
	if first == second {
		t.Errorf("both are program %d", first)
	}
	_, err = a.Program(t.Context(), second)
	l.code(err, win32.ErrNotFound)
	_, err = a.Program(t.Context(), 0)
	l.code(err, win32.ErrNotFound)
}
