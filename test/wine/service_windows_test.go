package wine

import (
	"testing"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/wire"
)

// install registers csi-proxy.exe as a service with some flags, and removes it
// at the end of the test.
func install(t *testing.T, name string, flags ...string) *mgr.Service {
	t.Helper()
	service, err := bed.ServiceManager(t).CreateService(name, bed.Environment(t, bed.ProxyVariable), mgr.Config{StartType: mgr.StartAutomatic}, append(flags, "-windows-service")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = service.Control(svc.Stop)
		if err := service.Delete(); err != nil {
			t.Error(err)
		}
		_ = service.Close()
	})
	return service
}

func TestC061_ServiceStartsServesAndStops(t *testing.T) {
	service := install(t, "csi-proxy-test", simFlags(t, "-grace-period=5s")...)
	for range 2 { // a stopped service starts again
		if err := service.Start(); err != nil {
			t.Fatal(err)
		}
		bed.WaitState(t, service, svc.Running)
		if !canDial(t, wire.API{Group: "disk", Version: "v1"}) {
			t.Fatal("the service runs, but its pipe cannot be opened")
		}
		if _, err := service.Control(svc.Stop); err != nil {
			t.Fatal(err)
		}
		if status := bed.WaitState(t, service, svc.Stopped); status.Win32ExitCode != 0 {
			t.Errorf("exit code %d (service-specific %d), want 0", status.Win32ExitCode, status.ServiceSpecificExitCode)
		}
		if canDial(t, wire.API{Group: "disk", Version: "v1"}) {
			t.Error("the service is stopped, but its pipe can be opened")
		}
	}
}

func TestC058_ServiceTellsItsStage(t *testing.T) {
	for name, test := range map[string]struct {
		flags []string
		stage uint32
	}{
		"bad flag":         {simFlags(t, "-grace-period=1h"), 2},
		"log not writable": {simFlags(t, "-logtostderr=false", `-log_file=C:\windows`), 3},
		"metrics address":  {simFlags(t, "-metrics-bind-address=203.0.113.1:1"), 6},
	} {
		t.Run(name, func(t *testing.T) {
			service := install(t, "csi-proxy-stage", test.flags...)
			_ = service.Start() // whether this fails depends on who is faster
			status := bed.WaitState(t, service, svc.Stopped)
			if status.Win32ExitCode != uint32(windows.ERROR_SERVICE_SPECIFIC_ERROR) || status.ServiceSpecificExitCode != test.stage {
				t.Errorf("exit code %d, service-specific %d; want 1066 and %d", status.Win32ExitCode, status.ServiceSpecificExitCode, test.stage)
			}
		})
	}
}
