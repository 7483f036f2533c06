//go:build unix

package filelock

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes a lock file, which is made when missing. The lock ends with the process,
// however that ends.
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
	return held{file}, nil
}

// held is a lock that is had.
type held struct{ *os.File }

// Close gives the lock back. Closing the file alone would not do while a child process
// that is just being started still has a copy of it.
//
// Source: flock(2), on duplicates of a descriptor.
func (h held) Close() error {
	return errors.Join(unix.Flock(int(h.Fd()), unix.LOCK_UN), h.File.Close())
}
