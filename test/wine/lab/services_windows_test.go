package lab

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/csi-windows/csi-windows/test/wine/bed"
)

const (
	initiator   = "MSiSCSI"
	needsName   = "CsiLabNeeds"
	describedAs = "CsiLabDescribed"
	// serviceExe is the stand-in for the initiator's service; its argument is the
	// name under which it runs.
	serviceExe = `C:\windows\system32\csiiscsi.exe`
	startTries = 3
)

// managedServices are those of the service manager.
type managedServices struct{ manager *mgr.Mgr }

func newManagedServices(t *testing.T) *managedServices {
	t.Helper()
	s := &managedServices{bed.ServiceManager(t)}
	t.Cleanup(func() {
		s.remove(t, needsName)
		s.remove(t, describedAs)
	})
	return s
}

// SetInitiator implements worlds.Services.
func (s *managedServices) SetInitiator(t *testing.T, run bool) {
	t.Helper()
	s.remove(t, needsName)
	s.remove(t, describedAs)
	if run {
		s.start(t, initiator)
	} else {
		s.stop(t, initiator)
	}
}

// AddDependent implements worlds.Services.
func (s *managedServices) AddDependent(t *testing.T) string {
	t.Helper()
	s.create(t, needsName, mgr.Config{DisplayName: needsName, StartType: mgr.StartManual, Dependencies: []string{initiator}})
	s.start(t, needsName)
	return needsName
}

// AddDescribed implements worlds.Services.
func (s *managedServices) AddDescribed(t *testing.T) []string {
	t.Helper()
	s.create(t, describedAs, mgr.Config{DisplayName: "Schnörkel", StartType: mgr.StartManual})
	s.start(t, describedAs)
	return []string{initiator, describedAs, "PAUSED", "RUNNING"}
}

// State implements worlds.Services.
func (s *managedServices) State(t *testing.T, name string) uint32 {
	t.Helper()
	service := s.open(t, name)
	defer func() { _ = service.Close() }()
	status, err := service.Query()
	if err != nil {
		t.Fatal(err)
	}
	return uint32(status.State)
}

func (s *managedServices) open(t *testing.T, name string) *mgr.Service {
	t.Helper()
	service, err := s.manager.OpenService(name)
	if err != nil {
		t.Fatalf("service %s: %v", name, err)
	}
	return service
}

func (s *managedServices) create(t *testing.T, name string, config mgr.Config) {
	t.Helper()
	service, err := s.manager.CreateService(name, serviceExe, config, name)
	if err != nil {
		t.Fatalf("service %s: %v", name, err)
	}
	_ = service.Close()
}

func (s *managedServices) start(t *testing.T, name string) {
	t.Helper()
	service := s.open(t, name)
	defer func() { _ = service.Close() }()
	if status, err := service.Query(); err == nil && status.State == svc.Running {
		return
	}
	// Wine's manager, under load, sometimes fails to reach a service it has started.
	var err error
	for range startTries {
		if err = service.Start(); err == nil || errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
			break
		}
		time.Sleep(time.Second)
	}
	if err != nil && !errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
		t.Fatalf("service %s: %v", name, err)
	}
	bed.WaitState(t, service, svc.Running)
}

func (s *managedServices) stop(t *testing.T, name string) {
	t.Helper()
	service := s.open(t, name)
	defer func() { _ = service.Close() }()
	if status, err := service.Query(); err == nil && status.State == svc.Stopped {
		return
	}
	if _, err := service.Control(svc.Stop); err != nil {
		t.Fatalf("service %s: %v", name, err)
	}
	bed.WaitState(t, service, svc.Stopped)
}

// remove stops and deletes a service that may not be there.
func (s *managedServices) remove(t *testing.T, name string) {
	t.Helper()
	service, err := s.manager.OpenService(name)
	if err != nil {
		return
	}
	_ = service.Close()
	s.stop(t, name)
	service = s.open(t, name)
	defer func() { _ = service.Close() }()
	if err := service.Delete(); err != nil {
		t.Errorf("service %s: %v", name, err)
	}
}
