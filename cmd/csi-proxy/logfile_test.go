package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogFileKeepsWhatWasThereAndStartsOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("from before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &logFile{path: path, maxBytes: 30}
	t.Cleanup(func() { _ = l.Close() })
	for _, step := range []struct{ record, want string }{
		{"first\n", "from before\nfirst\n"},
		{"second\n", "from before\nfirst\nsecond\n"},
		{"third\n", "third\n"},
	} {
		if _, err := l.Write([]byte(step.record)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != step.want {
			t.Errorf("%q, %v, want %q", got, err, step.want)
		}
	}
}

// A log that cannot be written is written again once it can be.
func TestLogFileComesBack(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "missing")
	l := &logFile{path: filepath.Join(folder, "log")}
	t.Cleanup(func() { _ = l.Close() })
	if n, err := l.Write([]byte("lost\n")); err == nil || n != 0 {
		t.Errorf("%d bytes written to nowhere", n)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	l.torn = true // as after a disk that filled up amid a record
	if _, err := l.Write([]byte("kept\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(l.path); err != nil || !strings.HasSuffix(string(got), "\nkept\n") {
		t.Errorf("%q, %v", got, err)
	}
}
