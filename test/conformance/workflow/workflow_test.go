package workflow_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/test/conformance/workflow"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

const (
	proxy    = `bin\csi-proxy.exe`
	proxyctl = `bin\csi-proxyctl.exe`
)

// commands are those of the workflow.
func commands(t *testing.T) [][]string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(workflow.Path)))
	if err != nil {
		t.Fatal(err)
	}
	all, err := workflow.Commands(file)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestCommands(t *testing.T) {
	t.Parallel()
	got, err := workflow.Commands([]byte("a:\n  run:\n    shell: cmd\n  - run: go build ./x\n  - name: y\n    run: bin\\z -v=4\n"))
	if err != nil || len(got) != 2 || !slices.Equal(got[0], []string{"go", "build", "./x"}) || !slices.Equal(got[1], []string{`bin\z`, "-v=4"}) {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"run: |", "run: a | b", "run: a && b", "run: a > b", `run: "a b"`, "run: ${{ x }}"} {
		if got, err := workflow.Commands([]byte(bad)); err == nil {
			t.Errorf("%s: %q", bad, got)
		}
	}
}

// The workflow builds, installs, looks, tests and uninstalls, in this order.
func TestWorkflowIsWhole(t *testing.T) {
	t.Parallel()
	var steps []string
	for _, words := range commands(t) {
		steps = append(steps, strings.Join(words[:2], " "))
	}
	want := []string{
		"go build", "if not", proxy + " install", proxy + " status", proxyctl + " get", proxyctl + " conformance",
		proxy + " status", proxy + " uninstall", `type C:\k\logs\csi-proxy.log`,
	}
	if !slices.Equal(steps, want) {
		t.Errorf("the steps are %q, want %q", steps, want)
	}
}

// Every command is one that our programs take: the build is made, csi-proxyctl's
// commands are run against a csi-proxy of that build, and csi-proxy's, which manage a
// Windows service, are checked as far as their flags go.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	top, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	b := &bed{T: t, top: top, bin: bin}
	for _, words := range commands(t) {
		line, args := strings.Join(words, " "), words[1:]
		switch words[0] {
		case "go":
			at := slices.Index(args, "-o")
			args[at+1] = bin + "/"
			if output, code := b.run("go", args...); code != 0 {
				t.Fatalf("%s: exit code %d: %s", line, code, output)
			}
			b.serve()
		case proxyctl:
			// The node is a simulated one: its disks are made there.
			args = append(args, "--socket-dir", b.sockets)
			if at := slices.Index(args, "vhdx"); at >= 0 {
				args[at] = "sim"
				args = append(args, "--sim-control", b.control, "--scratch-dir", t.TempDir())
			}
			if output, code := b.run(filepath.Join(bin, "csi-proxyctl"), args...); code != 0 {
				t.Errorf("%s: exit code %d: %s", line, code, output)
			}
		case proxy:
			b.isVerb(line, args)
		case "if":
			if line != `if not exist C:\k\logs mkdir C:\k\logs` {
				t.Errorf("%s: want a folder that is made unless it exists", line)
			}
		case "type":
			if !slices.ContainsFunc(commands(t), func(c []string) bool { return slices.Contains(c, "-log_file="+args[0]) }) {
				t.Errorf("%s: nothing writes that file", line)
			}
		default:
			t.Errorf("%s: nobody tries this command", line)
		}
	}
}

// bed is a folder with our programs, and a csi-proxy that serves a simulated node.
type bed struct {
	*testing.T
	top, bin, sockets, control string
}

// run runs a program and returns what it says and its exit code.
func (b *bed) run(name string, args ...string) (output string, code int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 9*time.Minute) // a build, beside those of all the other tests
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = b.top
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := command.CombinedOutput()
	if command.ProcessState == nil {
		b.Fatalf("%s: %v", name, err)
	}
	return string(text), command.ProcessState.ExitCode()
}

// isVerb fails the test unless csi-proxy knows the verb and the flags. Off Windows a
// verb is refused, which is said after its own flags were read; those of the service
// are read when csi-proxy itself is started with them.
func (b *bed) isVerb(line string, args []string) {
	b.Helper()
	program := filepath.Join(b.bin, "csi-proxy")
	usage, _ := b.run(program, "-help")
	if !strings.Contains(usage, args[0]) {
		b.Errorf("%s: csi-proxy has no verb %s", line, args[0])
	}
	if output, code := b.run(program, args...); code != 2 || !strings.Contains(output, args[0]+": this is for the Windows service") {
		b.Errorf("%s: exit code %d: %s", line, code, output)
	}
	if args[0] != "install" {
		return
	}
	if output, code := b.run(program, append(args[1:], "-version")...); code != 0 {
		b.Errorf("%s: the service would not start: exit code %d: %s", line, code, output)
	}
}

// serve starts csi-proxy on a simulated node until the end of the test.
func (b *bed) serve() {
	b.Helper()
	b.sockets = wiretest.Place(b.T).Dir
	b.control = filepath.Join(wiretest.Place(b.T).Dir, "control.sock")
	command := exec.Command(filepath.Join(b.bin, "csi-proxy"), "-sim-dir="+b.TempDir(), "-socket-dir="+b.sockets, "-sim-control="+b.control)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if b.Failed() {
			b.Logf("csi-proxy said:\n%s", said.String())
		}
	})
	b.awaitAnswer()
}

// awaitAnswer waits until csi-proxy answers.
func (b *bed) awaitAnswer() {
	b.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		output, code := b.run(filepath.Join(b.bin, "csi-proxyctl"), "get", "versions", "--socket-dir", b.sockets)
		if code == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("csi-proxy does not answer: %s", output)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
