package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
)

// openSim opens the simulated node, and its control interface when an address is set.
func openSim(ctx context.Context, c *config, log *slog.Logger) (*node, error) {
	simulated, err := sim.Open(ctx, sim.Config{Dir: c.SimDir, Drives: c.SimDrives, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("-sim-dir: %w", err)
	}
	stopControl, err := startControl(ctx, c.SimControl, simulated, log)
	if err != nil {
		return nil, errors.Join(err, simulated.Close())
	}
	return &node{session: simulated, api: simulated, close: func() error {
		stopControl()
		return simulated.Close()
	}}, nil
}

// startControl serves the control interface of a node until stop is called.
func startControl(ctx context.Context, address string, simulated *sim.Node, log *slog.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := control.Listen(address)
	if err != nil {
		return nil, fmt.Errorf("-sim-control: %w", err)
	}
	log.Info("the simulated node can be controlled", "address", listener.Addr().String())
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := control.Serve(serving, listener, simulated); err != nil {
			log.Error("the simulated node can no longer be controlled", "error", err)
		}
	}()
	return func() { cancel(); <-ended }, nil
}
