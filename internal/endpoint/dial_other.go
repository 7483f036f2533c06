//go:build !windows

package endpoint

import (
	"context"
	"errors"
	"net"
)

// dialPipe is never asked: Parse refuses named pipes here.
func dialPipe(context.Context, string) (net.Conn, error) { return nil, errors.ErrUnsupported }
