package host

import "context"

// StartType is how a service starts. The numbers are those of the wire.
type StartType int32

// The start types.
const (
	StartBoot      StartType = 0
	StartSystem    StartType = 1
	StartAutomatic StartType = 2
	StartManual    StartType = 3
	StartDisabled  StartType = 4
)

// ServiceStatus is the state of a service. The numbers are those of the wire,
// not those of Win32 (which has no name for 0).
type ServiceStatus int32

// The service states.
const (
	ServiceUnknown         ServiceStatus = 0
	ServiceStopped         ServiceStatus = 1
	ServiceStartPending    ServiceStatus = 2
	ServiceStopPending     ServiceStatus = 3
	ServiceRunning         ServiceStatus = 4
	ServiceContinuePending ServiceStatus = 5
	ServicePausePending    ServiceStatus = 6
	ServicePaused          ServiceStatus = 7
)

// ServiceInfo describes one service of the node.
type ServiceInfo struct {
	DisplayName string
	StartType   StartType
	Status      ServiceStatus
}

// System is the system group.
type System interface {
	// GetBIOSSerialNumber returns the serial number of the machine.
	GetBIOSSerialNumber(ctx context.Context) (string, error)
	// StartService starts a service and waits until it runs. A running one is
	// success; a disabled one is KindPrecondition.
	StartService(ctx context.Context, name string) error
	// StopService stops a service and waits until it is stopped. A stopped one
	// is success. Running dependents are KindPrecondition unless force is set,
	// which stops them first.
	StopService(ctx context.Context, name string, force bool) error
	// GetService describes a service.
	GetService(ctx context.Context, name string) (ServiceInfo, error)
}
