package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A program that still runs is found by where it lies, whatever it was started as.
func TestRunningProgramsAreFound(t *testing.T) {
	t.Parallel()
	folder := windowsPath(t.TempDir())
	if got := runs(folder); got != "" {
		t.Fatalf("before: %q", got)
	}
	command := exec.CommandContext(t.Context(), "sleep", "300")
	command.Args[0] = folder + `\program.exe`
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if got := runs(folder); got != folder+`\program.exe` {
		t.Errorf("while it runs: %q", got)
	}
	if got := runs(folder + "x"); got != "" {
		t.Errorf("in another folder: %q", got)
	}
	_ = command.Process.Kill()
	_ = command.Wait()
	if err := waitGone(t.Context(), folder); err != nil {
		t.Error(err)
	}
}

// What programs have written is moved aside, so that the next test starts with nothing.
func TestCountersAreKeptByTest(t *testing.T) {
	t.Parallel()
	e := &execution{out: t.TempDir()}
	to := filepath.Join(e.out, "TestX"+countersSuffix)
	if err := os.Mkdir(e.counters(), 0o755); err != nil {
		t.Fatal(err)
	}
	if kept, err := e.keepCounters(to); err != nil || kept {
		t.Fatal(kept, err)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("a folder was kept for nothing")
	}
	if err := os.WriteFile(filepath.Join(e.counters(), "covcounters"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if kept, err := e.keepCounters(to); err != nil || !kept {
		t.Fatal(kept, err)
	}
	kept, err := os.ReadDir(to)
	if err != nil || len(kept) != 1 {
		t.Errorf("kept %v, %v", kept, err)
	}
	if left, err := os.ReadDir(e.counters()); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// The lists of the lanes name packages that are there.
func TestPackagesOfLanes(t *testing.T) {
	t.Parallel()
	top := filepath.Join("..", "..", "..")
	for _, l := range lanes() {
		packages, err := packagesOf(filepath.Join(top, l.packages))
		if err != nil || len(packages) == 0 {
			t.Fatalf("%s: %v, %v", l.name, packages, err)
		}
		for _, p := range packages {
			if info, err := os.Stat(filepath.Join(top, p)); err != nil || !info.IsDir() {
				t.Errorf("%s: %s is no package: %v", l.name, p, err)
			}
		}
		for _, p := range l.without {
			if !slices.Contains(packages, p) {
				t.Errorf("%s: %s is left out, and no package of the lane", l.name, p)
			}
		}
	}
}

func TestWrapped(t *testing.T) {
	t.Parallel()
	if got := wrapped([]string{"A", "B"}); got != "`A`, `B`." {
		t.Errorf("wrapped = %s", got)
	}
	long := make([]string, 60)
	for i := range long {
		long[i] = "STRUCTURE"
	}
	for _, line := range strings.Split(wrapped(long), "\n") {
		if len(line) > 119 {
			t.Errorf("a line of %d characters", len(line))
		}
	}
}
