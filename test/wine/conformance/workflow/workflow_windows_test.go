package workflow

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/test/conformance"
	"github.com/csi-windows/csi-windows/test/conformance/workflow"
	"github.com/csi-windows/csi-windows/test/wine/bed"
)

// commandTime is generous: the suite takes some seconds on an idle machine.
const commandTime = 8 * time.Minute

// Everything the workflow does on a runner but the build succeeds. The one difference
// is that the files of mounted volumes are reached at the simulated node.
func TestWorkflow(t *testing.T) {
	node := bed.Connect(t)
	node.Fresh()
	file, err := os.ReadFile(filepath.Join("..", "..", "..", "..", filepath.FromSlash(workflow.Path)))
	if err != nil {
		t.Fatal(err)
	}
	commands, err := workflow.Commands(file)
	if err != nil {
		t.Fatal(err)
	}
	removeLog(t)
	t.Cleanup(func() { removeLog(t) })
	folder := t.TempDir()
	copyPrograms(t, filepath.Join(folder, "bin"))
	uninstalled := false
	t.Cleanup(func() {
		if !uninstalled {
			_, _ = run(context.Background(), folder, `bin\csi-proxy.exe`, "uninstall")
		}
	})
	for _, words := range commands {
		line := strings.Join(words, " ")
		if words[0] == "go" {
			continue // the lane has built them
		}
		if slices.Contains(words, "conformance") {
			words = append(words, "--sim-control", node.Address)
		}
		output, err := run(t.Context(), folder, words...)
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
		uninstalled = uninstalled || slices.Contains(words, "uninstall") && err == nil
		switch {
		case slices.Contains(words, "conformance"):
			checkResults(t, output)
		case words[0] == "type" && !strings.Contains(output, "csi-proxy is ready"):
			t.Errorf("%s: the log says\n%s", line, output)
		}
	}
	if output, err := run(t.Context(), folder, `bin\csi-proxy.exe`, "status"); err == nil {
		t.Errorf("uninstalled, and yet the service runs: %s", output)
	}
}

// removeLog takes away the log and its folders, so that no run sees that of another.
func removeLog(t *testing.T) {
	t.Helper()
	for _, path := range []string{`C:\k\logs\csi-proxy.log`, `C:\k\logs`, `C:\k`} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Logf("%s stays: %v", path, err)
		}
	}
}

// checkResults fails the test unless every case that needs no server of somebody has
// passed.
func checkResults(t *testing.T, output string) {
	t.Helper()
	for _, c := range conformance.Cases() {
		want := "passed "
		if slices.Contains(c.Needs, conformance.NeedSMB) || slices.Contains(c.Needs, conformance.NeedISCSI) {
			want = "not run"
		}
		if !strings.Contains(output, want+"  "+c.Name+" ") {
			t.Errorf("%s: want %s\n%s", c.Name, want, output)
		}
	}
}

// run runs a command by cmd.exe in a folder, as a runner does.
func run(ctx context.Context, folder string, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	command := exec.CommandContext(ctx, "cmd.exe", append([]string{"/d", "/c"}, words...)...)
	command.Dir = folder
	command.WaitDelay = time.Minute // for what the command started and left
	output, err := command.CombinedOutput()
	return string(output), err
}

// copyPrograms puts the shipped programs where the build step does.
func copyPrograms(t *testing.T, folder string) {
	t.Helper()
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{"CSI_PROXY_EXE", "CSI_PROXYCTL_EXE"} {
		path := os.Getenv(variable)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%s: %v; run by test/wine/run", variable, err)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(path)), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
