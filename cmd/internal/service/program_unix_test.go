//go:build unix

package service_test

import (
	"os"
	"path/filepath"
	"testing"
)

// C100: the same program that somebody has put at its place, for everybody to change, is
// taken away from everybody.
func TestC100_ProgramThatWasThere(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1")
	path := l.definition().Program
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("good 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	l.installed()
	l.wantPlace("good 1")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its mode is %v, %v", info, err)
	}
}
