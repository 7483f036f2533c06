package worlds

import (
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
)

// SimServices are those of the simulated node itself.
type SimServices struct{ Control *control.Client }

func (s SimServices) set(t *testing.T, service sim.Service) {
	t.Helper()
	if err := s.Control.SetService(t.Context(), service); err != nil {
		t.Fatal(err)
	}
}

// SetInitiator implements Services.
func (s SimServices) SetInitiator(t *testing.T, run bool) {
	t.Helper()
	state := uint32(stopped)
	if run {
		state = running
	}
	s.set(t, sim.Service{Name: initiator, DisplayName: "Microsoft iSCSI Initiator Service", StartType: 3, State: state})
}

// AddDependent implements Services.
func (s SimServices) AddDependent(t *testing.T) string {
	t.Helper()
	s.set(t, sim.Service{Name: "Needs", StartType: 2, State: running, DependsOn: []string{initiator}})
	return "Needs"
}

// AddDescribed implements Services.
func (s SimServices) AddDescribed(t *testing.T) []string {
	t.Helper()
	s.set(t, sim.Service{Name: initiator, DisplayName: "Schnörkel", StartType: 3, State: paused})
	return nil
}

// State implements Services.
func (s SimServices) State(t *testing.T, name string) uint32 {
	t.Helper()
	services, err := s.Control.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range services {
		if service.Name == name {
			return service.State
		}
	}
	t.Fatalf("there is no service %s", name)
	return 0
}
