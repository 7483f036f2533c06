//go:build unix

package sim

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockFolder takes a lock that ends with the process, however that ends.
func lockFolder(path string) (io.Closer, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.New("another process has the node open")
		}
		return nil, err
	}
	return file, nil
}
