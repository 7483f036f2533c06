//go:build !windows

package csikit

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// listenPipe is never asked: endpoint.Parse refuses named pipes here.
func listenPipe(string) (net.Listener, error) { return nil, errors.ErrUnsupported }

// withSocketHint adds nothing: sockets are always there.
func withSocketHint(err error) error { return err }

// isUnanswered reports whether nobody listens on a socket. A server that has too
// much to do gives another error.
//
// Source: connect(2), ECONNREFUSED.
func isUnanswered(err error) bool { return errors.Is(err, unix.ECONNREFUSED) }
