package wire

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// health answers for one pipe and its one service. Watch is not offered: a
// watcher would hold a stopping server back, and clients take its absence for
// healthy. Source: gRPC health checking protocol.
type health struct {
	healthpb.UnimplementedHealthServer
	service  string
	stopping atomic.Bool
}

// Check knows the service of this pipe, and the empty name for the pipe itself.
func (h *health) Check(_ context.Context, request *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if name := request.GetService(); name != "" && name != h.service {
		return nil, status.Error(codes.NotFound, "this pipe serves "+h.service)
	}
	answer := healthpb.HealthCheckResponse_SERVING
	if h.stopping.Load() {
		answer = healthpb.HealthCheckResponse_NOT_SERVING
	}
	return &healthpb.HealthCheckResponse{Status: answer}, nil
}
