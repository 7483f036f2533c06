// Package csiclient is a sidecar's one connection to its CSI driver: it knows
// the driver's name and capabilities, sees when the driver was replaced, and
// says whether an error leaves the work undone for sure.
package csiclient

import (
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// Driver is a CSI driver that answers at an address.
type Driver struct {
	conn *grpc.ClientConn
	link *link // nil for one that is not watched

	mu      sync.Mutex
	info    Info
	changed chan struct{}
}

// Info is what a driver says of itself. It holds for one run of the driver.
type Info struct {
	// Name is the driver's name, the provisioner of storage classes.
	Name string
	// VendorVersion is informational.
	VendorVersion   string
	Plugin          map[csi.PluginCapability_Service_Type]bool
	Expansion       map[csi.PluginCapability_VolumeExpansion_Type]bool
	Controller      map[csi.ControllerServiceCapability_RPC_Type]bool
	GroupController map[csi.GroupControllerServiceCapability_RPC_Type]bool
}

// New wraps a connection whose driver said info of itself. Tests use it;
// programs use Connect.
func New(conn *grpc.ClientConn, info Info) *Driver {
	return &Driver{conn: conn, info: info, changed: make(chan struct{})}
}

// Conn is the connection, for the clients made of the CSI descriptors. Every
// call on it is counted and logged without its secrets.
func (d *Driver) Conn() *grpc.ClientConn { return d.conn }

// Info is what the driver said of itself when this run of it was met.
func (d *Driver) Info() Info {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.info
}

// Name is the driver's name. It never changes.
func (d *Driver) Name() string { return d.Info().Name }

// Changed is closed when a driver is met that has other capabilities than those
// Info tells of now.
func (d *Driver) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// replace puts what a new run of the driver says of itself in the place of what
// the last one said.
func (d *Driver) replace(info Info, isOther bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.info = info
	if isOther {
		close(d.changed)
		d.changed = make(chan struct{})
	}
}
