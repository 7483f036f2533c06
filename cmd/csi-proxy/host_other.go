//go:build !windows

package main

import (
	"context"
	"log/slog"
)

// openNode opens the simulated node: there is no other one here.
func openNode(ctx context.Context, c *config, log *slog.Logger) (*node, error) {
	return openSim(ctx, c, log)
}
