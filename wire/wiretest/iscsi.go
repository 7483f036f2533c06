package wiretest

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// AddTargetPortal implements host.ISCSI.
func (h *Host) AddTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	return h.record(ctx, "AddTargetPortal", portal)
}

// DiscoverTargetPortal implements host.ISCSI.
func (h *Host) DiscoverTargetPortal(ctx context.Context, portal host.TargetPortal) ([]string, error) {
	return reply(h.IQNs, h.record(ctx, "DiscoverTargetPortal", portal))
}

// RemoveTargetPortal implements host.ISCSI.
func (h *Host) RemoveTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	return h.record(ctx, "RemoveTargetPortal", portal)
}

// ListTargetPortals implements host.ISCSI.
func (h *Host) ListTargetPortals(ctx context.Context) ([]host.TargetPortal, error) {
	return reply(h.Portals, h.record(ctx, "ListTargetPortals"))
}

// ConnectTarget implements host.ISCSI.
func (h *Host) ConnectTarget(ctx context.Context, portal host.TargetPortal, iqn string, options host.ConnectOptions) error {
	return h.record(ctx, "ConnectTarget", portal, iqn, options)
}

// DisconnectTarget implements host.ISCSI.
func (h *Host) DisconnectTarget(ctx context.Context, portal host.TargetPortal, iqn string) error {
	return h.record(ctx, "DisconnectTarget", portal, iqn)
}

// GetTargetDisks implements host.ISCSI.
func (h *Host) GetTargetDisks(ctx context.Context, portal host.TargetPortal, iqn string) ([]uint32, error) {
	return reply(h.TargetDisks, h.record(ctx, "GetTargetDisks", portal, iqn))
}

// SetMutualChapSecret implements host.ISCSI.
func (h *Host) SetMutualChapSecret(ctx context.Context, secret string) error {
	return h.record(ctx, "SetMutualChapSecret", secret)
}

// ListTargets implements host.ISCSI.
func (h *Host) ListTargets(ctx context.Context) ([]host.TargetInfo, error) {
	return reply(h.Targets, h.record(ctx, "ListTargets"))
}
