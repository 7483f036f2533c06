package csikit

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/internal/endpoint"
)

// listenAt opens a socket and closes it at the end of the test.
func listenAt(t *testing.T, path string) (net.Listener, error) {
	t.Helper()
	at, err := endpoint.Parse("unix:"+path, runtime.GOOS)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := listen(t.Context(), at)
	if err == nil {
		t.Cleanup(func() { _ = listener.Close() })
	}
	return listener, err
}

// socketDir is a folder with a short path, as sockets need.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kit")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestC072_WhatIsNoSocketIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	file, folder := filepath.Join(dir, "file"), filepath.Join(dir, "folder")
	if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, folder} {
		if _, err := listenAt(t, path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "no socket") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "data" {
		t.Errorf("the file holds %q, %v", content, err)
	}
	if _, err := listenAt(t, filepath.Join(dir, "missing", "csi.sock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is missing: %v", err)
	}
	if _, err := listenAt(t, filepath.Join(file, "csi.sock")); err == nil {
		t.Error("a file was taken for the folder")
	}
}

// On Windows a socket may look like an empty file; elsewhere it never does.
func TestC072_WhatMayBeASocket(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode   fs.FileMode
		size   int64
		system string
		want   bool
	}{
		{fs.ModeSocket, 0, "linux", true},
		{fs.ModeSocket, 0, "windows", true},
		{0o644, 0, "windows", true},
		{fs.ModeIrregular, 0, "windows", true},
		{0o644, 0, "linux", false},
		{0o644, 1, "windows", false},
		{fs.ModeIrregular, 1, "windows", false},
		{fs.ModeDir, 0, "windows", false},
		{fs.ModeSymlink, 0, "windows", false},
		{fs.ModeSymlink, 0, "linux", false},
		{fs.ModeNamedPipe, 0, "linux", false},
	} {
		if got := mayBeSocket(c.mode, c.size, c.system); got != c.want {
			t.Errorf("%s of %d bytes on %s: %t", c.mode, c.size, c.system, got)
		}
	}
}
