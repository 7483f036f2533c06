// Command demo walks through a node plugin's life on a simulated Windows node
// and then tries to do damage. csi-proxy runs as a process of its own; the demo
// is its client, the cloud that attaches disks, and the program in the pod.
//
// It prints a table and exits with 0 only if every line is as it should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/sim/cloud"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

const (
	// demoTime bounds the whole demo.
	demoTime = time.Minute
	// readyTime is how long csi-proxy may take to open its pipes.
	readyTime = 10 * time.Second
)

func main() {
	program := flag.String("agent", "bin/csi-proxy", "the csi-proxy to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *program, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run plays the whole demo in a temporary folder.
func run(ctx context.Context, program string, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, demoTime)
	defer cancel()
	// A short path: a socket's path has little room. Source: unix(7), sun_path.
	folder, err := os.MkdirTemp("", "csi-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	sockets, controlSocket := filepath.Join(folder, "pipes"), filepath.Join(folder, "control.sock")
	agent, err := startAgent(ctx, program, "-host=sim", "-sim-dir="+filepath.Join(folder, "node"), "-socket-dir="+sockets, "-sim-control="+controlSocket)
	if err != nil {
		return err
	}
	node := control.NewClient(controlSocket)
	defer node.Close()
	c, err := client.New(client.Options{Place: pipe.Place{Dir: sockets}})
	if err != nil {
		return errors.Join(err, agent.stop())
	}
	defer func() { _ = c.Close() }()

	r := &report{out: out, version: func(group string) string { return c.Chosen()[group] }}
	err = play(ctx, r, c, node, agent, folder)
	if stopped := agent.stop(); stopped != nil {
		err = errors.Join(err, stopped)
	}
	if err == nil && r.bad > 0 {
		err = fmt.Errorf("%d of %d lines are not as they should be", r.bad, r.lines)
	}
	if err != nil {
		return fmt.Errorf("%w\n\ncsi-proxy's log:\n%s", err, agent.log)
	}
	fmt.Fprintf(out, "\n%d lines, every one as it should be.\n", r.lines)
	return nil
}

// play waits for csi-proxy and runs the three acts.
func play(ctx context.Context, r *report, c *client.Client, node *control.Client, agent *agentProcess, folder string) error {
	if err := waitReady(ctx, c, agent); err != nil {
		return err
	}
	disks, err := cloud.Open(filepath.Join(folder, "cloud"))
	if err != nil {
		return err
	}
	defer func() { _ = disks.Close() }()
	l := &life{report: r, client: c, node: node, cloud: disks}
	l.run(ctx)
	(&network{report: r, client: c, node: node, folder: folder}).run(ctx)
	(&damage{report: r, client: c, node: node, folder: folder, children: agent.children, staged: l.volume}).run(ctx)
	return nil
}

// waitReady connects every API group, trying again while csi-proxy starts.
func waitReady(ctx context.Context, c *client.Client, agent *agentProcess) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		err := c.Connect(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case ended := <-agent.ended:
			agent.ended <- ended // for stop
			return fmt.Errorf("csi-proxy ended at once: %w", ended)
		case <-ctx.Done():
			return fmt.Errorf("csi-proxy is not ready: %w", err)
		}
	}
}
