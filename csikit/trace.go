package csikit

import (
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
)

// traceOptions trace calls with a provider. Spans hold the method, the code and the
// message of the status, of which the secrets are taken out before; nothing of the
// request. Metrics are those of metrics.go.
func traceOptions(provider trace.TracerProvider) []grpc.ServerOption {
	if provider == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(provider),
		otelgrpc.WithMeterProvider(noop.NewMeterProvider()),
		otelgrpc.WithPropagators(propagation.TraceContext{}),
	))}
}
