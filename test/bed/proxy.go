package bed

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// Limits of a process of the bed.
const (
	// ReadyTime is how long a program may take until it can be used.
	ReadyTime = time.Minute
	// StopTime is how long a program may take to stop.
	StopTime = time.Minute
)

// Program builds a command of this module, as it is shipped, and returns its path.
func Program(t testing.TB, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "github.com/csi-windows/csi-windows/cmd/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, output)
	}
	return program
}

// Process is a program that runs beside a test.
type Process struct {
	t       testing.TB
	command *exec.Cmd
	log     logBuffer
	ended   chan struct{}
	failure error // of the end; read after ended
}

// Start starts a program. It is stopped at the end of the test, and its log is
// shown if the test has failed.
func Start(t testing.TB, program string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, command: exec.Command(program, args...), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = &p.log, &p.log
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.failure = p.command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("%s: %v", filepath.Base(program), err)
		}
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(program), p.log.String())
		}
	})
	return p
}

// Log is what the program has written so far.
func (p *Process) Log() string { return p.log.String() }

// ID is the number of the process.
func (p *Process) ID() int { return p.command.Process.Pid }

// Stop asks the program to stop and waits for a clean end. A program that has
// ended, or was killed, is no error.
func (p *Process) Stop() error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	if err := p.command.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return p.failure
	case <-time.After(StopTime):
		p.Kill()
		return errors.New("did not stop in time")
	}
}

// Kill ends the program at once, as a crash does.
func (p *Process) Kill() {
	_ = p.command.Process.Kill()
	<-p.ended
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

// logBuffer is a buffer that a process writes while a test reads.
type logBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// Node is a simulated node with a running csi-proxy.
type Node struct {
	*control.Client
	// ControlAddress is where the node can be controlled.
	ControlAddress string
	// Place is where the pipes of csi-proxy are.
	Place pipe.Place
	// Proxy is the process.
	Proxy *Process

	t       testing.TB
	program string
	args    []string // of every csi-proxy of this node
	flags   []string // of the one that runs
}

// StartNode starts csi-proxy over a new simulated node and waits until it serves.
func StartNode(t testing.TB, flags ...string) *Node {
	t.Helper()
	return StartNodeOf(t, Program(t, "csi-proxy"), flags...)
}

// StartNodeOf is StartNode with a program that was built before.
func StartNodeOf(t testing.TB, program string, flags ...string) *Node {
	t.Helper()
	// A short path: a socket's path has little room. Source: unix(7), sun_path.
	dir, err := os.MkdirTemp("", "bed")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := &Node{
		t: t, program: program, ControlAddress: filepath.Join(dir, "control"),
		Place: pipe.Place{Dir: filepath.Join(dir, "pipes")},
	}
	n.args = []string{"-host=sim", "-sim-dir=" + filepath.Join(dir, "node"), "-socket-dir=" + n.Place.Dir, "-sim-control=" + n.ControlAddress}
	n.flags = flags
	n.Client = control.NewClient(n.ControlAddress)
	t.Cleanup(n.Close)
	n.StartProxy()
	return n
}

// StartProxy starts csi-proxy again after it was stopped or killed.
func (n *Node) StartProxy() {
	n.t.Helper()
	n.Proxy = Start(n.t, n.program, slices.Concat(n.args, n.flags)...)
	c := n.Connect(OfficialGroups())
	ctx, cancel := context.WithTimeout(n.t.Context(), ReadyTime)
	defer cancel()
	for {
		err := c.Connect(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil || n.Proxy.Ended() {
			n.t.Fatalf("csi-proxy is not ready: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ReplaceProxy stops csi-proxy and starts one with other flags, as an upgrade does.
func (n *Node) ReplaceProxy(flags ...string) {
	n.t.Helper()
	if err := n.Proxy.Stop(); err != nil {
		n.t.Fatal(err)
	}
	n.flags = flags
	n.StartProxy()
}

// Connect makes a client of csi-proxy for some groups, all when nil.
func (n *Node) Connect(groups []string) *client.Client {
	n.t.Helper()
	c, err := client.New(client.Options{Place: n.Place, Groups: groups})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// OfficialGroups are the groups that every csi-proxy has, ours and others.
func OfficialGroups() []string {
	return []string{wire.GroupDisk, wire.GroupVolume, wire.GroupFilesystem, wire.GroupSMB, wire.GroupISCSI, wire.GroupSystem}
}
