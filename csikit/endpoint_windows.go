package csikit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// pipeDescriptor gives a pipe to SYSTEM (SY) and Administrators (BA) and nobody else.
//
// Source: Security Descriptor Definition Language, ACE strings.
const pipeDescriptor = "D:P(A;;GA;;;SY)(A;;GA;;;BA)"

// listenPipe makes the first instance of a named pipe; a name that has one is in
// use. go-winio refuses clients of other machines.
func listenPipe(name string) (net.Listener, error) {
	if err := openOnce(name); !errors.Is(err, fs.ErrNotExist) {
		return nil, errEndpointInUse
	}
	listener, err := winio.ListenPipe(name, &winio.PipeConfig{SecurityDescriptor: pipeDescriptor})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w, if only by a client of a server that has gone: %w", errEndpointInUse, err)
	}
	if err != nil {
		return nil, err
	}
	// The first instance only keeps the name. Windows connects no client to it; Wine
	// connects the first, who would wait for ever: be that client.
	_ = openOnce(name)
	return listener, nil
}

// openOnce opens and closes a pipe without waiting for a free instance. Whoever
// answers learns nothing of our token.
func openOnce(name string) error {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	const flags = windows.SECURITY_SQOS_PRESENT | windows.SECURITY_ANONYMOUS
	handle, err := windows.CreateFile(path, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING, flags, 0)
	if err != nil {
		return err
	}
	return windows.CloseHandle(handle)
}

// isUnanswered reports whether nobody listens on a socket: connecting was refused,
// or the file is no socket after all.
func isUnanswered(err error) bool {
	return !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, windows.WSAEWOULDBLOCK) && !hasNoSockets(err)
}

// hasNoSockets reports whether this Windows knows no Unix sockets; what is at a path
// cannot be told then.
//
// Source: socket(), WSAEAFNOSUPPORT; they came with Windows Server 2019.
func hasNoSockets(err error) bool { return errors.Is(err, windows.WSAEAFNOSUPPORT) }

// withSocketHint says what to listen on instead of a socket where there are none.
func withSocketHint(err error) error {
	if !hasNoSockets(err) {
		return err
	}
	return fmt.Errorf("this Windows has no Unix sockets, give npipe:NAME instead: %w", err)
}
