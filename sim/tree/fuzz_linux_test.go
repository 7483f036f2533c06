package tree

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// fuzzBed is a tree over a volume at C: with a link out of it, and a check
// that nothing beside the volume's folder has changed.
func fuzzBed(t *testing.T) (tree *Tree, check func()) {
	base := t.TempDir()
	volume, outside := filepath.Join(base, "v"), filepath.Join(base, "outside")
	for _, folder := range []string{volume, outside, filepath.Join(volume, "dir")} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.WriteFile(filepath.Join(outside, "canary"), []byte("alive"), 0o644)
	_ = os.Symlink(outside, filepath.Join(volume, "out"))
	_ = os.Symlink("../outside", filepath.Join(volume, "up"))
	tree = New(Config{})
	if err := tree.AttachVolume(Volume{ID: volumeC, Folder: volume, HostsMountPoints: true, ShortNames: true}); err != nil {
		t.Fatal(err)
	}
	tree.SetDrive('C', volumeC)
	return tree, func() {
		if open := tree.OpenHandles(); open != 0 {
			t.Errorf("%d handles left", open)
		}
		tree.Close()
		if len(tree.nodes) != 0 {
			t.Errorf("%d objects left open", len(tree.nodes))
		}
		if data, _ := os.ReadFile(filepath.Join(outside, "canary")); string(data) != "alive" {
			t.Errorf("canary: %q", data)
		}
		for folder, want := range map[string]int{base: 2, outside: 1} {
			if entries, _ := os.ReadDir(folder); len(entries) != want {
				t.Errorf("%s: %v", folder, entries)
			}
		}
	}
}

// abuse makes, opens and deletes what a path names, then writes to it.
func abuse(ctx context.Context, tree *Tree, path string) {
	for _, open := range []win32.Open{
		{Access: win32.AccessDelete, Share: shareAll, Create: true, Directory: true},
		{Access: win32.AccessDelete | win32.FileListDir, Share: shareAll},
	} {
		if h, err := tree.CreateFile(ctx, path, open); err == nil {
			_, _ = tree.FinalPath(ctx, h)
			_, _ = tree.ReadDir(ctx, h)
			_ = tree.Delete(ctx, h)
			_ = tree.CloseHandle(h)
		}
	}
	_ = tree.MakeFolder(ctx, path)
	_ = tree.WriteFile(ctx, path, []byte("dead"))
	_ = tree.SetVolumeMountPoint(ctx, path+`\`, volumeC)
	_, _ = tree.VolumeAt(ctx, path)
}

func FuzzCreateFile(f *testing.F) {
	for _, path := range []string{
		`C:\dir\x`, `C:\out\canary`, `C:\up\canary`, `C:\dir\..\..\outside\canary`, `\\?\C:\..\outside\canary`, `C:/dir/../../x`,
		volumeC + `out\canary`, `\\?\UNC\a\b\c`, `\\.\C:\x`, "C:\\\uf02e\uf02e\\outside", "C:\\\uf02f\uf02foutside", `C:\DIR~1\x`, `C:\.csi-windows-link`,
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		tree, check := fuzzBed(t)
		defer check()
		abuse(t.Context(), tree, path)
	})
}

func FuzzOpenAt(f *testing.F) {
	for _, name := range []string{"dir", "out", "..", ".", "a/b", `a\b`, "../outside", "\uf02e\uf02e", "\uf02f", "x\x00y", "DIR~1", ".csi-windows-link"} {
		f.Add(name, `C:\out`)
	}
	f.Add("link", `..\outside\canary`)
	f.Add("link", `\\?\GLOBALROOT\x`)
	f.Add("link", "C:\\\uf02e\uf02e\\outside")
	f.Fuzz(func(t *testing.T, name, target string) {
		tree, check := fuzzBed(t)
		defer check()
		ctx := t.Context()
		root, err := tree.CreateFile(ctx, `\\?\C:\`, win32.Open{Access: win32.FileListDir, Share: shareAll})
		if err != nil {
			t.Fatal(err)
		}
		_ = tree.CreateSymlink(ctx, root, name, target, true)
		abuse(ctx, tree, `\\?\C:\`+name+`\canary`)
		for _, open := range []win32.Open{{Create: true}, {Access: win32.AccessDelete, Share: shareAll}} {
			if h, err := tree.OpenAt(ctx, root, name, open); err == nil {
				_ = tree.Delete(ctx, h)
				_ = tree.CloseHandle(h)
			}
		}
		_ = tree.CloseHandle(root)
	})
}
