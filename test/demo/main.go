// Command demo walks through a claim's life, by the CSI calls that a cluster makes,
// on a simulated Windows node, and then tries to do damage. csi-proxy and csi-driver
// run as processes of their own; the demo is the cluster and the program in the pod.
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

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

const (
	// demoTime bounds the whole demo.
	demoTime = 5 * time.Minute
	// readyTime is how long a program may take to answer.
	readyTime = time.Minute
)

func main() {
	agent := flag.String("agent", "bin/csi-proxy", "the csi-proxy to run")
	driver := flag.String("driver", "bin/csi-driver", "the csi-driver to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *agent, *driver, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run plays the whole demo in a temporary folder.
func run(ctx context.Context, agentProgram, driverProgram string, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, demoTime)
	defer cancel()
	// A short path: a socket's path has little room. Source: unix(7), sun_path.
	folder, err := os.MkdirTemp("", "csi-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	sockets, controlSocket := filepath.Join(folder, "pipes"), filepath.Join(folder, "control.sock")
	agent, err := start(ctx, agentProgram, "-host=sim", "-sim-dir="+filepath.Join(folder, "node"), "-socket-dir="+sockets, "-sim-control="+controlSocket)
	if err != nil {
		return err
	}
	endpoint := "unix:" + filepath.Join(folder, "csi.sock")
	driver, err := start(ctx, driverProgram, "-driver=simcloud", "-endpoint="+endpoint, "-host=proxy", "-socket-dir="+sockets,
		"-node-id="+nodeName, "-cloud-dir="+filepath.Join(folder, "cloud"), "-cloud-node="+nodeName+"="+controlSocket)
	if err != nil {
		return errors.Join(err, agent.stop())
	}
	err = meet(ctx, out, agent, driver, endpoint, sockets, controlSocket, folder)
	err = errors.Join(err, driver.stop(), agent.stop())
	if err != nil {
		return fmt.Errorf("%w\n\ncsi-driver's log:\n%s\ncsi-proxy's log:\n%s", err, driver.log, agent.log)
	}
	return nil
}

// meet connects to everything and plays the three acts.
func meet(ctx context.Context, out io.Writer, agent, driver *process, endpoint, sockets, controlSocket, folder string) error {
	node := control.NewClient(controlSocket)
	defer node.Close()
	c, err := client.New(client.Options{Place: pipe.Place{Dir: sockets}})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	cluster, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Close() }()
	if err := waitReady(ctx, "csi-proxy", agent, func(ctx context.Context) error { return c.Connect(ctx) }); err != nil {
		return err
	}
	identity := csi.NewIdentityClient(cluster)
	if err := waitReady(ctx, "csi-driver", driver, func(ctx context.Context) error { return probe(ctx, identity) }); err != nil {
		return err
	}
	r := &report{out: out, version: func(group string) string {
		if group == "controller" || group == "node" {
			return "csi.v1"
		}
		return c.Chosen()[group]
	}}
	l := &life{report: r, controller: csi.NewControllerClient(cluster), nodes: csi.NewNodeClient(cluster), node: node, client: c}
	l.run(ctx)
	(&network{report: r, client: c, node: node, folder: folder}).run(ctx)
	(&damage{report: r, client: c, node: node, folder: folder, children: agent.children, staged: l.volume}).run(ctx)
	if r.bad > 0 {
		return fmt.Errorf("%d of %d lines are not as they should be", r.bad, r.lines)
	}
	fmt.Fprintf(out, "\n%d lines, every one as it should be.\n", r.lines)
	return nil
}

// probe asks the driver whether it is ready.
func probe(ctx context.Context, identity csi.IdentityClient) error {
	answer, err := identity.Probe(ctx, &csi.ProbeRequest{})
	if err == nil && answer.GetReady() != nil && !answer.GetReady().GetValue() {
		err = errors.New("it says that it is not")
	}
	return err
}

// waitReady tries again until a program answers.
func waitReady(ctx context.Context, name string, p *process, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case ended := <-p.ended:
			p.ended <- ended // for stop
			return fmt.Errorf("%s ended at once: %w", name, ended)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", name, err)
		}
	}
}
