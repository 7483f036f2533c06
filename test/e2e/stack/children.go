package stack

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// NoChildren fails the test when this process has, or ever had, a child process.
// It can be called on a fuzz target's own t.
func NoChildren(t testing.TB) {
	t.Helper()
	if reaped, err := ReapedChildren(); err != nil || reaped {
		t.Errorf("a child process was started and has ended (%v)", err)
	}
}

// NoLivingChildren fails the test when this process has a child process that
// lives, or that nobody has waited for. It sees nothing where there is no /proc.
func NoLivingChildren(t testing.TB) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "no such process") {
			continue // the thread has ended
		}
		if err != nil || len(strings.Fields(string(data))) > 0 {
			t.Errorf("child processes: %q (%v)", data, err)
		}
	}
}
