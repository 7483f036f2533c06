package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// DriverName is the name of the driver with the simulated cloud.
const DriverName = "simcloud.csi-windows.io"

// Storage is the storage of a simulated Windows node, with csi-proxy before it.
type Storage struct {
	// Client is the hand that reaches into the node.
	*control.Client
	// Node is the node's name, to the cluster and to the cloud.
	Node string
	// ControlAddress is where the node is controlled.
	ControlAddress string
	// Pipes is the folder of csi-proxy's sockets.
	Pipes string
	// Proxy is the process of csi-proxy.
	Proxy *Process

	c       *Cluster
	kubelet *Kubelet // nil for a node without one
	args    []string
}

// Storage starts csi-proxy on a simulated Windows node whose drive C: is the tree of
// a kubelet, so that /var/lib/kubelet there is C:\var\lib\kubelet here.
func (k *Kubelet) Storage() *Storage {
	k.c.t.Helper()
	s := k.c.storage(k.Node, "-sim-drive=C="+k.Root)
	s.kubelet = k
	return s
}

// Storage starts csi-proxy on a simulated Windows node without a kubelet.
func (c *Cluster) Storage(node string) *Storage {
	c.t.Helper()
	return c.storage(node)
}

func (c *Cluster) storage(node string, flags ...string) *Storage {
	c.t.Helper()
	if err := os.MkdirAll(c.path(node), 0o755); err != nil {
		c.t.Fatal(err)
	}
	s := &Storage{Node: node, ControlAddress: c.path(node, "control"), Pipes: c.path(node, "pipes"), c: c}
	s.args = append([]string{"-host=sim", "-sim-dir=" + c.path(node, "sim"), "-socket-dir=" + s.Pipes, "-sim-control=" + s.ControlAddress}, flags...)
	s.Client = control.NewClient(s.ControlAddress)
	c.t.Cleanup(s.Client.Close)
	s.StartProxy()
	return s
}

// StartProxy starts csi-proxy, again after it was stopped or killed.
func (s *Storage) StartProxy() {
	s.c.t.Helper()
	s.Proxy = s.c.Start(s.Node+"-csi-proxy", Program(s.c.t, "csi-proxy"), s.args...)
	pipes, err := client.New(client.Options{Place: pipe.Place{Dir: s.Pipes}})
	if err != nil {
		s.c.t.Fatal(err)
	}
	defer func() { _ = pipes.Close() }()
	s.c.waitFor(s.Proxy, func(ctx context.Context) error { return pipes.Connect(ctx) })
}

// Driver is a csi-driver process.
type Driver struct {
	*Process
	// Address is where it serves, as the flag -endpoint takes it.
	Address string
	// SocketPath is the path of its socket on the machine.
	SocketPath string
}

// NodeDriver starts the node's part of the driver, where the kubelet looks for it.
func (s *Storage) NodeDriver(flags ...string) *Driver {
	s.c.t.Helper()
	socket := s.c.path(s.Node, "csi.sock")
	if s.kubelet != nil {
		socket = s.kubelet.Path(filepath.Join(KubeletDir, "plugins", DriverName, "csi.sock"))
	}
	return s.c.driver(s.Node+"-csi-driver", socket, append([]string{
		"-mode=node", "-host=proxy", "-socket-dir=" + s.Pipes, "-node-id=" + s.Node, "-cloud-control=" + s.ControlAddress,
	}, flags...)...)
}

// CloudDir is the folder of the simulated cloud.
func (c *Cluster) CloudDir() string { return c.path("cloud") }

// ControllerDriver starts the controller's part of the driver for nodes of the cloud.
func (c *Cluster) ControllerDriver(nodes []*Storage, flags ...string) *Driver {
	c.t.Helper()
	args := []string{"-mode=controller", "-cloud-dir=" + c.CloudDir()}
	for _, node := range nodes {
		args = append(args, "-cloud-node="+node.Node+"="+node.ControlAddress)
	}
	return c.driver("csi-driver", c.path("csi.sock"), append(args, flags...)...)
}

// driver starts a csi-driver and waits until it is ready.
func (c *Cluster) driver(name, socket string, flags ...string) *Driver {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		c.t.Fatal(err)
	}
	d := &Driver{Address: "unix:" + socket, SocketPath: socket}
	d.Process = c.Start(name, Program(c.t, "csi-driver"), append([]string{"-driver=simcloud", "-endpoint=" + d.Address}, flags...)...)
	identity := csi.NewIdentityClient(c.Dial(d.Address))
	c.waitFor(d.Process, func(ctx context.Context) error {
		answer, err := identity.Probe(ctx, &csi.ProbeRequest{})
		if err == nil && answer.GetReady() != nil && !answer.GetReady().GetValue() {
			err = errors.New("it says that it is not ready")
		}
		return err
	})
	return d
}

// Dial makes a connection to a driver.
func (c *Cluster) Dial(address string) *grpc.ClientConn {
	c.t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		c.t.Fatal(fmt.Errorf("dial %s: %w", address, err))
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	return conn
}
