package main

import (
	"errors"
	"fmt"
	"io/fs"
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
	l := logShape{maxBytes: 30, maxCount: 1}.at(path, neverFails(t))
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
	var failures []error
	l := logShape{}.at(filepath.Join(folder, "log"), func(err error) { failures = append(failures, err) })
	t.Cleanup(func() { _ = l.Close() })
	for range 2 {
		if n, err := l.Write([]byte("lost\n")); err == nil || n != 0 {
			t.Errorf("%d bytes written to nowhere", n)
		}
	}
	if len(failures) != 1 || !errors.Is(failures[0], fs.ErrNotExist) {
		t.Errorf("of two lost records in a row it was told %v, want one", failures)
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

// Full files are set aside under numbers, and the oldest one goes.
func TestLogFileRotates(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "log")
	l := logShape{maxBytes: 16, maxCount: 3}.at(path, neverFails(t))
	t.Cleanup(func() { _ = l.Close() })
	for number := range 9 {
		if _, err := fmt.Fprintf(l, "record %d\n", number); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Write([]byte("a record that is larger than a file\n")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"log": "a record that is larger than a file\n", "log.1": "record 8\n", "log.2": "record 7\n"}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != len(want) {
		t.Errorf("%d files, %v", len(entries), err)
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != text {
			t.Errorf("%s holds %q, %v, want %q", name, got, err, text)
		}
	}
}

// A file that cannot be set aside starts over, so that the disk does not fill up.
func TestLogFileThatCannotBeRenamedStartsOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	l := logShape{maxBytes: 16, maxCount: 2}.at(path, neverFails(t))
	t.Cleanup(func() { _ = l.Close() })
	if err := os.MkdirAll(filepath.Join(path+".1", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, record := range []string{"a first one\n", "a second one\n"} {
		if _, err := l.Write([]byte(record)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "a second one\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// neverFails is for logs that lose nothing.
func neverFails(t *testing.T) func(error) {
	return func(err error) { t.Errorf("a record was lost: %v", err) }
}
