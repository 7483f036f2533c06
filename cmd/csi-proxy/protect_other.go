//go:build !windows

package main

import (
	"errors"
	"io/fs"
	"os"
)

// protectFile makes the file when it is missing, and leaves it to its owner alone.
func protectFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// protectFolder makes the folder when it is missing, and leaves it to its owner
// alone. A folder that others share, such as /tmp, stays as it is.
func protectFolder(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
