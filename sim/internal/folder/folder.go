// Package folder keeps a program's state in a folder so that a crash at any
// moment leaves the old or the new state, never half of one.
package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

const (
	// temporarySuffix is that of a file that is to replace another.
	temporarySuffix = ".new"
	// mountFolder is in the root of every fresh file system of Linux.
	mountFolder = "lost+found"
)

// ReadJSON reads a file into a value.
func ReadJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// WriteJSON replaces a file by a value, see Write.
func WriteJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	return Write(path, data)
}

// Write replaces a file so that a reader, and a start after a crash, see the old
// content or the new one. One writer at a time.
func Write(path string, data []byte) error {
	temporary := path + temporarySuffix
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// CheckOwn refuses a folder that holds what is not ours: who names a folder by
// mistake keeps it as it was. A folder that is missing, is empty, or has the record
// that ours have is fine, and so is one with nothing but our own names, which a
// start that was broken off leaves behind. An empty record is none.
func CheckOwn(dir, record string, names ...string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	foreign := ""
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), temporarySuffix)
		switch {
		case record != "" && name == record:
			return nil
		case !slices.Contains(names, name) && name != mountFolder && foreign == "":
			foreign = entry.Name()
		}
	}
	if foreign != "" {
		return fmt.Errorf("it holds %q and no state of ours; give a folder that is empty or missing", foreign)
	}
	return nil
}
