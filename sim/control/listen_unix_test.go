//go:build unix

package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListenLeavesForeignFilesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, folder, link := filepath.Join(dir, "file"), filepath.Join(dir, "folder"), filepath.Join(dir, "link")
	for _, err := range []error{os.WriteFile(file, []byte("kept"), 0o600), os.Mkdir(folder, 0o700), os.Symlink(file, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{file, folder, link} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want one that names it", path, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was replaced: %v", path, err)
		}
	}
}

// Whoever reaches the socket rules the node.
func TestSocketIsForItsOwner(t *testing.T) {
	t.Parallel()
	address := filepath.Join(t.TempDir(), "c.sock")
	l, err := Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(address); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
