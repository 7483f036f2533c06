//go:build unix

package client

import (
	"errors"

	"golang.org/x/sys/unix"
)

// isRefused reports whether a socket is there and nobody listens at it.
//
// Source: connect(2), ECONNREFUSED.
func isRefused(err error) bool { return errors.Is(err, unix.ECONNREFUSED) }
