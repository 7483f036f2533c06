package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/csi-windows/csi-windows/cmd/internal/version"
	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/registrar"
)

// program is what serves.
type program struct {
	*settings
	surroundings environment
	log          *slog.Logger
	metrics      *sidecar.Metrics
	health       *sidecar.Health
	registered   registrarHealth
}

// serve runs the components until ctx ends or the process cannot go on.
func serve(ctx context.Context, s *settings, surroundings environment, log *slog.Logger) error {
	p := &program{settings: s, surroundings: surroundings, log: log, metrics: sidecar.NewMetrics(), health: &sidecar.Health{}}
	log.Info(s.Program+" starts", "version", version.Full(), "controllers", strings.Join(s.Controllers, ","), "csiAddress", s.CSIAddress)
	if len(s.Ignored) > 0 {
		log.Warn("Flags without effect were given", "flags", strings.Join(s.Ignored, " "))
	}
	group, ctx := errgroup.WithContext(ctx)
	if s.HTTP.Endpoint != "" {
		server := &sidecar.HTTP{Address: s.HTTP.Endpoint, MetricsPath: s.HTTP.MetricsPath, Pprof: s.HTTP.Pprof, Health: p.health, Metrics: p.metrics, Log: log}
		if s.Program != programName && s.has(sidecar.Registrar) {
			// Upstream's registrar answers for the registration there.
			server.Health, server.Handlers = nil, map[string]http.Handler{sidecar.HealthPath: &p.registered}
		}
		group.Go(func() error {
			if err := server.Run(ctx); err != nil {
				return fmt.Errorf("%s: %w", s.HTTP.Flag, err)
			}
			return nil
		})
	}
	alone, others := p.split()
	if len(alone) > 0 {
		group.Go(func() error { return p.runAlone(ctx, alone) })
	}
	if len(others) > 0 {
		group.Go(func() error { return p.runWithDriver(ctx, others) })
	}
	return group.Wait()
}

// split tells the components that need the driver to have answered from the
// liveness probe, whose work is to say that it does not.
func (p *program) split() (alone, others []string) {
	for _, name := range p.Controllers {
		if name == sidecar.LivenessProbe {
			alone = append(alone, name)
		} else {
			others = append(others, name)
		}
	}
	return alone, others
}

func (p *program) processConfig(env *sidecar.Env) sidecar.ProcessConfig {
	return sidecar.ProcessConfig{
		Driver: env.Driver, Health: p.health, Metrics: p.metrics, Log: p.log, Clock: env.Clock,
		// Whoever replaced a program of upstream's expects it to end.
		ExitOnFailure: p.Program != programName,
	}
}

// runAlone runs components that need nothing but the driver's address.
func (p *program) runAlone(ctx context.Context, names []string) error {
	env := &sidecar.Env{Log: p.log, Clock: clock.RealClock{}}
	components, err := p.makeAll(names, env)
	if err != nil {
		return err
	}
	return sidecar.Run(ctx, p.processConfig(env), components)
}

// runWithDriver waits for the driver and runs components that speak with it.
func (p *program) runWithDriver(ctx context.Context, names []string) (err error) {
	identity, err := p.surroundings.identity()
	if err != nil {
		return err
	}
	// Caches end after the components that read them.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	env := &sidecar.Env{
		Log: p.log, Clock: clock.RealClock{}, QueueMetrics: p.metrics.Queues, Identity: identity, Namespace: p.surroundings.namespace(p.Leader.Namespace), Running: p.Controllers,
	}
	config := p.processConfig(env)
	if p.needsServer() {
		clients, stop, err := p.connectServer(life, env)
		if err != nil {
			return err
		}
		defer func() { end(); stop() }()
		config.Leases = sidecar.LeaseConfig{
			Client: clients.Leases, Namespace: env.Namespace, Identity: identity, Labels: p.Leader.Labels,
			Duration: p.Leader.LeaseDuration, RenewDeadline: p.Leader.RenewDeadline, RetryPeriod: p.Leader.RetryPeriod,
		}
	}
	env.Driver, err = csiclient.Open(csiclient.Config{
		Address: p.CSIAddress, NameOnly: !p.needsServer(), Metrics: p.metrics.CSI, Log: p.log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Driver.Close()) }()
	config.Driver = env.Driver
	// Settings that are wrong are told of at once, not when the driver is there.
	components, err := p.makeAll(names, env)
	if err != nil {
		return err
	}
	if err := config.Leases.Check(p.countLeases(names)); err != nil {
		return err
	}
	if err := env.Driver.Meet(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop before the driver was there
		}
		return err
	}
	p.nameLeases(components, env.Driver.Name())
	p.log.Info("Driver found", "driver", env.Driver.Name(), "driverVersion", env.Driver.Info().VendorVersion)
	return sidecar.Run(ctx, config, components)
}

// connectServer gives the environment all that is the API server's.
func (p *program) connectServer(life context.Context, env *sidecar.Env) (*sidecar.Clients, func(), error) {
	config, err := sidecar.NewKubeConfig(sidecar.KubeOptions{
		Kubeconfig: p.Kubeconfig, Master: p.Master, QPS: p.QPS, Burst: p.Burst, UserAgent: p.Program + "/" + version.Number(),
	})
	if err != nil {
		return nil, nil, err
	}
	config.Wrap(p.metrics.CountRequests)
	clients, err := sidecar.NewClients(config)
	if err != nil {
		return nil, nil, err
	}
	events, err := sidecar.NewEvents(clients.Kube, p.log)
	if err != nil {
		return nil, nil, err
	}
	env.Kube, env.Snapshots = clients.Kube, clients.Snapshots
	env.Informers = sidecar.NewInformers(life, clients.Kube, clients.Snapshots, noResync)
	env.Events = func(source string) record.EventRecorder { return events.Recorder(source) }
	return clients, func() { events.Shutdown(); env.Informers.Shutdown() }, nil
}

// noResync has no handler see all objects again from time to time: what failed
// is in a queue, and nothing else changes without news.
const noResync time.Duration = 0

// makeAll makes components with the names of their leases.
func (p *program) makeAll(names []string, env *sidecar.Env) ([]sidecar.Supervised, error) {
	var all []sidecar.Supervised
	for _, name := range names {
		component, err := p.make(name, env, p.surroundings)
		if err != nil {
			return nil, err
		}
		if counted, ok := component.(collecting); ok {
			p.metrics.Register(counted.Collectors()...)
		}
		all = append(all, sidecar.Supervised{Component: component})
	}
	return all, nil
}

// nameLeases says what the driver's name decides: the leases of the components,
// and where the registration is.
func (p *program) nameLeases(components []sidecar.Supervised, driver string) {
	for i, one := range components {
		if p.hasLease(one.Name()) {
			components[i].Lease = sidecar.LeaseName(one.Name(), driver)
		}
		if made, ok := one.Component.(*registrar.Registrar); ok {
			p.registered.set(made.Health())
		}
	}
}

// countLeases is how many of the components are to have a lease.
func (s *settings) countLeases(names []string) (count int) {
	for _, name := range names {
		if s.hasLease(name) && sidecar.LeaseName(name, "driver") != "" {
			count++
		}
	}
	return count
}

func (s *settings) hasLease(name string) bool { return s.Leader.On && !s.isNodeLocal(name) }

// collecting is a component with metrics of its own.
type collecting interface{ Collectors() []prometheus.Collector }

// registrarHealth is the health of a registrar, which is made only when the
// driver has answered.
type registrarHealth struct{ handler atomic.Pointer[http.Handler] }

func (h *registrarHealth) set(handler http.Handler) { h.handler.Store(&handler) }

// ServeHTTP implements http.Handler.
func (h *registrarHealth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if handler := h.handler.Load(); handler != nil {
		(*handler).ServeHTTP(w, r)
		return
	}
	http.Error(w, "the driver has not answered yet", http.StatusServiceUnavailable)
}

// isNodeLocal reports whether a component serves this node only, beside others
// of its kind, which a lease would stop.
func (s *settings) isNodeLocal(name string) bool {
	return name == sidecar.Provisioner && s.NodeDeployment.On || name == sidecar.Snapshotter && s.SnapshotterNodeDeployment
}
