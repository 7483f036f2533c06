//go:build unix

package folder

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the lock file of a folder. The lock ends with the process, however
// that ends. ErrInUse when another process, or another Lock of this one, has it.
func Lock(path string) (io.Closer, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrInUse
		}
		return nil, err
	}
	return file, nil
}
