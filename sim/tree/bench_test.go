package tree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// BenchmarkOpenInfoClose is the step of which every walk of the agent is made.
func BenchmarkOpenInfoClose(b *testing.B) {
	ctx, folder := b.Context(), b.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "var", "lib"), 0o755); err != nil {
		b.Fatal(err)
	}
	tree := New(Config{})
	defer tree.Close()
	if err := tree.AttachVolume(Volume{ID: volumeC, Folder: folder, HostsMountPoints: true, ShortNames: true}); err != nil {
		b.Fatal(err)
	}
	parent, err := tree.CreateFile(ctx, volumeC+`var`, win32.Open{Access: win32.FileListDir, Share: shareAll})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		h, err := tree.OpenAt(ctx, parent, "lib", win32.Open{Access: win32.FileListDir, Share: shareAll})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tree.Info(ctx, h); err != nil {
			b.Fatal(err)
		}
		if err := tree.CloseHandle(h); err != nil {
			b.Fatal(err)
		}
	}
}
