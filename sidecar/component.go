package sidecar

import "context"

// Component is one controller of a sidecar.
type Component interface {
	// Name is the component's name in --controllers, in logs and metrics.
	Name() string
	// Run works until ctx ends, and then returns nil, or until it cannot go on,
	// and then returns why. Nothing of it runs any more once it has returned;
	// it may be called again after that.
	Run(ctx context.Context) error
}

// The names of the components, as --controllers takes them.
const (
	Registrar     = "node-driver-registrar"
	Provisioner   = "provisioner"
	Attacher      = "attacher"
	Resizer       = "resizer"
	Snapshotter   = "snapshotter"
	LivenessProbe = "livenessprobe"
	// DriverObject makes and checks the CSIDriver object, and checks what nodes
	// registered.
	DriverObject = "csidriver"
)
