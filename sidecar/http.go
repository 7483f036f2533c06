package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Paths of the health of a process.
const (
	// HealthPath answers while the process is alive.
	HealthPath = "/healthz"
	// LeaderHealthPath answers 500 when a lease is held that was not renewed.
	LeaderHealthPath = "/healthz/leader-election"
	// MetricsPathDefault is where metrics are unless said otherwise.
	MetricsPathDefault = "/metrics"
)

// How long a client may take over a request, and the end over those under way.
const (
	readTimeout     = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 5 * time.Second
)

// HTTP serves the health and the metrics of a process.
type HTTP struct {
	// Address is where it listens, such as ":8080".
	Address string
	// MetricsPath is the path of the metrics; empty for MetricsPathDefault.
	MetricsPath string
	// Pprof has profiles served too, under /debug/pprof/.
	Pprof bool
	// Health and Metrics are what is served; nil for nothing of it.
	Health  *Health
	Metrics *Metrics
	// Handlers are more, by their patterns.
	Handlers map[string]http.Handler
	// OnListening is called when clients can connect; nil for nobody.
	OnListening func(net.Addr)
	Log         *slog.Logger
}

// Run serves until ctx ends.
func (h *HTTP) Run(ctx context.Context) error {
	mux, err := h.mux()
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", h.Address)
	if err != nil {
		return fmt.Errorf("health and metrics: %w", err)
	}
	server := &http.Server{
		Handler: mux, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(h.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if h.OnListening != nil {
		h.OnListening(listener.Addr())
	}
	select {
	case err := <-served:
		return fmt.Errorf("health and metrics: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		_ = server.Close() // who is still connected is cut off
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("health and metrics: %w", err)
	}
	return nil
}

// mux has the handlers. A path given twice is an error.
func (h *HTTP) mux() (*http.ServeMux, error) {
	handlers := map[string]http.Handler{}
	for pattern, handler := range h.Handlers {
		handlers[pattern] = handler
	}
	add := func(pattern string, handler http.HandlerFunc) error {
		if handlers[pattern] != nil {
			return fmt.Errorf("health and metrics: %s is there twice", pattern)
		}
		handlers[pattern] = handler
		return nil
	}
	var all []error
	if h.Health != nil {
		all = append(all, add(HealthPath, h.Health.serveProcess), add(LeaderHealthPath, h.Health.serveLeases))
	}
	if h.Metrics != nil {
		path := h.MetricsPath
		if path == "" {
			path = MetricsPathDefault
		}
		if path[0] != '/' {
			return nil, fmt.Errorf("path of the metrics %q: must begin with /", path)
		}
		handler := promhttp.HandlerFor(h.Metrics.Gatherer(), promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
		all = append(all, add(path, handler.ServeHTTP))
	}
	if h.Pprof {
		all = append(all, add("/debug/pprof/", pprof.Index), add("/debug/pprof/cmdline", pprof.Cmdline),
			add("/debug/pprof/profile", pprof.Profile), add("/debug/pprof/symbol", pprof.Symbol), add("/debug/pprof/trace", pprof.Trace))
	}
	if err := errors.Join(all...); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, handler := range handlers {
		mux.Handle(pattern, handler)
	}
	return mux, nil
}
