package sim

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// Service states and start types. Source: winsvc.h.
const (
	serviceStopped      = 1
	serviceStartPending = 2
	serviceStopPending  = 3
	serviceRunning      = 4
	servicePaused       = 7

	startAutomatic = 2
	startManual    = 3
	startDisabled  = 4
)

// System error numbers of the service manager. Source: winerror.h.
const (
	errCircularDependency    = 1059
	errServiceDependencyFail = 1068
)

// Services whose state other parts of the node depend on.
const (
	serviceISCSI       = "MSiSCSI"
	serviceWorkstation = "LanmanWorkstation"
	serviceDefrag      = "defragsvc"
)

// serviceState is a service with a transition that may be under way.
type serviceState struct {
	Service
	// Pending counts the status queries until the transition is done.
	Pending int `json:"pending,omitempty"`
}

// defaultServices are those of a fresh server that storage has to do with, and
// a few with dependents. Source: the services of Windows Server.
func defaultServices() []*serviceState {
	var out []*serviceState
	add := func(name, display string, start, state uint32, needs ...string) {
		out = append(out, &serviceState{Service: Service{
			Name: name, DisplayName: display, StartType: start, State: state, DependsOn: needs,
		}})
	}
	add("RpcSs", "Remote Procedure Call (RPC)", startAutomatic, serviceRunning)
	add("Winmgmt", "Windows Management Instrumentation", startAutomatic, serviceRunning, "RpcSs")
	add(serviceISCSI, "Microsoft iSCSI Initiator Service", startManual, serviceStopped)
	add(serviceWorkstation, "Workstation", startAutomatic, serviceRunning)
	add("SessionEnv", "Remote Desktop Configuration", startManual, serviceRunning, "RpcSs", serviceWorkstation)
	add("Netlogon", "Netlogon", startManual, serviceStopped, serviceWorkstation)
	add(serviceDefrag, "Optimize drives", startManual, serviceStopped, "RpcSs")
	add("Spooler", "Print Spooler", startAutomatic, serviceRunning, "RpcSs")
	add("kubelet", "kubelet", startAutomatic, serviceRunning)
	return out
}

func (n *Node) serviceLocked(name string) *serviceState {
	for _, s := range n.state.Services {
		if strings.EqualFold(s.Name, name) {
			return s
		}
	}
	return nil
}

// pollLocked moves a pending transition one step on; a status query or a use of
// the service does that. It reports whether the transition ended.
func (n *Node) pollLocked(s *serviceState) bool {
	if s.State != serviceStartPending && s.State != serviceStopPending {
		return false
	}
	if s.Pending--; s.Pending > 0 {
		return false
	}
	s.Pending = 0
	if s.State == serviceStopPending {
		s.State = serviceStopped
		return true
	}
	s.State = serviceRunning
	if s.Name == serviceISCSI {
		n.restoreLoginsLocked()
	}
	return true
}

// runningLocked reports whether a service serves now; asking lets time pass for it.
func (n *Node) runningLocked(name string) bool {
	s := n.serviceLocked(name)
	if s == nil {
		return false
	}
	n.pollLocked(s)
	return s.State == serviceRunning
}

// QueryService implements win32.API. Source: QueryServiceConfigW, QueryServiceStatus.
func (n *Node) QueryService(ctx context.Context, name string) (win32.ServiceConfig, win32.ServiceStatus, error) {
	type answer struct {
		config win32.ServiceConfig
		status win32.ServiceStatus
	}
	a, err := gated(ctx, &n.gate, site{prefix: "win32.QueryService", object: name}, func() (answer, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		s, err := n.openServiceLocked("QueryService", name)
		if err != nil {
			return answer{}, err
		}
		if n.pollLocked(s) {
			if err := n.saveLocked(); err != nil {
				return answer{}, err
			}
		}
		return answer{
			win32.ServiceConfig{DisplayName: s.DisplayName, StartType: s.StartType},
			win32.ServiceStatus{State: s.State, Win32ExitCode: s.ExitCode},
		}, nil
	})
	return a.config, a.status, err
}

func (n *Node) openServiceLocked(call, name string) (*serviceState, error) {
	if n.off.Load() {
		return nil, n.poweredOff(call, name)
	}
	s := n.serviceLocked(name)
	if s == nil {
		return nil, &win32.Error{Call: call, Object: name, Code: win32.ErrServiceNotExist}
	}
	return s, nil
}

// StartService implements win32.API. The service control manager starts the
// services it depends on first. Source: StartServiceW.
func (n *Node) StartService(ctx context.Context, name string) error {
	return n.serviceCall(ctx, "StartService", name, n.startLocked)
}

// StopService implements win32.API. Source: ControlService, SERVICE_CONTROL_STOP.
func (n *Node) StopService(ctx context.Context, name string) error {
	return n.serviceCall(ctx, "StopService", name, n.stopLocked)
}

func (n *Node) serviceCall(ctx context.Context, call, name string, do func(*serviceState) uint32) error {
	_, err := gated(ctx, &n.gate, site{prefix: "win32." + call, object: name}, func() (struct{}, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		s, err := n.openServiceLocked(call, name)
		if err != nil {
			return struct{}{}, err
		}
		if code := do(s); code != 0 {
			return struct{}{}, &win32.Error{Call: call, Object: name, Code: code}
		}
		return struct{}{}, n.saveLocked()
	})
	return err
}

func (n *Node) startLocked(s *serviceState) uint32 { return n.startChainLocked(s, nil) }

// startChainLocked starts a service that those of the chain wait for.
func (n *Node) startChainLocked(s *serviceState, chain []*serviceState) uint32 {
	switch {
	case slices.Contains(chain, s):
		return errCircularDependency
	case s.State == serviceStopPending:
		return win32.ErrCannotAcceptCtrl
	case s.State != serviceStopped:
		return win32.ErrAlreadyRunning
	case s.StartType == startDisabled:
		return win32.ErrServiceDisabled
	case s.FailStart != 0:
		return s.FailStart
	}
	for _, name := range s.DependsOn {
		needed := n.serviceLocked(name)
		if needed == nil {
			return errServiceDependencyFail
		}
		if needed.State != serviceStopped {
			continue
		}
		switch n.startChainLocked(needed, append(chain, s)) {
		case 0:
		case errCircularDependency:
			return errCircularDependency
		default:
			return errServiceDependencyFail
		}
	}
	n.beginTransition(s, serviceStartPending)
	return 0
}

func (n *Node) stopLocked(s *serviceState) uint32 {
	switch {
	case s.State == serviceStopped:
		return win32.ErrServiceNotActive
	case s.State != serviceRunning && s.State != servicePaused:
		return win32.ErrCannotAcceptCtrl
	case len(n.activeDependentsLocked(s.Name)) > 0:
		return win32.ErrDependentsRunning
	}
	n.beginTransition(s, serviceStopPending)
	return 0
}

func (n *Node) beginTransition(s *serviceState, state uint32) {
	s.State, s.ExitCode = state, 0
	s.Pending = s.Polls
	if s.Pending == 0 {
		s.Pending = n.config.ServicePolls
	}
	if s.Pending < 0 {
		n.pollLocked(s)
	}
}

// RunningDependents implements win32.API. The order is that in which the
// services have to be stopped. Source: EnumDependentServicesW.
func (n *Node) RunningDependents(ctx context.Context, name string) ([]string, error) {
	return gated(ctx, &n.gate, site{prefix: "win32.RunningDependents", object: name}, func() ([]string, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		s, err := n.openServiceLocked("RunningDependents", name)
		if err != nil {
			return nil, err
		}
		return n.activeDependentsLocked(s.Name), nil
	})
}

func (n *Node) activeDependentsLocked(name string) []string {
	var out []string
	seen := map[string]bool{strings.ToLower(name): true}
	var visit func(name string)
	visit = func(name string) {
		for _, s := range n.state.Services {
			folded := strings.ToLower(s.Name)
			if seen[folded] || s.State == serviceStopped ||
				!slices.ContainsFunc(s.DependsOn, func(d string) bool { return strings.EqualFold(d, name) }) {
				continue
			}
			seen[folded] = true
			visit(s.Name)
			out = append(out, s.Name)
		}
	}
	visit(name)
	return out
}

// SetService implements SystemController.
func (n *Node) SetService(_ context.Context, service Service) error {
	if service.Name == "" || service.State == 0 {
		return errors.New("set service: name and state are needed")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.serviceLocked(service.Name); s != nil {
		*s = serviceState{Service: service}
	} else {
		n.state.Services = append(n.state.Services, &serviceState{Service: service})
	}
	if service.State == serviceStartPending || service.State == serviceStopPending {
		s := n.serviceLocked(service.Name)
		n.beginTransition(s, s.State)
	}
	return n.saveLocked()
}

// Services implements SystemController.
func (n *Node) Services(context.Context) ([]Service, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	out := make([]Service, 0, len(n.state.Services))
	for _, s := range n.state.Services {
		out = append(out, s.Service)
	}
	return out, nil
}
