package agent

import (
	"context"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// GetBIOSSerialNumber implements host.System.
func (a *Agent) GetBIOSSerialNumber(ctx context.Context) (string, error) {
	return nodeQuery(ctx, a, "GetBIOSSerialNumber", a.os.BIOSSerialNumber)
}

// GetService implements host.System.
func (a *Agent) GetService(ctx context.Context, name string) (host.ServiceInfo, error) {
	c := a.query("GetService", serviceObject(name))
	if err := checkServiceName(name); err != nil {
		return host.ServiceInfo{}, c.refused(err)
	}
	return run(ctx, c, []want{shared(lockService, 0, host.FoldName(name))}, func(ctx context.Context) (host.ServiceInfo, error) {
		return a.os.Service(ctx, name)
	})
}

// checkServiceName checks the name of a service.
// Source: CreateServiceW, lpServiceName: at most 256 characters, no slashes.
func checkServiceName(name string) error {
	const unitsMax = 256
	switch {
	case name == "":
		return invalid("name", "service name is empty")
	case utf16Units(name, unitsMax) > unitsMax:
		return invalid("name", "service name is longer than %d characters", unitsMax)
	case hasControl(name) || strings.ContainsAny(name, `/\`):
		return invalid("name", "service name has a slash or control character")
	}
	return nil
}

func serviceObject(name string) string { return "service " + host.PrintableText(name) }

// serviceChange carries out a change of one service.
func (a *Agent) serviceChange(ctx context.Context, op, name string, do func(context.Context) error) error {
	c := a.mutation(ctx, op, serviceObject(name))
	if err := checkServiceName(name); err != nil {
		return c.refused(err)
	}
	return exec(ctx, c, []want{exclusive(lockService, 0, host.FoldName(name))}, do)
}

// StartService implements host.System.
func (a *Agent) StartService(ctx context.Context, name string) error {
	return a.serviceChange(ctx, "StartService", name, func(ctx context.Context) error {
		info, err := a.os.Service(ctx, name)
		if err != nil || info.Status == host.ServiceRunning {
			return err
		}
		if info.Status == host.ServiceStopPending {
			// The service manager refuses a start until the stop is done.
			if err := a.awaitService(ctx, name, host.ServiceStopped); err != nil {
				return err
			}
		}
		if info.Status != host.ServiceStartPending {
			if err := unlessKind(host.KindExists, a.os.StartService(ctx, name)); err != nil {
				return err
			}
		}
		return a.awaitService(ctx, name, host.ServiceRunning)
	})
}

// StopService implements host.System.
func (a *Agent) StopService(ctx context.Context, name string, force bool) error {
	return a.serviceChange(ctx, "StopService", name, func(ctx context.Context) error {
		info, err := a.os.Service(ctx, name)
		if err != nil || info.Status == host.ServiceStopped {
			return err
		}
		dependents, err := a.os.RunningDependents(ctx, name)
		if err != nil {
			return err
		}
		if len(dependents) > 0 && !force {
			return refuse(host.KindPrecondition, "running services depend on it: %s", strings.Join(dependents, ", "))
		}
		for _, dependent := range dependents {
			if err := a.stopOne(ctx, dependent); err != nil {
				return err
			}
		}
		return a.stopOne(ctx, name)
	})
}

// stopOne stops a service nothing running depends on, and waits until it is stopped.
func (a *Agent) stopOne(ctx context.Context, name string) error {
	info, err := a.os.Service(ctx, name)
	if err != nil || info.Status == host.ServiceStopped {
		return err
	}
	if info.Status != host.ServiceStopPending {
		if err := unlessKind(host.KindExists, a.os.StopService(ctx, name)); err != nil {
			return err
		}
	}
	return a.awaitService(ctx, name, host.ServiceStopped)
}

// awaitService waits until a service has the status. A service that stops
// while it is to start has failed, and one that is paused stays so: Windows says
// of it that it runs already.
func (a *Agent) awaitService(ctx context.Context, name string, status host.ServiceStatus) error {
	ticker := time.NewTicker(a.policy.PollInterval)
	defer ticker.Stop()
	for {
		info, err := a.os.Service(ctx, name)
		if err != nil || info.Status == status {
			return err
		}
		if status == host.ServiceRunning && info.Status == host.ServiceStopped {
			return refuse(host.KindUnavailable, "%s stopped again while it started", serviceObject(name))
		}
		if status == host.ServiceRunning && info.Status == host.ServicePaused {
			return refuse(host.KindPrecondition, "%s is paused", serviceObject(name))
		}
		select {
		case <-ctx.Done():
			return refuse(host.KindTimeout, "%s is in state %d: %w", serviceObject(name), info.Status, ctx.Err())
		case <-ticker.C:
		}
	}
}
