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
)

const (
	// readyTime is generous: under Wine a first start loads many libraries.
	readyTime = time.Minute
	// ReadyText is what a csi-proxy says when every pipe is open.
	ReadyText = "csi-proxy is ready"
	// outputTime bounds the wait for the end of a program's output: Wine starts
	// helpers of its own from within a program, and they inherit it.
	outputTime = 2 * time.Second
)

// Program is a running csi-proxy.exe.
type Program struct {
	PID int
	// Ready is closed when every pipe is open, Ended when the program has ended.
	Ready, Ended chan struct{}

	command *exec.Cmd
	mu      sync.Mutex
	output  bytes.Buffer
}

// Start runs csi-proxy.exe. It is killed at the end of the test if it still runs;
// when the test has failed, its log then has what the program said.
func Start(t testing.TB, args ...string) *Program {
	t.Helper()
	p := &Program{Ready: make(chan struct{}), Ended: make(chan struct{})}
	p.command = exec.Command(Environment(t, ProxyVariable), args...)
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
			t.Logf("csi-proxy said:\n%s", p.Text())
		}
	})
	return p
}

// Write collects the output and notes when the program is ready.
func (p *Program) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := strings.Contains(p.output.String(), ReadyText)
	p.output.Write(data)
	if !before && strings.Contains(p.output.String(), ReadyText) {
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

// WaitReady waits until every pipe is open.
func (p *Program) WaitReady(t testing.TB) {
	t.Helper()
	select {
	case <-p.Ready:
	case <-p.Ended:
		t.Fatalf("csi-proxy ended before it was ready:\n%s", p.Text())
	case <-time.After(readyTime):
		t.Fatalf("csi-proxy is not ready after %s:\n%s", readyTime, p.Text())
	}
}
