package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	proxyName      = "csi-proxy.exe"
	ctlName        = "csi-proxyctl.exe"
	driverName     = "csi-driver.exe"
	profileSuffix  = ".out"
	countersSuffix = ".counters"
	programsSuffix = ".programs"
)

//go:embed testdata/counters.go
var countersText string

// lane is one way of running Windows binaries under Wine.
type lane struct {
	name     string // as test/wine/run knows it
	packages string // the file with its packages
	stands   string // what its tests stand on
	// without are packages that take long and execute nothing that others do not;
	// make wine runs them.
	without []string
}

func lanes() []lane {
	return []lane{
		{"plain", "test/wine/packages", "Wine", []string{
			"./client", "./cmd/csi-proxyctl", "./test/wine/conformance", "./wire",
		}},
		{"lab", "test/wine/packages-lab", "stand-ins", []string{"./test/wine/conformance/workflow"}},
	}
}

// runner builds what is measured and runs the lanes.
type runner struct {
	top string
	out string
	log io.Writer
}

// run runs every lane, or only one. What an earlier run of it left is removed first.
// Tests that failed are an error; what the others executed is there all the same.
func (r *runner) run(ctx context.Context, only string) error {
	if err := os.RemoveAll(r.counters()); err != nil {
		return err
	}
	if err := os.MkdirAll(r.counters(), 0o755); err != nil {
		return err
	}
	if err := r.build(ctx); err != nil {
		return err
	}
	services := filepath.Join(r.top, "test/wine/verify/services")
	if err := r.command(ctx, nil, services, r.counters()); err != nil {
		return err
	}
	err := r.lanes(ctx, only)
	// The next run of the lanes finds the prefix as it was, also after an interruption.
	return errors.Join(err, r.command(context.WithoutCancel(ctx), nil, services))
}

func (r *runner) lanes(ctx context.Context, only string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var failures error
	for _, l := range lanes() {
		if only != "" && only != l.name {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.out, l.name)); err != nil {
			return err
		}
		packages, err := packagesOf(filepath.Join(r.top, l.packages))
		if err != nil {
			return err
		}
		packages = slices.DeleteFunc(packages, func(p string) bool { return slices.Contains(l.without, p) })
		through := fmt.Sprintf("'%s' exec -top '%s' -out '%s' -lane %s", self, r.top, r.out, l.name)
		args := append([]string{l.name, "-cover", "-covermode=atomic", "-coverpkg=" + module + "/...", "-vet=off", "-exec", through}, packages...)
		start := time.Now()
		if err := r.command(ctx, nil, filepath.Join(r.top, "test/wine/run"), args...); err != nil {
			failures = errors.Join(failures, fmt.Errorf("the %s lane: %w", l.name, err))
		}
		fmt.Fprintf(r.log, "the %s lane took %s\n", l.name, time.Since(start).Round(time.Second))
	}
	return failures
}

// build makes the programs with counters, and with the file that keeps these on
// disk (testdata/counters.go).
func (r *runner) build(ctx context.Context) error {
	source := filepath.Join(r.out, "counters.txt") // no Go file, or ./... would have it
	if err := os.WriteFile(source, []byte(countersText), 0o644); err != nil {
		return err
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	added := filepath.Join(strings.TrimSpace(string(root)), "src/runtime/coverage/counters.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{added: source}})
	if err != nil {
		return err
	}
	list := filepath.Join(r.out, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		return err
	}
	return r.command(ctx, []string{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"}, "go", "build",
		"-cover", "-covermode=atomic", "-coverpkg="+module+"/...", "-overlay", list, "-o", r.out+"/", "./cmd/csi-proxy", "./cmd/csi-proxyctl", "./cmd/csi-driver")
}

// counters is the folder that measured programs write to.
func (r *runner) counters() string { return filepath.Join(r.out, "counters") }

// packagesOf reads a list of packages.
func packagesOf(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var packages []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			packages = append(packages, line)
		}
	}
	return packages, nil
}

func (r *runner) command(ctx context.Context, env []string, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = r.top, append(os.Environ(), env...)
	command.Stdout, command.Stderr = r.log, r.log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}

// testRun is the profile of one test in one lane.
type testRun struct {
	lane, folder, name string
	profile            profile
}

// readRuns reads what the lanes have left.
func readRuns(out string) ([]*testRun, error) {
	var all []*testRun
	for _, l := range lanes() {
		byTest := map[string]*testRun{}
		top := filepath.Join(out, l.name)
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, profileSuffix) {
				return err
			}
			base := strings.TrimSuffix(strings.TrimSuffix(path, profileSuffix), programsSuffix)
			folder, err := filepath.Rel(top, filepath.Dir(base))
			if err != nil {
				return err
			}
			p, err := readProfile(path)
			if err != nil {
				return err
			}
			run := byTest[base]
			if run == nil {
				run = &testRun{lane: l.stands, folder: filepath.ToSlash(folder), name: filepath.Base(base), profile: profile{}}
				byTest[base], all = run, append(all, run)
			}
			run.profile.add(p)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no profiles below %s", out)
	}
	return all, nil
}
