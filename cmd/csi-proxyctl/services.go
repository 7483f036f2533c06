package main

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// storageServices are the services that storage on a node hangs on: disk
// management, SMB client and server, iSCSI initiator, and csi-proxy itself.
var storageServices = []string{"csiproxy", "vds", "smphost", "LanmanWorkstation", "LanmanServer", "MSiSCSI"}

// serviceRow is one service of the node.
type serviceRow struct {
	Name    string `json:"name"`
	Display string `json:"displayName,omitempty"`
	Start   string `json:"startType,omitempty"`
	Status  string `json:"status"`
}

var serviceColumns = []column[serviceRow]{
	{"SERVICE", func(r serviceRow) string { return r.Name }},
	{"STATUS", func(r serviceRow) string { return r.Status }},
	{"START", func(r serviceRow) string { return r.Start }},
	{"NAME", func(r serviceRow) string { return r.Display }},
}

var startTypes = map[host.StartType]string{
	host.StartBoot: "boot", host.StartSystem: "system", host.StartAutomatic: "automatic",
	host.StartManual: "manual", host.StartDisabled: "disabled",
}

var serviceStatuses = map[host.ServiceStatus]string{
	host.ServiceUnknown: "unknown", host.ServiceStopped: "stopped", host.ServiceStartPending: "starting",
	host.ServiceStopPending: "stopping", host.ServiceRunning: "running", host.ServiceContinuePending: "continuing",
	host.ServicePausePending: "pausing", host.ServicePaused: "paused",
}

// services describes the named services, or those that storage hangs on when
// none is named. Of the latter a missing one is a row, not an error.
func services(ctx context.Context, h node, names []string) ([]serviceRow, error) {
	tolerant := len(names) == 0
	if tolerant {
		names = storageServices
	}
	var rows []serviceRow
	for _, name := range names {
		info, err := h.GetService(ctx, name)
		switch {
		case err == nil:
			rows = append(rows, serviceRow{Name: name, Display: info.DisplayName, Start: startTypes[info.StartType], Status: serviceStatuses[info.Status]})
		case tolerant && host.IsKind(err, host.KindNotFound):
			rows = append(rows, serviceRow{Name: name, Status: "not installed"})
		default:
			return nil, err
		}
	}
	return rows, nil
}
