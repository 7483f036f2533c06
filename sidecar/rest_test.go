package sidecar_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func TestAComponentWithoutWorkRestsAndIsNoFailure(t *testing.T) {
	t.Parallel()
	idle := &part{name: "idle", run: func(context.Context, int) error {
		return fmt.Errorf("the driver cannot: %w", sidecar.ErrNothingToDo)
	}}
	r := start(t, sidecartest.New(t, csiclient.Info{}), nil, sidecar.Supervised{Component: idle})
	r.until("it says why", func() bool { return strings.Contains(r.Log(), "Component rests") })
	if r.clock.HasWaiters() || idle.started() != 1 {
		t.Errorf("started %d times, and waits for the next", idle.started())
	}
	r.stop()
	if err := r.end(); err != nil || r.value("csi_sidecar_component_failures_total", "idle") != 0 {
		t.Errorf("end: %v, failures: %v", err, r.value("csi_sidecar_component_failures_total", "idle"))
	}
}

func TestAProgramOfOneComponentWithoutWorkEnds(t *testing.T) {
	t.Parallel()
	idle := &part{name: "idle", run: func(context.Context, int) error { return sidecar.ErrNothingToDo }}
	r := start(t, sidecartest.New(t, csiclient.Info{}), func(c *sidecar.ProcessConfig) { c.ExitOnFailure = true }, sidecar.Supervised{Component: idle})
	if err := r.end(); err == nil {
		t.Error("it ended without an error")
	}
}
