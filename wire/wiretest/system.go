package wiretest

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// GetBIOSSerialNumber implements host.System.
func (h *Host) GetBIOSSerialNumber(ctx context.Context) (string, error) {
	return reply(h.SerialNumber, h.record(ctx, "GetBIOSSerialNumber"))
}

// StartService implements host.System.
func (h *Host) StartService(ctx context.Context, name string) error {
	return h.record(ctx, "StartService", name)
}

// StopService implements host.System.
func (h *Host) StopService(ctx context.Context, name string, force bool) error {
	return h.record(ctx, "StopService", name, force)
}

// GetService implements host.System.
func (h *Host) GetService(ctx context.Context, name string) (host.ServiceInfo, error) {
	return reply(h.Service, h.record(ctx, "GetService", name))
}
