package liveness

import (
	"context"
	"net"
	"runtime"

	"github.com/csi-windows/csi-windows/internal/endpoint"
)

// dialer opens one connection to the driver.
func (c Config) dialer() (func(ctx context.Context) (net.Conn, error), error) {
	if c.Dial != nil {
		return c.Dial, nil
	}
	at, err := endpoint.Parse(c.CSIAddress, runtime.GOOS)
	if err != nil {
		return nil, err
	}
	return at.Dial, nil
}
