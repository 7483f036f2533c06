package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"

	"k8s.io/utils/clock"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/capacity"
)

// checkComponents asks the components whether they would accept their settings.
// Nothing is touched, and nothing is waited for.
func (s *settings) checkComponents(surroundings environment) error {
	env := &sidecar.Env{Log: slog.New(slog.DiscardHandler), Clock: clock.RealClock{}, Namespace: surroundings.namespace(s.Leader.Namespace)}
	var errs []error
	for _, name := range s.Controllers {
		_, err := s.make(name, env, surroundings)
		errs = append(errs, err)
	}
	times := sidecar.LeaseConfig{Duration: s.Leader.LeaseDuration, RenewDeadline: s.Leader.RenewDeadline, RetryPeriod: s.Leader.RetryPeriod}
	errs = append(errs, times.Check(s.countLeases(s.Controllers)))
	return s.inFlags(errors.Join(errs...))
}

// inFlags is an error about settings in the words of the command line, on one line;
// any other error as it is.
func (s *settings) inFlags(err error) error {
	wrong := settingErrors(err)
	if len(wrong) == 0 {
		return err
	}
	var texts []string
	for _, one := range wrong {
		texts = append(texts, one.Text(func(field string) string { return s.flagOf(one.Of, field) }))
	}
	return errors.New(strings.Join(texts, "; "))
}

// settingErrors are those that an error is made of.
func settingErrors(err error) (all []*sidecar.SettingError) {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, one := range many.Unwrap() {
			all = append(all, settingErrors(one)...)
		}
	}
	var one *sidecar.SettingError
	if len(all) == 0 && errors.As(err, &one) {
		all = append(all, one)
	}
	return all
}

// flagOf is the flag that a field of a component's Config comes from; the field
// itself where it comes from none.
func (s *settings) flagOf(component, field string) string {
	if component == capacity.Name && field == "PodName" {
		return "the environment variable POD_NAME"
	}
	name := s.flags.nameOf(s.sources()[component+"."+field])
	if name == "" {
		name = s.flags.nameOf(s.variable(component, field))
	}
	return cmp.Or(name, field)
}

// variable is the address of the field in the settings, where the flag writes to
// the Config itself; nil where it does not.
func (s *settings) variable(component, field string) any {
	config, ok := map[string]any{
		sidecar.Registrar: &s.Registrar, sidecar.LivenessProbe: &s.Liveness, sidecar.DriverObject: &s.DriverObject.Config,
		sidecar.Provisioner: &s.Provisioner, sidecar.Attacher: &s.Attacher, sidecar.Resizer: &s.Resizer, sidecar.Snapshotter: &s.Snapshotter,
	}[component]
	if !ok {
		return nil
	}
	value := reflect.ValueOf(config).Elem().FieldByName(field)
	if !value.IsValid() {
		return nil
	}
	return value.Addr().Interface()
}

// sources are the variables of the flags that fields are made of where those are
// not the field itself.
func (s *settings) sources() map[string]any {
	object := &s.DriverObject
	sources := map[string]any{
		sidecar.Leases + ".Duration":      &s.Leader.LeaseDuration,
		sidecar.Leases + ".RenewDeadline": &s.Leader.RenewDeadline,
		sidecar.Leases + ".RetryPeriod":   &s.Leader.RetryPeriod,

		sidecar.Provisioner + ".NodeDeployment.BaseDelay": &s.NodeDeployment.BaseDelay,
		sidecar.Provisioner + ".NodeDeployment.MaxDelay":  &s.NodeDeployment.MaxDelay,

		capacity.Name + ".Workers":      &s.Capacity.Threads,
		capacity.Name + ".PollInterval": &s.Capacity.PollInterval,
		capacity.Name + ".OwnerLevel":   &s.Capacity.OwnerLevel,
		capacity.Name + ".RetryMin":     &s.Provisioner.RetryMin,
		capacity.Name + ".RetryMax":     &s.Provisioner.RetryMax,
		capacity.Name + ".Timeout":      &s.Provisioner.Timeout,

		sidecar.DriverObject + ".VolumeLifecycleModes":               &object.Modes,
		sidecar.DriverObject + ".FSGroupPolicy":                      &object.Policy,
		sidecar.DriverObject + ".TokenRequests":                      &object.Tokens,
		sidecar.DriverObject + ".TokenRequests.ExpirationSeconds":    &object.Tokens,
		sidecar.DriverObject + ".NodeAllocatableUpdatePeriodSeconds": &object.UpdateSeconds,

		sidecar.LivenessProbe + ".CSIAddress": &s.CSIAddress,
	}
	if s.Program != programName { // the liveness probe alone has its addresses from the flags of all
		sources[sidecar.LivenessProbe+".HTTPEndpoint"] = &s.HTTP.Endpoint
		sources[sidecar.LivenessProbe+".MetricsAddress"] = &s.HTTP.MetricsAddress
		sources[sidecar.LivenessProbe+".MetricsPath"] = &s.HTTP.MetricsPath
	}
	return sources
}

// named is a component whose errors are in the words of the command line.
type named struct {
	sidecar.Component
	settings *settings
}

// Run implements sidecar.Component.
func (n named) Run(ctx context.Context) error { return n.settings.inFlags(n.Component.Run(ctx)) }
