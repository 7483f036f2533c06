package filelock_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/internal/filelock"
)

// A folder is one holder's at a time, and free when that has ended.
func TestLockHasOneHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	for range 2 {
		lock, err := filelock.Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := filelock.Lock(path); !errors.Is(err, filelock.ErrInUse) {
			t.Errorf("a second lock: %v", err)
		}
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	}
}
