package csikit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/csi-windows/csi-windows/node"
)

// driverNameBytesMax is the longest name of a driver. Source: CSI, GetPluginInfoResponse.
const driverNameBytesMax = 63

// Config is all a Driver is made of.
type Config struct {
	// Name is the driver's name as Kubernetes knows it, a domain name of the vendor
	// as "disks.example.com": at most 63 letters, digits, '-' and '.'.
	Name string
	// Version is the version of the driver, any text.
	Version string
	// NodeID is the name of this node to the Backend, at most 256 bytes. It is
	// needed with a NodeBackend.
	NodeID string
	// Backend gives the controller's services; nil means there are none.
	Backend Backend
	// NodeBackend and Node give the Node service; nil means there is none. The two
	// come together.
	NodeBackend NodeBackend
	Node        node.Node
	// Server is where and how the services are served. Its Services are set by New,
	// and its DriverName when it is empty. Without an Endpoint the driver does not run:
	// its Services are served by somebody else.
	Server ServerConfig
}

// Driver is a CSI driver, ready to run.
type Driver struct {
	name, version string
	nodeID        string
	backend       Backend
	nodeBackend   NodeBackend
	node          node.Node
	services      Services
	server        *Server // nil without an endpoint
}

// New checks the config and puts the driver together. It asks neither backend nor node
// anything, but which access modes they take.
func New(config Config) (*Driver, error) {
	if err := errors.Join(checkDriverName(config.Name), checkNodeConfig(config)); err != nil {
		return nil, err
	}
	if config.Version == "" {
		return nil, errors.New("csikit: Config.Version is missing")
	}
	if config.Backend == nil && config.NodeBackend == nil {
		return nil, errors.New("csikit: Config has neither a Backend nor a NodeBackend")
	}
	d := &Driver{
		name: config.Name, version: config.Version, nodeID: config.NodeID,
		backend: config.Backend, nodeBackend: config.NodeBackend, node: config.Node,
	}
	d.services.Identity = newIdentity(d)
	if d.backend != nil {
		d.services.Controller = newController(d)
	}
	if groups, ok := d.backend.(GroupSnapshotter); ok {
		d.services.GroupController = &groupController{groups: groups}
	}
	if differ, ok := d.backend.(SnapshotDiffer); ok {
		d.services.SnapshotMetadata = &snapshotMetadata{differ: differ}
	}
	if d.nodeBackend != nil {
		d.services.Node = newNodeServer(d)
	}
	return d, d.serve(config.Server)
}

// serve makes the server, if there is to be one.
func (d *Driver) serve(config ServerConfig) (err error) {
	if config.Endpoint == "" {
		return nil
	}
	config.Services = d.services
	if config.DriverName == "" {
		config.DriverName = d.name
	}
	d.server, err = NewServer(config)
	return err
}

// Run serves the driver until ctx ends, and then until the calls in flight have
// finished or their grace time is over. It is called once.
func (d *Driver) Run(ctx context.Context) error {
	if d.server == nil {
		return errors.New("csikit: Config.Server.Endpoint is missing")
	}
	return d.server.Run(ctx)
}

// Services are the servers of the driver, for who wants to serve them on his own.
func (d *Driver) Services() Services { return d.services }

// checkDriverName holds a name to the form of a domain name.
func checkDriverName(name string) error {
	if name == "" || len(name) > driverNameBytesMax {
		return fmt.Errorf("csikit: Config.Name has %d bytes, CSI wants 1 to %d", len(name), driverNameBytesMax)
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isSegment(label) || strings.Contains(label, "_") {
			return fmt.Errorf("csikit: Config.Name %q is no domain name: words of letters, digits and '-', with '.' between", name)
		}
	}
	return nil
}

func checkNodeConfig(config Config) error {
	switch {
	case (config.NodeBackend == nil) != (config.Node == nil):
		return errors.New("csikit: Config.NodeBackend and Config.Node come together")
	case config.NodeBackend == nil:
		return nil
	case config.NodeID == "" || len(config.NodeID) > nodeIDBytesMax:
		return fmt.Errorf("csikit: Config.NodeID has %d bytes, CSI wants 1 to %d", len(config.NodeID), nodeIDBytesMax)
	}
	return nil
}
