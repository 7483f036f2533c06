package wine

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/test/wine/bed"
)

const (
	// readyTime is generous: under Wine a first start loads many libraries.
	readyTime = 30 * time.Second
	quickTime = 30 * time.Second
	// endTime is for programs that wait for a service in their turn.
	endTime = 2 * readyTime
)

// simFlags make csi-proxy serve a simulated node of its own.
func simFlags(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"-host=sim", "-sim-dir=" + t.TempDir()}, more...)
}

// run starts csi-proxy.exe and waits for its end.
func run(t *testing.T, args ...string) (exitCode int, output string) {
	t.Helper()
	return runCopy(t, bed.Environment(t, bed.ProxyVariable), args...)
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
