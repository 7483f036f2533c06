package csikit

import (
	"context"
	"sync/atomic"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// health says whether the server takes calls. Watch is not offered: a watcher would
// hold a stopping server back, and clients take its absence for healthy.
//
// Source: gRPC health checking protocol.
type health struct {
	healthpb.UnimplementedHealthServer
	stopping *atomic.Bool
}

// Check answers for the server as a whole, whatever the service.
func (h *health) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	answer := healthpb.HealthCheckResponse_SERVING
	if h.stopping.Load() {
		answer = healthpb.HealthCheckResponse_NOT_SERVING
	}
	return &healthpb.HealthCheckResponse{Status: answer}, nil
}
