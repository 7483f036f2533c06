package main

import (
	"context"
	"log/slog"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// openNode opens this machine, or the simulated node when that was asked for.
func openNode(ctx context.Context, c *config, log *slog.Logger) (*node, error) {
	if c.Host == hostSim {
		return openSim(ctx, c, log)
	}
	session, err := cim.Connect()
	if err != nil {
		return nil, err
	}
	return &node{session: session, api: win32.System(), close: session.Close}, nil
}
