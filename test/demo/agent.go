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

// stopTime is how long csi-proxy may take to stop.
const stopTime = 10 * time.Second

// agentProcess is csi-proxy as a process of its own.
type agentProcess struct {
	command *exec.Cmd
	log     *bytes.Buffer
	ended   chan error
}

// startAgent starts csi-proxy for a simulated node. Its log goes to a buffer, for
// the case that something goes wrong.
func startAgent(ctx context.Context, program string, flags ...string) (*agentProcess, error) {
	a := &agentProcess{command: exec.CommandContext(ctx, program, flags...), log: &bytes.Buffer{}, ended: make(chan error, 1)}
	a.command.Stdout, a.command.Stderr = a.log, a.log
	if err := a.command.Start(); err != nil {
		return nil, err
	}
	go func() { a.ended <- a.command.Wait() }()
	return a, nil
}

// stop asks csi-proxy to stop and waits for a clean end.
func (a *agentProcess) stop() error {
	if err := a.command.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case err := <-a.ended:
		if err != nil {
			return fmt.Errorf("csi-proxy ended with %w", err)
		}
		return nil
	case <-time.After(stopTime):
		return errors.Join(errors.New("csi-proxy did not stop in time"), a.command.Process.Kill())
	}
}

// children counts csi-proxy's child processes; 0 where there is no /proc.
func (a *agentProcess) children() (int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", a.command.Process.Pid))
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
