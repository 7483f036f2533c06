package durable_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/csi-windows/csi-windows/driver/internal/durable"
)

// Records are for the account of the driver alone (C100), one file each, and what
// was in it before is gone.
func TestC100_RecordsAreForTheirOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "record")
	for _, content := range []string{"first and longer", "second"} {
		if err := durable.Write(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("the record holds %q, %v", got, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// On Windows the access list of the folder holds.
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the record has mode %v", info.Mode())
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
		t.Errorf("beside the record there is %v, %v", names, err)
	}
}
