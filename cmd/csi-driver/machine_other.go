//go:build !windows

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"

	"github.com/csi-windows/csi-windows/sim"
)

// openMachine opens a simulated node: there is no other one here.
func openMachine(ctx context.Context, c *config, log *slog.Logger) (*machine, error) {
	simulated, err := sim.Open(ctx, sim.Config{Dir: c.SimDir, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("-sim-dir: %w", err)
	}
	return &machine{session: simulated, api: simulated, close: simulated.Close}, nil
}

// stopSignals are the signals that ask the program to stop.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, unix.SIGTERM} }
