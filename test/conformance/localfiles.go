package conformance

import (
	"context"
	"os"
	"path/filepath"
)

// LocalFiles are the files of the machine the suite runs on.
type LocalFiles struct{}

var _ Files = LocalFiles{}

// WriteFile implements Files.
func (LocalFiles) WriteFile(_ context.Context, path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// ReadFile implements Files.
func (LocalFiles) ReadFile(_ context.Context, path string) ([]byte, error) { return os.ReadFile(path) }

// ListDir implements Files.
func (LocalFiles) ListDir(_ context.Context, path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// MakeDir implements Files.
func (LocalFiles) MakeDir(_ context.Context, path string) error { return os.MkdirAll(path, 0o755) }

// MakeLink implements Files. On Windows it makes a link to a folder when the
// target is one, or when it does not exist.
func (LocalFiles) MakeLink(_ context.Context, path, target string) error {
	return makeLink(path, target)
}

// RemoveFile implements Files.
func (LocalFiles) RemoveFile(_ context.Context, path string) error { return os.Remove(path) }

// IsFolder reports whether path is certainly a folder, and neither a link nor a
// mount point.
func (LocalFiles) IsFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == os.ModeDir
}
