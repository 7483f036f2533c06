// Package scrape serves the metrics of a program.
package scrape

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/csi-windows/csi-windows/cmd/internal/version"
)

// closeTime is how long a scrape may go on after a stop.
const closeTime = time.Second

// Start adds what every program tells of itself to the registry, under the prefix,
// and serves it at /metrics of an address until stop is called. With an empty
// address it serves nothing.
func Start(ctx context.Context, address string, registry *prometheus.Registry, prefix string, log *slog.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	if err := register(registry, prefix); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	log.Info("metrics are served", "address", listener.Addr().String())
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are no longer served", "address", listener.Addr().String(), "error", err)
		}
	}()
	return func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
		<-ended
	}, nil
}

// register adds what every program tells of itself to the registry, under the prefix.
func register(registry prometheus.Registerer, prefix string) error {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        prefix + "_build_info",
		Help:        "Always 1; the labels say which build this is.",
		ConstLabels: prometheus.Labels{"version": version.Number(), "goversion": runtime.Version()},
	})
	build.Set(1)
	for _, c := range []prometheus.Collector{build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}
