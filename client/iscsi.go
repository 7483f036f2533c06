package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

func targetPortal(p host.TargetPortal) *wirepb.TargetPortal {
	return &wirepb.TargetPortal{TargetAddress: p.Address, TargetPort: p.Port}
}

// AddTargetPortal implements host.ISCSI.
func (c *Client) AddTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	return do[*wirepb.AddTargetPortalResponse](ctx, c, wire.GroupISCSI, &wirepb.AddTargetPortalRequest{TargetPortal: targetPortal(portal)})
}

// DiscoverTargetPortal implements host.ISCSI.
func (c *Client) DiscoverTargetPortal(ctx context.Context, portal host.TargetPortal) ([]string, error) {
	answer, err := call[*wirepb.DiscoverTargetPortalResponse](ctx, c, wire.GroupISCSI,
		&wirepb.DiscoverTargetPortalRequest{TargetPortal: targetPortal(portal)})
	return answer.GetIqns(), err
}

// RemoveTargetPortal implements host.ISCSI.
func (c *Client) RemoveTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	return do[*wirepb.RemoveTargetPortalResponse](ctx, c, wire.GroupISCSI, &wirepb.RemoveTargetPortalRequest{TargetPortal: targetPortal(portal)})
}

// ListTargetPortals implements host.ISCSI.
func (c *Client) ListTargetPortals(ctx context.Context) ([]host.TargetPortal, error) {
	answer, err := call[*wirepb.ListTargetPortalsResponse](ctx, c, wire.GroupISCSI, &wirepb.ListTargetPortalsRequest{})
	if err != nil {
		return nil, err
	}
	portals := make([]host.TargetPortal, len(answer.GetTargetPortals()))
	for i, portal := range answer.GetTargetPortals() {
		portals[i] = host.TargetPortal{Address: portal.GetTargetAddress(), Port: portal.GetTargetPort()}
	}
	return portals, nil
}

// ConnectTarget implements host.ISCSI. A persistent login is an addition, which only
// the extension group can carry.
func (c *Client) ConnectTarget(ctx context.Context, portal host.TargetPortal, iqn string, options host.ConnectOptions) error {
	if options.Persistent {
		return withoutOption("persistent logins", do[*wirepb.ConnectTargetWithResponse](ctx, c, wire.GroupExtension, &wirepb.ConnectTargetWithRequest{
			TargetPortal: targetPortal(portal), Iqn: iqn, AuthType: wirepb.AuthenticationType(options.AuthType),
			ChapUsername: options.ChapUsername, ChapSecret: options.ChapSecret, IsPersistent: true,
		}))
	}
	return do[*wirepb.ConnectTargetResponse](ctx, c, wire.GroupISCSI, &wirepb.ConnectTargetRequest{
		TargetPortal: targetPortal(portal), Iqn: iqn, AuthType: wirepb.AuthenticationType(options.AuthType),
		ChapUsername: options.ChapUsername, ChapSecret: options.ChapSecret,
	})
}

// withoutOption names the option in the error of a server that lacks it.
func withoutOption(option string, err error) error {
	var failure *host.Error
	if !host.IsKind(err, host.KindUnsupported) || !errors.As(err, &failure) {
		return err
	}
	named := *failure
	named.Cause = fmt.Errorf("the csi-proxy of the node cannot do %s: %w", option, failure.Cause)
	return &named
}

// DisconnectTarget implements host.ISCSI.
func (c *Client) DisconnectTarget(ctx context.Context, portal host.TargetPortal, iqn string) error {
	return do[*wirepb.DisconnectTargetResponse](ctx, c, wire.GroupISCSI,
		&wirepb.DisconnectTargetRequest{TargetPortal: targetPortal(portal), Iqn: iqn})
}

// GetTargetDisks implements host.ISCSI.
func (c *Client) GetTargetDisks(ctx context.Context, portal host.TargetPortal, iqn string) ([]uint32, error) {
	const op = "GetTargetDisks"
	answer, err := call[*wirepb.GetTargetDisksResponse](ctx, c, wire.GroupISCSI,
		&wirepb.GetTargetDisksRequest{TargetPortal: targetPortal(portal), Iqn: iqn})
	if err != nil {
		return nil, err
	}
	numbers := make([]uint32, len(answer.GetDiskIDs()))
	for i, text := range answer.GetDiskIDs() {
		if numbers[i], err = wire.ParseDiskNumber(text); err != nil {
			return nil, &host.Error{Op: op, Object: iqn, Kind: host.KindInternal, Cause: err}
		}
	}
	return numbers, nil
}

// SetMutualChapSecret implements host.ISCSI.
func (c *Client) SetMutualChapSecret(ctx context.Context, secret string) error {
	return do[*wirepb.SetMutualChapSecretResponse](ctx, c, wire.GroupISCSI, &wirepb.SetMutualChapSecretRequest{MutualChapSecret: secret})
}

// ListTargets implements host.ISCSI.
func (c *Client) ListTargets(ctx context.Context) ([]host.TargetInfo, error) {
	answer, err := call[*wirepb.ListTargetsResponse](ctx, c, wire.GroupExtension, &wirepb.ListTargetsRequest{})
	if err != nil {
		return nil, err
	}
	targets := make([]host.TargetInfo, len(answer.GetTargets()))
	for i, target := range answer.GetTargets() {
		targets[i] = host.TargetInfo{IQN: target.GetIqn(), Connected: target.GetIsConnected(), DiskNumbers: target.GetDiskNumbers()}
	}
	return targets, nil
}
