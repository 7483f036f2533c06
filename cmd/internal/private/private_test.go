package private_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/cmd/internal/private"
)

func TestOpenAppendKeepsWhatWasThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "with a space.log")
	for _, record := range []string{"first\n", "second\n"} {
		file, err := private.OpenAppend(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteString(record)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "first\nsecond\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := private.Truncate(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("records"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := private.Truncate(path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || len(text) != 0 {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// What is created replaces a file; whoever has the old one open keeps the old one.
func TestCreateReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new.exe")
	if err := os.WriteFile(path, []byte("old and longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := private.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString("new")
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "new" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestMkdirTwice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "above", "folder")
	for range 2 {
		if err := private.Mkdir(path); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		t.Errorf("no folder: %v", err)
	}
}

// What cannot be made is named with its path.
func TestMissingFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "missing", "x")
	_, appendErr := private.OpenAppend(path)
	_, createErr := private.Create(path)
	for name, err := range map[string]error{"OpenAppend": appendErr, "Create": createErr} {
		var named *fs.PathError
		if !errors.As(err, &named) || named.Path != path || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := private.Mkdir(filepath.Join(file, "above", "x")); err == nil {
		t.Error("a folder was made below a file")
	}
	_, appendErr = private.OpenAppend("a\x00b")
	_, createErr = private.Create("a\x00b")
	for name, err := range map[string]error{"OpenAppend": appendErr, "Create": createErr, "Mkdir": private.Mkdir("a\x00b")} {
		if err == nil {
			t.Errorf("%s takes a path with a zero byte", name)
		}
	}
}
