package winos_test

import (
	"slices"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

func TestBIOSSerialNumber(t *testing.T) {
	t.Parallel()
	_, os := newNode(t, sim.Config{BIOSSerial: "  VMware-42 1d  "})
	serial, err := os.BIOSSerialNumber(t.Context())
	isTrue(t, err == nil && serial == "VMware-42 1d", "serial %q, %v", serial, err)
}

func TestC055_Services(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{ServicePolls: -1})
	for _, service := range []sim.Service{
		{Name: "base", DisplayName: "Base service", StartType: 2, State: 4},
		{Name: "above", StartType: 3, State: 4, DependsOn: []string{"base"}},
		{Name: "off", StartType: 4, State: 1},
		{Name: "odd", StartType: 77, State: 99},
		{Name: "paused", StartType: 0, State: 7},
	} {
		must(t, node.SetService(t.Context(), service))
	}
	for name, want := range map[string]host.ServiceInfo{
		"BASE":   {DisplayName: "Base service", StartType: host.StartAutomatic, Status: host.ServiceRunning},
		"off":    {StartType: host.StartDisabled, Status: host.ServiceStopped},
		"paused": {StartType: host.StartBoot, Status: host.ServicePaused},
		"odd":    {StartType: host.StartBoot, Status: host.ServiceUnknown},
	} {
		got, err := os.Service(t.Context(), name)
		isTrue(t, err == nil && got == want, "%s is %+v, %v; want %+v", name, got, err, want)
	}
	_, err := os.Service(t.Context(), "none")
	wantKind(t, err, host.KindNotFound)
	wantKind(t, os.StartService(t.Context(), "none"), host.KindNotFound)
	wantKind(t, os.StartService(t.Context(), "base"), host.KindExists)
	wantKind(t, os.StartService(t.Context(), "off"), host.KindPrecondition)
	wantKind(t, os.StopService(t.Context(), "off"), host.KindExists)
	wantKind(t, os.StopService(t.Context(), "base"), host.KindPrecondition)
	names, err := os.RunningDependents(t.Context(), "base")
	isTrue(t, err == nil && slices.Equal(names, []string{"above"}), "dependents %q, %v", names, err)
	must(t, os.StopService(t.Context(), "above"))
	must(t, os.StopService(t.Context(), "base"))
	must(t, os.StartService(t.Context(), "base"))
}
