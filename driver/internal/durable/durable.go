// Package durable keeps a driver's records so that a crash of the process or of the
// machine leaves the old or the new state, never half of one.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces a file. It returns when the new content is on the medium. One
// writer at a time.
func Write(path string, data []byte) (err error) {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}
