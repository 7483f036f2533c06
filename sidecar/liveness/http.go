package liveness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/csi-windows/csi-windows/sidecar"
)

const (
	// stopTimeout bounds the wait for answers under way at the end.
	stopTimeout = 2 * time.Second
	// headerTimeout ends connections that send nothing.
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Health answers whether the driver is alive: 200, or 500 with the reason.
func (l *Liveness) Health() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		code, text := http.StatusOK, "ok"
		if err := l.Check(request.Context()); err != nil {
			code, text = http.StatusInternalServerError, err.Error()
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	})
}

// Run answers at the addresses of the configuration until ctx ends.
func (l *Liveness) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sites := l.sites()
	listeners := make([]net.Listener, 0, len(sites))
	for _, one := range sites {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", one.address)
		if err != nil {
			for _, opened := range listeners {
				err = errors.Join(err, opened.Close())
			}
			return &sidecar.SettingError{Of: l.Name(), Field: one.field, Cause: err}
		}
		listeners = append(listeners, listener)
		l.log.InfoContext(ctx, "Answering", "address", listener.Addr().String(), "of", one.of)
	}
	ended := make(chan error, len(sites))
	for i, one := range sites {
		go func() {
			defer cancel() // one without the other is no use
			ended <- serve(ctx, listeners[i], one.handler)
		}()
	}
	for range sites {
		err = errors.Join(err, <-ended)
	}
	l.end()
	if err != nil {
		return fmt.Errorf("%s: %w", l.Name(), err)
	}
	return nil
}

// site is what is answered at one address.
type site struct {
	address string
	handler http.Handler
	of      string // what it tells, for the log
	field   string // of the Config, where the address is
}

func (l *Liveness) sites() []site {
	mux := http.NewServeMux()
	mux.Handle(healthPath, l.Health())
	sites := []site{{l.config.Address(), mux, "the driver's health", "HealthPort"}}
	switch {
	case l.config.HTTPEndpoint != "":
		sites[0].field = "HTTPEndpoint"
		l.metrics.register(mux, l.config.MetricsPath)
	case l.config.MetricsAddress != "":
		metrics := http.NewServeMux()
		l.metrics.register(metrics, l.config.MetricsPath)
		sites = append(sites, site{l.config.MetricsAddress, metrics, "the metrics", "MetricsAddress"})
	}
	return sites
}

// serve answers on a listener until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		defer close(stopped)
		if server.Shutdown(limited) != nil {
			_ = server.Close() // who is still connected is cut off
		}
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		if !stop() {
			<-stopped
		}
		return err
	}
	<-stopped
	return nil
}
