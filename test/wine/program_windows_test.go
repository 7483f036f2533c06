package wine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// readyTime is generous: under Wine a first start loads many libraries.
	readyTime = 30 * time.Second
	quickTime = 5 * time.Second
	// outputTime bounds the wait for the end of a program's output: Wine starts
	// helpers of its own from within a program, and they inherit it.
	outputTime = 2 * time.Second
	// endTime is for programs that wait for a service in their turn.
	endTime   = 2 * readyTime
	readyText = "csi-proxy is ready"
)

// exe returns the path of csi-proxy.exe, which the lane's script has built.
func exe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("CSI_PROXY_EXE")
	if path == "" {
		t.Fatal("CSI_PROXY_EXE is not set; run test/wine/run")
	}
	return path
}

// simFlags make csi-proxy serve a simulated node of its own.
func simFlags(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"-host=sim", "-sim-dir=" + t.TempDir()}, more...)
}

// program is a running csi-proxy.
type program struct {
	command *exec.Cmd
	ready   chan struct{}
	ended   chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// start runs csi-proxy.exe. It is killed at the end of the test if it still runs.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{command: exec.Command(exe(t), args...), ready: make(chan struct{}), ended: make(chan struct{})}
	p.command.Stderr, p.command.Stdout = p, p
	p.command.WaitDelay = outputTime
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.ended
	})
	return p
}

// Write collects the log and notes when the program is ready.
func (p *program) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := strings.Contains(p.log.String(), readyText)
	p.log.Write(data)
	if !before && strings.Contains(p.log.String(), readyText) {
		close(p.ready)
	}
	return len(data), nil
}

var _ io.Writer = (*program)(nil)

func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// waitReady waits until every pipe is open.
func (p *program) waitReady(t *testing.T) {
	t.Helper()
	select {
	case <-p.ready:
	case <-p.ended:
		t.Fatalf("csi-proxy ended before it was ready:\n%s", p.text())
	case <-time.After(readyTime):
		t.Fatalf("csi-proxy is not ready after %s:\n%s", readyTime, p.text())
	}
}

// run starts csi-proxy.exe and waits for its end.
func run(t *testing.T, args ...string) (exitCode int, output string) {
	t.Helper()
	return runCopy(t, exe(t), args...)
}

// runCopy is run for another copy of csi-proxy.exe.
func runCopy(t *testing.T, path string, args ...string) (exitCode int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	output2, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	if exited != nil {
		exitCode = exited.ExitCode()
	}
	return exitCode, string(output2)
}
