package client

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// NewSmbGlobalMapping implements host.SMB.
func (c *Client) NewSmbGlobalMapping(ctx context.Context, remotePath, localPath, username, password string) error {
	return do[*wirepb.NewSmbGlobalMappingResponse](ctx, c, wire.GroupSMB, &wirepb.NewSmbGlobalMappingRequest{
		RemotePath: remotePath, LocalPath: localPath, Username: username, Password: password,
	})
}

// RemoveSmbGlobalMapping implements host.SMB.
func (c *Client) RemoveSmbGlobalMapping(ctx context.Context, remotePath string) error {
	return do[*wirepb.RemoveSmbGlobalMappingResponse](ctx, c, wire.GroupSMB, &wirepb.RemoveSmbGlobalMappingRequest{RemotePath: remotePath})
}

// ListSmbGlobalMappings implements host.SMB.
func (c *Client) ListSmbGlobalMappings(ctx context.Context) ([]host.SmbMapping, error) {
	answer, err := call[*wirepb.ListSmbGlobalMappingsResponse](ctx, c, wire.GroupExtension, &wirepb.ListSmbGlobalMappingsRequest{})
	if err != nil {
		return nil, err
	}
	mappings := make([]host.SmbMapping, len(answer.GetMappings()))
	for i, m := range answer.GetMappings() {
		mappings[i] = host.SmbMapping{
			RemotePath: m.GetRemotePath(), LocalPath: m.GetLocalPath(),
			RequirePrivacy: m.GetRequirePrivacy(), Status: host.SmbMappingStatus(m.GetStatus()),
		}
	}
	return mappings, nil
}
