// Package service installs a program as a Windows service, changes it, replaces its
// program by a newer one and removes it. What it asks the service control manager
// is behind an interface; everything else is portable.
package service

import (
	"context"
	"errors"
	"time"
)

// Definition is a service as it should be registered. It runs as SYSTEM and starts
// with the machine.
type Definition struct {
	Name, DisplayName, Description string

	Program string   // full path
	Args    []string // of the program, not quoted

	// RestartDelays are how long the manager waits before it restarts the service
	// after its first, second … failure; the last one is for all later failures.
	RestartDelays []time.Duration
	// ResetTime is how long the service has to run until its failures are forgotten.
	ResetTime time.Duration
	// PreshutdownTime is how long the service may take to stop when the machine does.
	PreshutdownTime time.Duration
	// Privileges are all that the service keeps of those of its account.
	Privileges []string
}

// Registration is a service as it is registered.
type Registration struct {
	Program     string
	Args        []string
	DisplayName string
	Account     string
	StartType   string // "automatic", "delayed", "manual", "disabled" or another word of Windows
}

// State is what a service does.
type State string

// The states. Those that pause a service do not occur with ours.
const (
	Stopped  State = "stopped"
	Starting State = "starting"
	Running  State = "running"
	Stopping State = "stopping"
	Other    State = "paused"
)

// Status is what the manager says of a service.
type Status struct {
	State State
	PID   uint32 // 0 while it does not run
	// ExitCode is how it ended last, a Windows error. When that is
	// ServiceSpecificError, ServiceExitCode is the program's own number.
	ExitCode        uint32
	ServiceExitCode uint32
}

// ServiceSpecificError is the exit code of a service that has one of its own.
//
// Source: ERROR_SERVICE_SPECIFIC_ERROR.
const ServiceSpecificError = 1066

// ErrNotInstalled is a service that the manager does not know.
var ErrNotInstalled = errors.New("the service is not installed")

// ErrDenied is a manager or a service that this account may not change.
var ErrDenied = errors.New("access is denied; run this as a member of Administrators with all rights (elevated), or as SYSTEM")

// ErrBusy is another installer at work.
var ErrBusy = errors.New("another csi-proxy installs, upgrades or uninstalls at the moment; try again when it has ended")

// Manager is a service control manager, and the registry of event sources. Its
// methods do not wait for a service to change its state.
type Manager interface {
	// Lock keeps other installers of this machine away until release is called or the
	// process ends. While one has the lock, the others get ErrBusy.
	Lock() (release func(), err error)
	// Lookup returns how a service is registered and what it does, or ErrNotInstalled.
	Lookup(name string) (Registration, Status, error)
	// Create registers a service.
	Create(d Definition) error
	// Change registers it anew: program, arguments, display name, automatic start.
	Change(d Definition) error
	// Refine sets what a service has besides. A manager that does not know one of
	// these settings, as older ones do not, refuses that alone: it is named.
	Refine(d Definition) (refused []string, err error)
	// Start starts a service.
	Start(name string) error
	// Stop asks a service to stop. A service that does not run is stopped already.
	Stop(name string) error
	// Kill ends the process of a service, and waits until it is gone. It is for one
	// that hangs where it takes no request to stop.
	Kill(name string) error
	// Delete removes a service as soon as nobody has it open any more.
	Delete(name string) error
	// AddEventSource registers a source of the Application log. It may be there.
	AddEventSource(source string) error
	// RemoveEventSource removes it. It may be gone.
	RemoveEventSource(source string) error
}

// pause waits between two looks, or until ctx ends.
func pause(ctx context.Context, interval time.Duration) error {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
