// Command nodeinit is the first process of a node's own name spaces: what its
// programs mount and start is seen by nobody else and ends with it. It does what
// its standard input says, in JSON, one command a line, and answers each with a
// line; when the input ends, so does everything.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// command is one line of the input.
type command struct {
	// Bind mounts a folder over another.
	Bind []string `json:"bind,omitempty"`
	// Hide mounts an empty folder, in memory, over one.
	Hide string `json:"hide,omitempty"`
	// Start starts a program: its path, then its arguments.
	Start []string `json:"start,omitempty"`
	// Log is the file that gets what the program writes.
	Log string `json:"log,omitempty"`
	// Signal is sent to the process Process.
	Signal  int `json:"signal,omitempty"`
	Process int `json:"process,omitempty"`
}

// answer is one line of the output.
type answer struct {
	Process int    `json:"process,omitempty"`
	Error   string `json:"error,omitempty"`
	// Ended is a process that has ended, by itself or not; this line answers no command.
	Ended int `json:"ended,omitempty"`
	// Code is its exit code, negative for a signal.
	Code int `json:"code,omitempty"`
}

func main() {
	n := &node{out: json.NewEncoder(os.Stdout), started: map[int]bool{}}
	err := n.prepare()
	if err == nil {
		go n.reap()
		err = n.serve(os.Stdin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nodeinit:", err)
		os.Exit(1)
	}
}

type node struct {
	mu      sync.Mutex
	out     *json.Encoder
	started map[int]bool
}

// prepare makes the mounts private, and shows the processes of this name space.
func (n *node) prepare() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// serve carries out commands until there are no more.
func (n *node) serve(in io.Reader) error {
	for decoder := json.NewDecoder(in); ; {
		var c command
		if err := decoder.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := n.do(c); err != nil {
			return err
		}
	}
}

// do carries out a command and answers it. The lock keeps the end of a process that
// ends at once from being told before its start.
func (n *node) do(c command) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var a answer
	var err error
	switch {
	case len(c.Bind) == 2:
		err = bind(c.Bind[0], c.Bind[1])
	case c.Hide != "":
		err = hide(c.Hide)
	case len(c.Start) > 0:
		a.Process, err = start(c)
		n.started[a.Process] = err == nil
	case n.started[c.Process]:
		err = syscall.Kill(c.Process, syscall.Signal(c.Signal))
	default:
		err = fmt.Errorf("no process %d", c.Process)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return n.out.Encode(a)
}

// bind mounts source over target. A target that is missing is made where nobody else
// sees it: on a file system in memory that hides the folder it lies in.
func bind(source, target string) error {
	if _, err := os.Stat(target); errors.Is(err, os.ErrNotExist) {
		if err := hideAbove(target); err != nil {
			return err
		}
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
	}
	return syscall.Mount(source, target, "", syscall.MS_BIND|syscall.MS_REC, "")
}

// hideAbove mounts a file system in memory over the closest folder above that exists.
func hideAbove(path string) error {
	for {
		at := len(path) - 1
		for at > 0 && path[at] != '/' {
			at--
		}
		if path = path[:at]; path == "" {
			return errors.New("the root cannot be hidden")
		}
		if _, err := os.Stat(path); err == nil {
			return hide(path)
		}
	}
}

func hide(path string) error { return syscall.Mount("tmpfs", path, "tmpfs", 0, "mode=755") }

func start(c command) (int, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()
	p, err := os.StartProcess(c.Start[0], c.Start, &os.ProcAttr{Files: []*os.File{nil, log, log}, Env: os.Environ()})
	if err != nil {
		return 0, err
	}
	number := p.Pid // gone after the release
	return number, p.Release()
}

// reap takes every process that has ended, those whose parents have ended too, and
// tells of those that were started here.
func (n *node) reap() {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == nil:
			n.tell(pid, status)
		case errors.Is(err, syscall.ECHILD):
			<-children
		}
	}
}

func (n *node) tell(pid int, status syscall.WaitStatus) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.started[pid] {
		return
	}
	delete(n.started, pid)
	code := status.ExitStatus()
	if status.Signaled() {
		code = -int(status.Signal())
	}
	_ = n.out.Encode(answer{Ended: pid, Code: code}) // whoever listens may be gone
}
