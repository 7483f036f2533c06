package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/attacher"
	"github.com/csi-windows/csi-windows/sidecar/capacity"
	"github.com/csi-windows/csi-windows/sidecar/driverobject"
	"github.com/csi-windows/csi-windows/sidecar/liveness"
	"github.com/csi-windows/csi-windows/sidecar/provisioner"
	"github.com/csi-windows/csi-windows/sidecar/registrar"
	"github.com/csi-windows/csi-windows/sidecar/resizer"
	"github.com/csi-windows/csi-windows/sidecar/snapshotter"
)

// make makes one component of the settings.
func (s *settings) make(name string, env *sidecar.Env, surroundings environment) (sidecar.Component, error) {
	switch name {
	case sidecar.Registrar:
		return registrar.New(env, s.Registrar)
	case sidecar.LivenessProbe:
		made, err := liveness.New(env, s.Liveness)
		return named{made, s}, err
	case sidecar.DriverObject:
		return driverobject.New(env, s.DriverObject.Config)
	case sidecar.Provisioner:
		return s.makeProvisioner(env, surroundings)
	case sidecar.Attacher:
		return attacher.New(env, s.Attacher)
	case sidecar.Resizer:
		return resizer.New(env, s.Resizer)
	case sidecar.Snapshotter:
		return snapshotter.New(env, s.Snapshotter)
	default:
		return nil, fmt.Errorf("no component is called %q", name)
	}
}

// makeProvisioner joins the provisioner with the publisher of free capacity,
// which lives under the same lease.
func (s *settings) makeProvisioner(env *sidecar.Env, surroundings environment) (sidecar.Component, error) {
	if !s.Capacity.On {
		return provisioner.New(env, s.Provisioner)
	}
	own := *env
	// Its objects are where the pod is, wherever the leases are.
	own.Namespace = cmp.Or(surroundings.Getenv("NAMESPACE"), env.Namespace)
	published, err := capacity.New(&own, capacity.Config{
		Workers: s.Capacity.Threads, PollInterval: s.Capacity.PollInterval, Timeout: s.Provisioner.Timeout,
		RetryMin: s.Provisioner.RetryMin, RetryMax: s.Provisioner.RetryMax,
		ImmediateBinding: s.Capacity.Immediate, OwnerLevel: s.Capacity.OwnerLevel,
		PodName: surroundings.Getenv("POD_NAME"), NodeName: s.nodeName(),
	})
	if err != nil {
		return nil, err
	}
	config := s.Provisioner
	config.CapacityChanged = published.Refresh
	made, err := provisioner.New(env, config)
	if err != nil {
		return nil, err
	}
	return pair{made, published, env.Log}, nil
}

func (s *settings) nodeName() string {
	if s.Provisioner.NodeDeployment == nil {
		return ""
	}
	return s.Provisioner.NodeDeployment.NodeName
}

// pair is a component with another one under its name and its lease.
type pair struct {
	sidecar.Component
	other sidecar.Component
	log   *slog.Logger
}

// Collectors are the metrics of both.
func (p pair) Collectors() (all []prometheus.Collector) {
	for _, one := range []sidecar.Component{p.Component, p.other} {
		if counted, ok := one.(collecting); ok {
			all = append(all, counted.Collectors()...)
		}
	}
	return all
}

// Run runs both; when one ends the other does too, unless there is nothing for the
// other one to do: that is no reason not to make volumes.
func (p pair) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Component.Run(ctx) })
	group.Go(func() error {
		err := p.other.Run(ctx)
		if errors.Is(err, sidecar.ErrNothingToDo) {
			p.log.WarnContext(ctx, "Part of a component rests", "component", p.Name(), "error", err)
			<-ctx.Done()
			return nil
		}
		return err
	})
	return group.Wait()
}
