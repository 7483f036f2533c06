// Package folder keeps a program's state in a folder so that a crash at any
// moment leaves the old or the new state, never half of one.
package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// ErrInUse is a folder that somebody else has locked.
var ErrInUse = errors.New("another process has it open")

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
	temporary := path + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
