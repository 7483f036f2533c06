package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// manyTests is the number above which a package's tests run all at once first.
	manyTests = 16
	// allTests stands for all tests of a package in place of a name.
	allTests = "all"
	// testTime bounds one test.
	testTime = 3 * time.Minute
	// goneTime is how long programs that a test started may take to end after it.
	goneTime = 15 * time.Second
)

// execution runs the tests of one test binary one by one, each in a process of its
// own, so that each has a profile of its own. It takes the place of the program
// that go test hands test binaries to.
type execution struct {
	top    string // of the repository
	out    string // where profiles go
	lane   string
	binary string
	folder string // of the package, from the top
	log    io.Writer
}

// execute is verify exec: flags, the test binary, and what go test passes to that.
func execute(ctx context.Context, args []string, out io.Writer) error {
	var e execution
	flags := flag.NewFlagSet("verify exec", flag.ContinueOnError)
	flags.StringVar(&e.top, "top", "", "the top `folder` of the repository")
	flags.StringVar(&e.out, "out", "", "the `folder` of the profiles")
	flags.StringVar(&e.lane, "lane", "", "the lane's `name`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return fmt.Errorf("verify exec: no test binary")
	}
	here, err := os.Getwd() // go test runs a binary in the folder of its package
	if err != nil {
		return err
	}
	folder, err := filepath.Rel(e.top, here)
	if err != nil {
		return err
	}
	e.binary, e.folder, e.log = flags.Arg(0), filepath.ToSlash(folder), out
	names, err := e.list(ctx)
	if err != nil {
		return err
	}
	failed := 0
	try := func(name string) profile {
		p, err := e.one(ctx, name)
		if err != nil {
			fmt.Fprintf(out, "--- FAIL: %s in a process of its own, %s lane: %v\n", name, e.lane, err)
			failed++
		}
		return p
	}
	if len(names) <= manyTests {
		for _, name := range names {
			try(name)
		}
	} else if err := e.many(names, try); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tests of %s failed", failed, len(names), folder)
	}
	return nil
}

// many runs all tests in one process first. After that single ones are only needed
// to name a test for each function; those of another package of the product are
// named by its own tests.
func (e *execution) many(names []string, try func(name string) profile) error {
	all, _, err := functions(e.top)
	if err != nil {
		return err
	}
	results, _ := evaluate(all, nil, nil)
	byFile := resultsByFile(results)
	unnamed := executedBy(try(allTests), byFile)
	for r := range unnamed {
		if isProduct(module+"/"+e.folder+"/") && r.folder() != e.folder {
			delete(unnamed, r)
		}
	}
	for _, name := range names {
		if len(unnamed) == 0 {
			return nil
		}
		for r := range executedBy(try(name), byFile) {
			delete(unnamed, r)
		}
	}
	return nil
}

// gowine is a command that runs a Windows test binary under Wine. Programs it
// starts leave their counters in counters.
func (e *execution) gowine(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(e.top, "test/wine/gowine"), append([]string{e.binary}, args...)...)
	command.Env = append(os.Environ(),
		"GOCOVERDIR="+windowsPath(e.counters()),
		"CSI_PROXY_EXE="+windowsPath(filepath.Join(e.out, proxyName)),
		"CSI_PROXYCTL_EXE="+windowsPath(filepath.Join(e.out, ctlName)),
		"CSI_DRIVER_EXE="+windowsPath(filepath.Join(e.out, driverName)))
	command.WaitDelay = 5 * time.Second
	return command
}

// counters is the folder that instrumented programs write to, emptied after every test.
func (e *execution) counters() string { return filepath.Join(e.out, "counters") }

// windowsPath is a path of this machine as programs under Wine see it.
func windowsPath(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) }

// list asks a test binary for its tests. Benchmarks prove nothing.
func (e *execution) list(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	if err := os.MkdirAll(e.counters(), 0o755); err != nil {
		return nil, err
	}
	output, err := e.gowine(ctx, "-test.list=^(Test|Fuzz|Example)").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests: %w", err)
	}
	names := strings.Fields(string(output))
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no tests", e.folder)
	}
	slices.Sort(names)
	return names, nil
}

// one runs one test, or all of them, and keeps the profile and the counters of
// programs that were started.
func (e *execution) one(ctx context.Context, name string) (profile, error) {
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	base := filepath.Join(e.out, e.lane, filepath.FromSlash(e.folder), name)
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return nil, err
	}
	args := []string{"-test.short", "-test.timeout=" + testTime.String(), "-test.coverprofile=" + base + profileSuffix}
	if name != allTests {
		args = append(args, "-test.run=^"+name+"$")
	}
	output, err := e.gowine(ctx, args...).CombinedOutput()
	if err != nil {
		fmt.Fprintf(e.log, "%s\n", output)
		return nil, err
	}
	if strings.Contains(string(output), "no tests to run") {
		return nil, fmt.Errorf("it was not run")
	}
	if err := waitGone(ctx, windowsPath(e.out)); err != nil {
		return nil, err
	}
	p, err := readProfile(base + profileSuffix)
	if err != nil {
		return nil, err
	}
	programs, err := e.programs(ctx, base)
	p.add(programs)
	return p, err
}

// programs makes a profile of the counters that programs have written during a test;
// it is empty when none has.
func (e *execution) programs(ctx context.Context, base string) (profile, error) {
	if kept, err := e.keepCounters(base + countersSuffix); err != nil || !kept {
		return nil, err
	}
	to := base + programsSuffix + profileSuffix
	command := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i="+base+countersSuffix, "-o="+to)
	// The lane builds for Windows; this tool is one of this machine.
	command.Env = append(os.Environ(), "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go tool covdata: %w\n%s", err, output)
	}
	return readProfile(to)
}

// keepCounters moves what programs have written out of the way of the next test.
func (e *execution) keepCounters(to string) (kept bool, err error) {
	written, err := os.ReadDir(e.counters())
	if err != nil || len(written) == 0 {
		return false, err
	}
	if err := os.Rename(e.counters(), to); err != nil {
		return false, err
	}
	return true, os.Mkdir(e.counters(), 0o755)
}

// waitGone waits until no program below a folder runs: a service writes its
// counters after the service manager has been told that it stopped.
func waitGone(ctx context.Context, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		running := runs(folder)
		if running == "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s still runs", running)
		}
	}
}

// runs returns the command line of a process that is a program below a folder.
func runs(folder string) string {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return ""
	}
	for _, line := range lines {
		text, err := os.ReadFile(line)
		if err != nil {
			continue // it has ended
		}
		first, _, _ := strings.Cut(string(text), "\x00")
		if strings.HasPrefix(strings.Trim(first, `"`), folder+`\`) {
			return first
		}
	}
	return ""
}
