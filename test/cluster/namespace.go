package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// namespace is a node's own view of the machine's processes and mounts; see
// test/cluster/nodeinit. What is in it ends with it.
type namespace struct {
	c  *Cluster
	in *os.File

	commands sync.Mutex // one at a time
	answers  chan nodeAnswer

	mu    sync.Mutex
	ended map[int]chan struct{}
}

// nodeAnswer is a line of nodeinit.
type nodeAnswer struct {
	Process, Ended, Code int
	Error                string
}

// newNamespace starts the first process of a node.
func (c *Cluster) newNamespace(node string) *namespace {
	c.t.Helper()
	program := helper(c.t, "nodeinit")
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	n := &namespace{c: c, in: inWrite, answers: make(chan nodeAnswer, 1), ended: map[int]chan struct{}{}}
	c.start(processOptions{
		name: node + "-init", program: program, isKilled: true, stdin: inRead, stdout: outWrite,
		attributes: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID},
	})
	_ = inRead.Close()
	_ = outWrite.Close()
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		n.read(outRead)
	}()
	c.t.Cleanup(func() {
		_ = inWrite.Close() // and everything ends
		<-reading
		_ = outRead.Close()
	})
	return n
}

// read takes what nodeinit says until it ends.
func (n *namespace) read(out io.Reader) {
	defer close(n.answers)
	for decoder := json.NewDecoder(out); ; {
		var a nodeAnswer
		if err := decoder.Decode(&a); err != nil {
			return
		}
		if a.Ended == 0 {
			n.mu.Lock()
			if a.Process != 0 {
				n.ended[a.Process] = make(chan struct{})
			}
			n.mu.Unlock()
			n.answers <- a
			continue
		}
		n.mu.Lock()
		close(n.ended[a.Ended])
		n.mu.Unlock()
	}
}

// do has nodeinit carry out a command.
func (n *namespace) do(command map[string]any) (nodeAnswer, error) {
	n.commands.Lock()
	defer n.commands.Unlock()
	data, err := json.Marshal(command)
	if err != nil {
		return nodeAnswer{}, err
	}
	if _, err := n.in.Write(append(data, '\n')); err != nil {
		return nodeAnswer{}, err
	}
	a, ok := <-n.answers
	switch {
	case !ok:
		return a, errors.New("the first process of the node has ended")
	case a.Error != "":
		return a, errors.New(a.Error)
	}
	return a, nil
}

// must is do for what has to work.
func (n *namespace) must(command map[string]any) nodeAnswer {
	n.c.t.Helper()
	a, err := n.do(command)
	if err != nil {
		n.c.t.Fatalf("%v: %v", command, err)
	}
	return a
}

// program is one that runs in a node's name spaces.
type program struct {
	node    *namespace
	name    string
	logPath string
	number  int
	ended   chan struct{}
}

// start starts a program.
func (n *namespace) start(name, path string, args ...string) *program {
	n.c.t.Helper()
	p := &program{node: n, name: name, logPath: n.c.newLog(name)}
	p.number = n.must(map[string]any{"start": append([]string{path}, args...), "log": p.logPath}).Process
	n.mu.Lock()
	p.ended = n.ended[p.number]
	n.mu.Unlock()
	n.c.t.Cleanup(func() {
		if n.c.t.Failed() {
			(&Process{t: n.c.t, logPath: p.logPath}).show()
		}
	})
	return p
}

// signal sends a signal to the program.
func (p *program) signal(s syscall.Signal) error {
	_, err := p.node.do(map[string]any{"signal": int(s), "process": p.number})
	return err
}

// stop ends the program by a signal and waits until it has ended.
func (p *program) stop(s syscall.Signal) error {
	if err := p.signal(s); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTime):
		return fmt.Errorf("%s did not end in time", p.name)
	}
}

// failure says that the program has ended, and how its log does.
func (p *program) failure() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended; see %s", p.name, filepath.Base(p.logPath))
	default:
		return nil
	}
}
