package conformance

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// readyTime is generous: under Wine a first start loads many libraries.
const readyTime = time.Minute

// agentLog collects what csi-proxy says and notes when it is ready.
type agentLog struct {
	mu    sync.Mutex
	text  bytes.Buffer
	once  sync.Once
	ready chan struct{}
}

func (l *agentLog) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(data)
	if strings.Contains(l.text.String(), "csi-proxy is ready") {
		l.once.Do(func() { close(l.ready) })
	}
	return len(data), nil
}

func (l *agentLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// programPath is the path of a shipped program, which the lane's script has built.
func programPath(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s is not set: run by test/wine/run", variable)
	}
	return path
}

// startAgent runs csi-proxy.exe until the end of the test.
func startAgent(t *testing.T, args ...string) {
	t.Helper()
	log := &agentLog{ready: make(chan struct{})}
	command := exec.Command(programPath(t, "CSI_PROXY_EXE"), args...)
	command.WaitDelay = 2 * time.Second // Wine's helpers inherit the output
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("csi-proxy said:\n%s", log)
		}
	})
	select {
	case <-log.ready:
	case <-ended:
		t.Fatalf("csi-proxy ended before it was ready:\n%s", log)
	case <-time.After(readyTime):
		t.Fatalf("csi-proxy is not ready after %s:\n%s", readyTime, log)
	}
}
