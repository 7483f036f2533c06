package client

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// GetBIOSSerialNumber implements host.System.
func (c *Client) GetBIOSSerialNumber(ctx context.Context) (string, error) {
	answer, err := call[*wirepb.GetBIOSSerialNumberResponse](ctx, c, wire.GroupSystem, &wirepb.GetBIOSSerialNumberRequest{})
	return answer.GetSerialNumber(), err
}

// StartService implements host.System.
func (c *Client) StartService(ctx context.Context, name string) error {
	return do[*wirepb.StartServiceResponse](ctx, c, wire.GroupSystem, &wirepb.StartServiceRequest{Name: name})
}

// StopService implements host.System.
func (c *Client) StopService(ctx context.Context, name string, force bool) error {
	return do[*wirepb.StopServiceResponse](ctx, c, wire.GroupSystem, &wirepb.StopServiceRequest{Name: name, Force: force})
}

// GetService implements host.System.
func (c *Client) GetService(ctx context.Context, name string) (host.ServiceInfo, error) {
	answer, err := call[*wirepb.GetServiceResponse](ctx, c, wire.GroupSystem, &wirepb.GetServiceRequest{Name: name})
	return host.ServiceInfo{
		DisplayName: answer.GetDisplayName(),
		StartType:   host.StartType(answer.GetStartType()),
		Status:      host.ServiceStatus(answer.GetStatus()),
	}, err
}
