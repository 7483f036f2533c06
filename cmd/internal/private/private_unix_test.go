//go:build unix

package private_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/cmd/internal/private"
)

// C100: what is made, and a file that was there, is for its owner.
func TestC100_Modes(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "logs")
	if err := private.Mkdir(folder); err != nil {
		t.Fatal(err)
	}
	wide := filepath.Join(folder, "wide")
	if err := os.WriteFile(wide, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(folder, "made")
	for _, path := range []string{wide, made} {
		file, err := private.OpenAppend(path)
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
	}
	program, err := private.Create(filepath.Join(folder, "program"))
	if err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	for path, want := range map[string]os.FileMode{folder: 0o700, wide: 0o600, made: 0o600, program.Name(): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %#o", path, info.Mode(), err, want)
		}
	}
}
