package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/test/wine/worlds"
)

// The shipped csi-proxy.exe, unchanged and on Windows as it believes, answers
// csi-proxy's whole client: every method goes through COM, devices, Win32 calls
// and the service manager to the simulated node, and changes it.
func TestEveryMethodOfEveryVersionOnWindows(t *testing.T) {
	n := open(t)
	// Made first: it outlives csi-proxy.exe. On the drive that is the machine's own.
	folder, err := os.MkdirTemp(`Z:\tmp`, "csi-lab")
	n.ok(err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	ctx := startAgent(t, "-host=windows", "-kubelet-path="+worlds.Root)
	c, err := client.New(client.Options{})
	n.ok(err)
	t.Cleanup(func() { _ = c.Close() })
	worlds.Run(t, worlds.Bed{
		Ctx: ctx, Control: n.control, Client: c, Folder: folder, Services: newManagedServices(t),
		NodePath: func(path string) string { return filepath.ToSlash(strings.TrimPrefix(path, "Z:")) },
	})
}

// readyTime is generous: under Wine a first start loads many libraries.
const readyTime = 30 * time.Second

// outputTime bounds the wait for the end of a program's output: Wine starts helpers
// of its own from within a program, and they inherit it.
const outputTime = 2 * time.Second

// agentLog collects what csi-proxy says and notes when it is ready.
type agentLog struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan struct{}
}

func (l *agentLog) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const ready = "csi-proxy is ready"
	before := strings.Contains(l.text.String(), ready)
	l.text.Write(data)
	if !before && strings.Contains(l.text.String(), ready) {
		close(l.ready)
	}
	return len(data), nil
}

func (l *agentLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startAgent runs csi-proxy.exe until the end of the test. The context ends when
// the program does.
func startAgent(t *testing.T, args ...string) context.Context {
	t.Helper()
	path := os.Getenv("CSI_PROXY_EXE")
	if path == "" {
		t.Fatal("CSI_PROXY_EXE is not set: run by test/wine/run lab")
	}
	log := &agentLog{ready: make(chan struct{})}
	command := exec.Command(path, args...)
	command.Stdout, command.Stderr = log, log
	command.WaitDelay = outputTime
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cancel(fmt.Errorf("csi-proxy has ended: %w", command.Wait()))
	}()
	t.Cleanup(func() {
		early := ctx.Err() != nil
		_ = command.Process.Kill()
		<-ended
		if early {
			t.Errorf("%v; it said:\n%s", context.Cause(ctx), log)
		}
	})
	select {
	case <-log.ready:
	case <-ended:
		t.Fatalf("csi-proxy ended before it was ready:\n%s", log)
	case <-time.After(readyTime):
		t.Fatalf("csi-proxy is not ready after %s:\n%s", readyTime, log)
	}
	return ctx
}
