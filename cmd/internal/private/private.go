// Package private makes files and folders that ordinary users of the machine may
// neither read nor change: on Windows they are for SYSTEM and Administrators, on
// other systems for their owner.
package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// OpenAppend opens a file for adding to its end, and makes it when it is missing.
// A file that was there is taken away from everybody else. On Windows the path of
// a link is refused: whoever may make files beside a log must not choose what it is
// written into.
func OpenAppend(path string) (*os.File, error) { return openAppend(path) }

// Truncate empties a file that OpenAppend has made. It refuses what OpenAppend does: by
// now the path may lead elsewhere.
func Truncate(path string) error { return truncate(path) }

// Restrict takes a file that is there away from everybody else. It may be running.
func Restrict(path string) error { return restrict(path) }

// Create makes a file anew for writing, in place of one that may be there.
func Create(path string) (*os.File, error) {
	// What is there may be open elsewhere or have other names; it is not written to.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return create(path)
}

// Mkdir makes a folder when it is missing, and those above it. A folder that was
// there keeps its rights, since others may use it too.
func Mkdir(path string) error {
	// Windows refuses to make the top of a drive, instead of saying that it is there.
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	err := mkdir(path)
	switch above := filepath.Dir(path); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && above != path:
		if aboveErr := Mkdir(above); aboveErr != nil {
			return aboveErr
		}
		if err = mkdir(path); errors.Is(err, fs.ErrExist) {
			return nil
		}
	}
	return err
}
