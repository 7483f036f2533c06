package wire

import (
	"context"
	"errors"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// targetPortal reads the portal of a request. A missing portal is refused here:
// an empty one would only be refused further down, with a text about an address.
func targetPortal(op string, p *wirepb.TargetPortal) (host.TargetPortal, error) {
	if p == nil {
		return host.TargetPortal{}, &host.Error{Op: op, Object: "target_portal", Kind: host.KindInvalid, Cause: errors.New("the portal is missing")}
	}
	return host.TargetPortal{Address: p.GetTargetAddress(), Port: p.GetTargetPort()}, nil
}

func addTargetPortal(ctx context.Context, s *site, q *wirepb.AddTargetPortalRequest) (*wirepb.AddTargetPortalResponse, error) {
	portal, err := targetPortal("AddTargetPortal", q.GetTargetPortal())
	if err != nil {
		return nil, err
	}
	return &wirepb.AddTargetPortalResponse{}, s.host.AddTargetPortal(ctx, portal)
}

func discoverTargetPortal(ctx context.Context, s *site, q *wirepb.DiscoverTargetPortalRequest) (*wirepb.DiscoverTargetPortalResponse, error) {
	portal, err := targetPortal("DiscoverTargetPortal", q.GetTargetPortal())
	if err != nil {
		return nil, err
	}
	iqns, err := s.host.DiscoverTargetPortal(ctx, portal)
	return &wirepb.DiscoverTargetPortalResponse{Iqns: texts(iqns)}, err
}

func removeTargetPortal(ctx context.Context, s *site, q *wirepb.RemoveTargetPortalRequest) (*wirepb.RemoveTargetPortalResponse, error) {
	portal, err := targetPortal("RemoveTargetPortal", q.GetTargetPortal())
	if err != nil {
		return nil, err
	}
	return &wirepb.RemoveTargetPortalResponse{}, s.host.RemoveTargetPortal(ctx, portal)
}

func listTargetPortals(ctx context.Context, s *site, _ *wirepb.ListTargetPortalsRequest) (*wirepb.ListTargetPortalsResponse, error) {
	portals, err := s.host.ListTargetPortals(ctx)
	if err != nil {
		return nil, err
	}
	answer := make([]*wirepb.TargetPortal, len(portals))
	for i, portal := range portals {
		answer[i] = &wirepb.TargetPortal{TargetAddress: text(portal.Address), TargetPort: portal.Port}
	}
	return &wirepb.ListTargetPortalsResponse{TargetPortals: answer}, nil
}

func connectTarget(ctx context.Context, s *site, q *wirepb.ConnectTargetRequest) (*wirepb.ConnectTargetResponse, error) {
	portal, err := targetPortal("ConnectTarget", q.GetTargetPortal())
	if err != nil {
		return nil, err
	}
	options := host.ConnectOptions{
		AuthType: host.AuthType(q.GetAuthType()), ChapUsername: q.GetChapUsername(), ChapSecret: q.GetChapSecret(),
	}
	return &wirepb.ConnectTargetResponse{}, s.host.ConnectTarget(ctx, portal, q.GetIqn(), options)
}

func disconnectTarget(ctx context.Context, s *site, q *wirepb.DisconnectTargetRequest) (*wirepb.DisconnectTargetResponse, error) {
	portal, err := targetPortal("DisconnectTarget", q.GetTargetPortal())
	if err != nil {
		return nil, err
	}
	return &wirepb.DisconnectTargetResponse{}, s.host.DisconnectTarget(ctx, portal, q.GetIqn())
}

func getTargetDisks(ctx context.Context, s *site, q *wirepb.GetTargetDisksRequest) (*wirepb.GetTargetDisksResponse, error) {
	portal, err := targetPortal("GetTargetDisks", q.GetTargetPortal())
	if err != nil {
		return nil, err
	}
	numbers, err := s.host.GetTargetDisks(ctx, portal, q.GetIqn())
	if err != nil {
		return nil, err
	}
	answer := make([]string, len(numbers))
	for i, number := range numbers {
		answer[i] = formatDiskNumber(number)
	}
	return &wirepb.GetTargetDisksResponse{DiskIDs: answer}, nil
}

func setMutualChapSecret(ctx context.Context, s *site, q *wirepb.SetMutualChapSecretRequest) (*wirepb.SetMutualChapSecretResponse, error) {
	return &wirepb.SetMutualChapSecretResponse{}, s.host.SetMutualChapSecret(ctx, q.GetMutualChapSecret())
}
