package bed

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// The variables with the shipped programs, which test/wine/run has built.
const (
	ProxyVariable    = "CSI_PROXY_EXE"
	ProxyCtlVariable = "CSI_PROXYCTL_EXE"
	DriverVariable   = "CSI_DRIVER_EXE"
)

const (
	// readyTime is generous: under Wine a first start loads many libraries.
	readyTime = time.Minute
	// ReadyText is what a csi-proxy says when every pipe is open.
	ReadyText = "csi-proxy is ready"
	// DriverReadyText is what a csi-driver says when its endpoint is open.
	DriverReadyText = "csi-driver is ready"
	// outputTime bounds the wait for the end of a program's output: Wine starts
	// helpers of its own from within a program, and they inherit it.
	outputTime = 2 * time.Second
)

// Program is a running csi-proxy.exe or csi-driver.exe.
type Program struct {
	PID int
	// Ready is closed when the program has said that it is, Ended when it has ended.
	Ready, Ended chan struct{}

	name      string
	readyText string
	command   *exec.Cmd
	mu        sync.Mutex
	output    bytes.Buffer
}

// Start runs csi-proxy.exe. It is killed at the end of the test if it still runs;
// when the test has failed, its log then has what the program said.
func Start(t testing.TB, args ...string) *Program {
	t.Helper()
	return start(t, &Program{name: "csi-proxy", readyText: ReadyText}, ProxyVariable, args)
}

// StartDriver is Start for csi-driver.exe.
func StartDriver(t testing.TB, args ...string) *Program {
	t.Helper()
	return start(t, &Program{name: "csi-driver", readyText: DriverReadyText}, DriverVariable, args)
}

func start(t testing.TB, p *Program, variable string, args []string) *Program {
	t.Helper()
	p.Ready, p.Ended = make(chan struct{}), make(chan struct{})
	p.command = exec.Command(Environment(t, variable), args...)
	p.command.Stderr, p.command.Stdout = p, p
	p.command.WaitDelay = outputTime
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	p.PID = p.command.Process.Pid
	go func() {
		_ = p.command.Wait()
		close(p.Ended)
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.Ended
		if t.Failed() {
			t.Logf("%s said:\n%s", p.name, p.Text())
		}
	})
	return p
}

// Write collects the output and notes when the program is ready.
func (p *Program) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := strings.Contains(p.output.String(), p.readyText)
	p.output.Write(data)
	if !before && strings.Contains(p.output.String(), p.readyText) {
		close(p.Ready)
	}
	return len(data), nil
}

// Text is what the program has said.
func (p *Program) Text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// ExitCode is that of a program that has ended.
func (p *Program) ExitCode() int { return p.command.ProcessState.ExitCode() }

// WaitReady waits until the program is ready.
func (p *Program) WaitReady(t testing.TB) {
	t.Helper()
	select {
	case <-p.Ready:
	case <-p.Ended:
		t.Fatalf("%s ended before it was ready:\n%s", p.name, p.Text())
	case <-time.After(readyTime):
		t.Fatalf("%s is not ready after %s:\n%s", p.name, readyTime, p.Text())
	}
}
