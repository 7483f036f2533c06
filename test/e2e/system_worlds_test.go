package e2e_test

import (
	"context"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// States of services. Source: winsvc.h.
const (
	serviceStopped = 1
	serviceRunning = 4
	servicePaused  = 7
)

func systemWorlds() map[string]func(*stack.Stack) world {
	return map[string]func(*stack.Stack) world{
		"GetBIOSSerialNumber": func(s *stack.Stack) world { return world{check: untouched(s)} },
		"StartService": func(s *stack.Stack) world {
			return world{check: func() { mustBeInState(s, "MSiSCSI", serviceRunning) }}
		},
		"StopService": func(s *stack.Stack) world {
			ctx := context.Background()
			s.OK(s.Node.SetService(ctx, sim.Service{Name: "MSiSCSI", StartType: 2, State: serviceRunning}))
			s.OK(s.Node.SetService(ctx, sim.Service{Name: "Needs", StartType: 2, State: serviceRunning, DependsOn: []string{"MSiSCSI"}}))
			return world{check: func() {
				mustBeInState(s, "MSiSCSI", serviceStopped)
				mustBeInState(s, "Needs", serviceStopped)
			}}
		},
		"GetService": func(s *stack.Stack) world {
			s.OK(s.Node.SetService(context.Background(), sim.Service{Name: "MSiSCSI", DisplayName: "Schnörkel", StartType: 3, State: servicePaused}))
			return world{check: func() { mustBeInState(s, "MSiSCSI", servicePaused) }}
		},
	}
}

func mustBeInState(s *stack.Stack, service string, state uint32) {
	s.Helper()
	services, err := s.Node.Services(context.Background())
	s.OK(err)
	for _, have := range services {
		if have.Name == service {
			if have.State != state {
				s.Errorf("service %s is in state %d, want %d", service, have.State, state)
			}
			return
		}
	}
	s.Errorf("there is no service %s", service)
}
