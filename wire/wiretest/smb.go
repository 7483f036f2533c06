package wiretest

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// NewSmbGlobalMapping implements host.SMB.
func (h *Host) NewSmbGlobalMapping(ctx context.Context, remotePath, localPath, username, password string) error {
	return h.record(ctx, "NewSmbGlobalMapping", remotePath, localPath, username, password)
}

// RemoveSmbGlobalMapping implements host.SMB.
func (h *Host) RemoveSmbGlobalMapping(ctx context.Context, remotePath string) error {
	return h.record(ctx, "RemoveSmbGlobalMapping", remotePath)
}

// ListSmbGlobalMappings implements host.SMB.
func (h *Host) ListSmbGlobalMappings(ctx context.Context) ([]host.SmbMapping, error) {
	return reply(h.Mappings, h.record(ctx, "ListSmbGlobalMappings"))
}
