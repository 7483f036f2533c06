//go:build !windows

package private

import (
	"errors"
	"os"
)

func openAppend(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Chmod(0o600); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func truncate(path string) error { return os.Truncate(path, 0) }

func restrict(path string) error { return os.Chmod(path, 0o700) }

func create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
}

func mkdir(path string) error { return os.Mkdir(path, 0o700) }
