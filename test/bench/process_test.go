package bench

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// idleTime is how long the program may settle before its memory is read.
const idleTime = 500 * time.Millisecond

// startTimeout ends a program that does not come to listen.
const startTimeout = 10 * time.Second

// BenchmarkProcess starts csi-proxy with every API on a simulated node and
// reports how long it took until the last pipe took connections, and its
// resident memory when idle. The program is built as it is shipped.
func BenchmarkProcess(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("resident memory is read from /proc")
	}
	program := filepath.Join(b.TempDir(), "csi-proxy")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "github.com/csi-windows/csi-windows/cmd/csi-proxy")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, output)
	}
	node := b.TempDir()
	var startTotal time.Duration
	var largest int64
	runs := 0
	for b.Loop() {
		started, residentBytes := measure(b, program, node)
		startTotal += started
		largest = max(largest, residentBytes)
		runs++
	}
	b.ReportMetric(float64(startTotal.Microseconds())/1000/float64(runs), "ms/start")
	b.ReportMetric(float64(largest)/(1<<20), "MiB/idle")
}

// measure runs the program once and stops it as a service manager would.
func measure(b *testing.B, program, node string) (started time.Duration, residentBytes int64) {
	b.Helper()
	dir, err := os.MkdirTemp("", "pipes")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var log bytes.Buffer
	run := exec.Command(program, "-sim-dir="+node, "-socket-dir="+dir)
	run.Stderr = &log
	begin := time.Now()
	if err := run.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		if err := run.Wait(); err != nil {
			b.Errorf("csi-proxy: %v\n%s", err, &log)
		}
	}()
	for _, api := range wire.APIs() {
		for !listens(filepath.Join(dir, pipe.Name(api.Group, api.Version)+".sock")) {
			if time.Since(begin) > startTimeout {
				b.Fatalf("%s does not listen\n%s", api, &log)
			}
			time.Sleep(time.Millisecond)
		}
	}
	started = time.Since(begin)
	time.Sleep(idleTime)
	return started, resident(b, run.Process.Pid)
}

func listens(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// resident reads a process's resident memory.
func resident(b *testing.B, pid int) int64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, found := bytes.Cut(status, []byte("VmRSS:"))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 {
		b.Fatal("no VmRSS in the status of the process")
	}
	kilobytes, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return kilobytes << 10
}
