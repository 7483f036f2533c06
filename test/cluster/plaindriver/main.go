// Command plaindriver is a CSI driver that shares no code with the kit: a bare
// gRPC server whose back-end is a folder. It is the second driver the sidecar
// is tried with, with and without each optional capability, and it can answer
// as bad networks and bad back-ends do.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

type options struct {
	socket, dir, name, node, zone string
	capabilities                  map[string]bool
	delay, answerDelay            time.Duration
	faults                        faults
}

func parse() options {
	var o options
	flag.StringVar(&o.socket, "socket", "", "path of the unix socket")
	flag.StringVar(&o.dir, "dir", "", "folder of the back-end; it outlives the driver")
	flag.StringVar(&o.name, "name", "plain.example.com", "the driver's name")
	flag.StringVar(&o.node, "node", "", "id of this node")
	flag.StringVar(&o.zone, "zone", "", "zone of this node")
	capabilities := flag.String("capabilities", strings.Join(allCapabilities(), ","), "optional capabilities, by commas")
	flag.DurationVar(&o.delay, "delay", 0, "how long each change takes")
	flag.DurationVar(&o.answerDelay, "answer-delay", 0, "how long the answer to a change is held back after the work is done")
	flag.Uint64Var(&o.faults.seed, "faults-seed", 0, "seed of the faults")
	flag.Float64Var(&o.faults.rate, "faults-rate", 0, "share of changes that go wrong, 0 to 1")
	flag.Parse()
	o.capabilities = map[string]bool{}
	for _, one := range strings.Split(*capabilities, ",") {
		if one != "" {
			o.capabilities[one] = true
		}
	}
	return o
}

func main() {
	if err := run(parse()); err != nil {
		log.Fatal(err)
	}
}

func run(o options) error {
	backend, err := openBackend(o.dir)
	if err != nil {
		return err
	}
	if err := os.Remove(o.socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", o.socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	d := &driver{options: o, backend: backend, chance: newChance(o.faults)}
	server := grpc.NewServer(grpc.UnaryInterceptor(d.intercept))
	csi.RegisterIdentityServer(server, &identity{driver: d})
	csi.RegisterControllerServer(server, &controller{driver: d})
	csi.RegisterNodeServer(server, &nodeServer{driver: d})
	if o.capabilities["group"] {
		csi.RegisterGroupControllerServer(server, &group{driver: d})
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go func() {
		<-ctx.Done()
		server.Stop()
	}()
	return server.Serve(listener)
}

// driver is what the services share.
type driver struct {
	options
	backend *backend
	chance  *chance
}

// has reports an optional capability.
func (d *driver) has(capability string) bool { return d.capabilities[capability] }

// allCapabilities are all but "service", a controller that makes no volumes, which
// "controller" has in it.
func allCapabilities() []string {
	return []string{
		"controller", "attach", "readonly", "list", "published", "expand", "node-expand", "snapshot", "list-snapshots", "get-snapshot",
		"clone", "topology", "capacity", "modify", "group", "get-volume", "stage", "multi-writer",
	}
}
