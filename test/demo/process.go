package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// stopTime is how long a program may take to stop.
const stopTime = time.Minute

// process is a program of the product as a process of its own.
type process struct {
	command *exec.Cmd
	log     *bytes.Buffer
	ended   chan error
}

// start starts a program. Its log goes to a buffer, for the case that something goes
// wrong.
func start(ctx context.Context, program string, flags ...string) (*process, error) {
	p := &process{command: exec.CommandContext(ctx, program, flags...), log: &bytes.Buffer{}, ended: make(chan error, 1)}
	p.command.Stdout, p.command.Stderr = p.log, p.log
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() { p.ended <- p.command.Wait() }()
	return p, nil
}

// stop asks the program to stop and waits for a clean end.
func (p *process) stop() error {
	if err := p.command.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		if err != nil {
			return fmt.Errorf("%s ended with %w", filepath.Base(p.command.Path), err)
		}
		return nil
	case <-time.After(stopTime):
		return errors.Join(fmt.Errorf("%s did not stop in time", filepath.Base(p.command.Path)), p.command.Process.Kill())
	}
}

// children counts the program's child processes; 0 where there is no /proc.
func (p *process) children() (int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	count := 0
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		count += len(strings.Fields(string(data)))
	}
	return count, nil
}
