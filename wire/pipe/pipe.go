// Package pipe names and opens the pipes of csi-proxy: Windows named pipes on
// Windows, unix sockets elsewhere. One pipe serves one API group in one version,
// so that whoever is given a pipe is given one API.
package pipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"
)

// probeTimeout bounds the look whether somebody already serves a pipe.
const probeTimeout = time.Second

// ErrInUse is found in the error of Listen when a live server has the pipe.
var ErrInUse = errors.New("in use")

// Name returns the name of the pipe of a group and version, which is the same on
// every OS.
//
// Source: csi-proxy, client/utils.go, PipePath.
func Name(group, version string) string { return "csi-proxy-" + group + "-" + version }

// Place says where pipes are. The zero value is the place of csi-proxy: the name
// space of named pipes on Windows, DefaultDir elsewhere.
type Place struct {
	// Dir is the folder of the sockets off Windows, DefaultDir when empty. On
	// Windows it is a prefix in the name space of pipes (`\\.\pipe\<Dir>\<name>`),
	// which clients of csi-proxy do not look at.
	Dir string
	// AllowSIDs are security identifiers ("S-1-5-…") that may open the pipes
	// beside SYSTEM and Administrators. Off Windows they have no meaning.
	AllowSIDs []string
}

// Listen opens a pipe for serving. The error names the pipe; it wraps ErrInUse
// when a live server has it. Nothing but the pipe itself is left behind by Close.
func (p Place) Listen(ctx context.Context, group, version string) (net.Listener, error) {
	name := Name(group, version)
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	listener, err := p.listen(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("pipe %s is %w", name, err)
	}
	return listener, nil
}

// Dial opens a connection to a pipe. The error names the pipe; it wraps
// fs.ErrNotExist when there is no such pipe, and fs.ErrPermission when this
// account may not open it. Without a deadline in ctx a busy pipe is waited for
// until ctx ends.
func (p Place) Dial(ctx context.Context, group, version string) (net.Conn, error) {
	address, err := p.Address(group, version)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, address)
	if err != nil {
		return nil, dialError(address, err)
	}
	return conn, nil
}

// dialError names the pipe, and says what to do about a refusal.
func dialError(address string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("pipe %s: %w", address, fs.ErrNotExist)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("pipe %s: %w: %s", address, fs.ErrPermission, neededAccount)
	default:
		return fmt.Errorf("pipe %s: %w", address, err)
	}
}
