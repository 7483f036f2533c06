package bed

import (
	"testing"
	"time"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// serviceTime bounds the wait for a service; long, as the machine may be busy.
const serviceTime = 30 * time.Second

// ServiceManager is that of the machine, until the end of the test.
func ServiceManager(t testing.TB) *mgr.Mgr {
	t.Helper()
	manager, err := mgr.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Disconnect() })
	return manager
}

// WaitState waits until a service is in a state.
func WaitState(t testing.TB, service *mgr.Service, want svc.State) svc.Status {
	t.Helper()
	for deadline := time.Now().Add(serviceTime); ; time.Sleep(20 * time.Millisecond) {
		status, err := service.Query()
		if err != nil {
			t.Fatalf("service %s: %v", service.Name, err)
		}
		if status.State == want {
			return status
		}
		if time.Now().After(deadline) {
			t.Fatalf("service %s is in state %d after %s, want %d", service.Name, status.State, serviceTime, want)
		}
	}
}
