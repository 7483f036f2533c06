//go:build unix

package filelock_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/csi-windows/csi-windows/internal/filelock"
)

// A child that is being started has a copy of every descriptor for a moment.
func TestLockEndsThoughItsDescriptorWasCopied(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := filelock.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := unix.Dup(int(lock.(interface{ Fd() uintptr }).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(copied) }()
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	again, err := filelock.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}
