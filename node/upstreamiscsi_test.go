package node_test

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// upstreamISCSI is a host with the manners of the official csi-proxy towards iSCSI: each
// question names a portal and a target, and fails without a kind when the initiator does
// not know the one, or the other behind it. A target that is not logged in to has no
// disks.
type upstreamISCSI struct {
	host.Host
	inner host.Host
}

// known looks a target up among those that a portal told of when it was made.
func (u upstreamISCSI) known(ctx context.Context, portal host.TargetPortal, iqn string) (isLoggedIn bool, err error) {
	portals, err := u.inner.ListTargetPortals(ctx)
	if err != nil {
		return false, plain(err)
	}
	at := func(p host.TargetPortal) bool {
		return p.Address == portal.Address && max(p.Port, 3260) == max(portal.Port, 3260)
	}
	targets, err := u.inner.ListTargets(ctx)
	if err != nil {
		return false, plain(err)
	}
	for _, target := range targets {
		if strings.EqualFold(target.IQN, iqn) && slices.ContainsFunc(portals, at) {
			return target.Connected, nil
		}
	}
	return false, &host.Error{Op: "Query", Object: iqn, Kind: host.KindInternal, Cause: errors.New("not found")}
}

func (u upstreamISCSI) AddTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	return plain(u.Host.AddTargetPortal(ctx, portal))
}

func (u upstreamISCSI) ListTargetPortals(ctx context.Context) ([]host.TargetPortal, error) {
	return plainOf(u.Host.ListTargetPortals(ctx))
}

func (u upstreamISCSI) DiscoverTargetPortal(ctx context.Context, portal host.TargetPortal) ([]string, error) {
	targets, err := u.inner.ListTargets(ctx) // as they were told of
	var iqns []string
	for _, target := range targets {
		iqns = append(iqns, target.IQN)
	}
	return plainOf(iqns, err)
}

func (u upstreamISCSI) RemoveTargetPortal(ctx context.Context, portal host.TargetPortal) error {
	portals, err := u.inner.ListTargetPortals(ctx)
	if err == nil && !slices.ContainsFunc(portals, func(p host.TargetPortal) bool { return p.Address == portal.Address }) {
		err = &host.Error{Op: "Remove", Object: portal.Address, Kind: host.KindInternal, Cause: errors.New("not found")}
	}
	if err != nil {
		return plain(err)
	}
	return plain(u.Host.RemoveTargetPortal(ctx, portal))
}

func (u upstreamISCSI) ConnectTarget(ctx context.Context, portal host.TargetPortal, iqn string, options host.ConnectOptions) error {
	if isLoggedIn, err := u.known(ctx, portal, iqn); err != nil || isLoggedIn {
		return err
	}
	return plain(u.Host.ConnectTarget(ctx, portal, iqn, options))
}

func (u upstreamISCSI) DisconnectTarget(ctx context.Context, portal host.TargetPortal, iqn string) error {
	if isLoggedIn, err := u.known(ctx, portal, iqn); err != nil || !isLoggedIn {
		return err
	}
	return plain(u.Host.DisconnectTarget(ctx, portal, iqn))
}

func (u upstreamISCSI) GetTargetDisks(ctx context.Context, portal host.TargetPortal, iqn string) ([]uint32, error) {
	if isLoggedIn, err := u.known(ctx, portal, iqn); err != nil || !isLoggedIn {
		return nil, err
	}
	return plainOf(u.Host.GetTargetDisks(ctx, portal, iqn))
}
