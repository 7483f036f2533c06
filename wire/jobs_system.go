package wire

import (
	"context"

	"github.com/csi-windows/csi-windows/wire/wirepb"
)

func getBIOSSerialNumber(ctx context.Context, s *site, _ *wirepb.GetBIOSSerialNumberRequest) (*wirepb.GetBIOSSerialNumberResponse, error) {
	serial, err := s.host.GetBIOSSerialNumber(ctx)
	return &wirepb.GetBIOSSerialNumberResponse{SerialNumber: text(serial)}, err
}

func startService(ctx context.Context, s *site, q *wirepb.StartServiceRequest) (*wirepb.StartServiceResponse, error) {
	return &wirepb.StartServiceResponse{}, s.host.StartService(ctx, q.GetName())
}

func stopService(ctx context.Context, s *site, q *wirepb.StopServiceRequest) (*wirepb.StopServiceResponse, error) {
	return &wirepb.StopServiceResponse{}, s.host.StopService(ctx, q.GetName(), q.GetForce())
}

func getService(ctx context.Context, s *site, q *wirepb.GetServiceRequest) (*wirepb.GetServiceResponse, error) {
	info, err := s.host.GetService(ctx, q.GetName())
	return &wirepb.GetServiceResponse{
		DisplayName: text(info.DisplayName),
		StartType:   wirepb.StartType(info.StartType),
		Status:      wirepb.ServiceStatus(info.Status),
	}, err
}
