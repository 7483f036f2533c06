package simcloud

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/cloud"
	"github.com/csi-windows/csi-windows/sim/control"
)

// Config says where the cloud is.
type Config struct {
	// Dir is the cloud's folder. It is made when missing.
	Dir string
	// Nodes are nodes to add to those the cloud knows already.
	Nodes []cloud.Node
	// Zones are the zones of the cloud; empty leaves them as they are, which in a new
	// cloud is cloud.DefaultZone. The zones of Nodes are added.
	Zones []cloud.Zone
	// Connect reaches a node; nil is by the control at its address. A controller
	// that has a method Close is closed with the backend.
	Connect func(cloud.Node) (sim.DiskController, error)
}

// Backend is the controller side. Besides csikit.Backend it implements all further
// interfaces for it.
type Backend struct {
	cloud   *cloud.Cloud
	dir     string
	connect func(cloud.Node) (sim.DiskController, error)

	mu          sync.Mutex
	controllers map[cloud.Node]sim.DiskController
}

// New opens the cloud. Close it after the last call has ended.
func New(config Config) (*Backend, error) {
	if config.Dir == "" {
		return nil, errors.New("simcloud: the cloud has no folder")
	}
	for _, n := range config.Nodes {
		if err := cloud.AddNode(config.Dir, n); err != nil {
			return nil, fmt.Errorf("simcloud: %w", err)
		}
	}
	c, err := cloud.Open(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("simcloud: %w", err)
	}
	if err := c.SetZones(context.Background(), zonesOf(config, c.Zones(context.Background()))); err != nil {
		return nil, errors.Join(fmt.Errorf("simcloud: %w", err), c.Close())
	}
	b := &Backend{cloud: c, dir: config.Dir, connect: config.Connect, controllers: map[cloud.Node]sim.DiskController{}}
	if b.connect == nil {
		b.connect = connectControl
	}
	return b, nil
}

// zonesOf are the zones a cloud is to have.
func zonesOf(config Config, known []cloud.Zone) []cloud.Zone {
	zones := known
	if len(config.Zones) > 0 {
		zones = slices.Clone(config.Zones)
	}
	for _, n := range config.Nodes {
		if n.Zone != "" && !slices.ContainsFunc(zones, func(z cloud.Zone) bool { return z.Name == n.Zone }) {
			zones = append(zones, cloud.Zone{Name: n.Zone})
		}
	}
	return zones
}

func connectControl(n cloud.Node) (sim.DiskController, error) {
	if n.Control == "" {
		return nil, fmt.Errorf("node %q has no control address: %w", n.Name, cloud.ErrNode)
	}
	return control.NewClient(n.Control), nil
}

// Cloud is the cloud behind the backend, for those who look at it or make its disks ill.
func (b *Backend) Cloud() *cloud.Cloud { return b.cloud }

// Close lets go of the nodes and of the cloud's folder.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	for _, c := range b.controllers {
		switch c := c.(type) {
		case interface{ Close() }:
			c.Close()
		case interface{ Close() error }:
			err = errors.Join(err, c.Close())
		}
	}
	clear(b.controllers)
	return errors.Join(err, b.cloud.Close())
}

// node reaches a node the cloud knows, or is cloud.ErrNotFound.
func (b *Backend) node(ctx context.Context, name string) (sim.DiskController, error) {
	n, err := b.cloud.Node(ctx, name)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.controllers[n]; c != nil {
		return c, nil
	}
	c, err := b.connect(n)
	if err == nil {
		b.controllers[n] = c
	}
	return c, err
}

// Probe implements csikit.Prober: the cloud is there as long as its folder is.
func (b *Backend) Probe(context.Context) error {
	if _, err := os.Stat(b.dir); err != nil {
		return fmt.Errorf("folder of the cloud: %w: %w", csikit.ErrUnavailable, err)
	}
	return nil
}

// CheckCapability implements csikit.CapabilityChecker: a disk is one node's at a time.
func (b *Backend) CheckCapability(capability csikit.Capability) error {
	switch capability.AccessMode {
	case csikit.SingleNodeWriter, csikit.SingleNodeReaderOnly, csikit.SingleNodeSingleWriter, csikit.SingleNodeMultiWriter:
		return nil
	}
	return fmt.Errorf("access mode %d, a disk can be attached to one node only: %w", capability.AccessMode, csikit.ErrInvalid)
}

// kinds says what the cloud's errors are to the kit, most telling first.
func kinds() []struct{ cloud, kit error } {
	return []struct{ cloud, kit error }{
		{cloud.ErrNotFound, csikit.ErrNotFound},
		{cloud.ErrAttached, csikit.ErrInUse},
		{cloud.ErrExists, csikit.ErrExists},
		{cloud.ErrSize, csikit.ErrOutOfRange},
		{cloud.ErrInvalid, csikit.ErrInvalid},
		{cloud.ErrInGroup, csikit.ErrInvalid},
		{cloud.ErrUnrelated, csikit.ErrInvalid},
		{cloud.ErrExhausted, csikit.ErrExhausted},
		{cloud.ErrToken, csikit.ErrBadToken},
		{cloud.ErrZone, csikit.ErrPrecondition},
		{cloud.ErrChanging, csikit.ErrBusy},
		{cloud.ErrNode, csikit.ErrUnavailable},
		{errnoFull, csikit.ErrExhausted}, // the file system with the cloud's folder
	}
}

// cloudError is an error of the cloud with the kind the kit knows.
type cloudError struct{ kit, cause error }

func (e *cloudError) Error() string   { return e.cause.Error() }
func (e *cloudError) Unwrap() []error { return []error{e.kit, e.cause} }

// kit gives an error of the cloud its kind. The end of a call's time stays what it is.
func kit(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	for _, k := range kinds() {
		if errors.Is(err, k.cloud) {
			return &cloudError{k.kit, err}
		}
	}
	return err
}
