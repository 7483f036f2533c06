package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stopTime is how long a program may take to stop when it is asked to, on a machine
// with much else to do.
const stopTime = time.Minute

// shownLines is how much of a log a failed test shows.
const shownLines = 120

// logsVariable names a folder that gets the logs of failed tests, whole.
const logsVariable = "CSI_CLUSTER_LOGS"

// Process is a program that runs beside a test.
type Process struct {
	name    string
	t       testing.TB
	command *exec.Cmd
	logPath string
	ended   chan struct{}
	failure error // of the end; read after ended
	once    sync.Once
}

// processOptions say how a program is run.
type processOptions struct {
	name, program string
	args          []string
	env           []string
	// isKilled is set for programs whose orderly end is of no interest.
	isKilled bool
	// attributes are those of the new process; nil for the usual ones.
	attributes *syscall.SysProcAttr
	stdin      io.Reader
	stdout     io.Writer // nil for the log
}

// Start starts a program with its log below the cluster's folder. It is stopped at
// the end of the test, and must then end cleanly.
func (c *Cluster) Start(name, program string, args ...string) *Process {
	c.t.Helper()
	return c.start(processOptions{name: name, program: program, args: args})
}

func (c *Cluster) start(o processOptions) *Process {
	c.t.Helper()
	p := &Process{name: o.name, t: c.t, logPath: c.newLog(o.name), ended: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	p.command = exec.Command(o.program, o.args...)
	p.command.Stdin, p.command.Stdout, p.command.Stderr = o.stdin, log, log
	if o.stdout != nil {
		p.command.Stdout = o.stdout
	}
	// An administrator's KUBECONFIG must not become that of a program under test.
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.Dir, "TMPDIR=" + os.TempDir()}, o.env...)
	p.command.SysProcAttr = o.attributes
	if p.command.SysProcAttr == nil {
		p.command.SysProcAttr = &syscall.SysProcAttr{}
	}
	// Programs of a test that was killed end as well.
	p.command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	err = p.command.Start()
	_ = log.Close()
	if err != nil {
		c.t.Fatal(err)
	}
	go func() {
		p.failure = p.command.Wait()
		close(p.ended)
	}()
	c.t.Cleanup(func() { p.finish(o.isKilled) })
	return p
}

// newLog is the path of a log that is not there yet: programs start again and again.
func (c *Cluster) newLog(name string) string {
	c.logs.mu.Lock()
	defer c.logs.mu.Unlock()
	c.logs.count[name]++
	if count := c.logs.count[name]; count > 1 {
		name = fmt.Sprintf("%s-%d", name, count)
	}
	return filepath.Join(c.Dir, "logs", name+".log")
}

// finish ends the process with its test.
func (p *Process) finish(kill bool) {
	if kill {
		p.Kill()
	} else if err := p.Stop(); err != nil {
		p.t.Errorf("%s: %v", p.name, err)
	}
	if p.t.Failed() {
		p.once.Do(p.show)
	}
}

// show prints the end of the log.
func (p *Process) show() {
	data, err := os.ReadFile(p.logPath)
	if err != nil {
		p.t.Log(err)
		return
	}
	if folder := os.Getenv(logsVariable); folder != "" {
		folder = filepath.Join(folder, strings.ReplaceAll(p.t.Name(), "/", "_"))
		err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, filepath.Base(p.logPath)), data, 0o600))
		if err != nil {
			p.t.Log(err)
		}
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	lines = lines[max(0, len(lines)-shownLines):]
	p.t.Logf("%s:\n%s", filepath.Base(p.logPath), bytes.Join(lines, []byte("\n")))
}

// ID is the number of the process.
func (p *Process) ID() int { return p.command.Process.Pid }

// Log is what the program has written so far.
func (p *Process) Log() string {
	data, err := os.ReadFile(p.logPath)
	if err != nil {
		p.t.Error(err)
	}
	return string(data)
}

// Ended reports whether the program has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Stop asks the program to stop and waits for a clean end. A program that has ended
// already is no error.
func (p *Process) Stop() error {
	if p.Ended() {
		return nil
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return p.failure
	case <-time.After(stopTime):
		p.Kill()
		return errors.New("did not stop in time")
	}
}

// Kill ends the program at once, as a crash does.
func (p *Process) Kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// Pause stops the program where it is, as a machine without time for it does.
func (p *Process) Pause() error { return p.command.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused program go on.
func (p *Process) Resume() error { return p.command.Process.Signal(syscall.SIGCONT) }
