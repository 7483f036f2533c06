package csikit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/internal/endpoint"
)

// probeEndpointTimeout bounds the look whether somebody answers on a socket.
const probeEndpointTimeout = time.Second

// socketMode lets the account of the server in, and root. It changes nothing on
// Windows: there the folder's access list holds.
const socketMode = 0o600

// errEndpointInUse is found in the error of a listen when another server has the endpoint.
var errEndpointInUse = errors.New("in use by another server")

// listen opens an endpoint. A socket that nobody answers is replaced; nothing
// else that is there is. The error names the endpoint.
func listen(ctx context.Context, at endpoint.Endpoint) (net.Listener, error) {
	listener, err := open(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", at, err)
	}
	return listener, nil
}

func open(ctx context.Context, at endpoint.Endpoint) (net.Listener, error) {
	switch at.Network {
	case "npipe":
		return listenPipe(at.Address)
	case "unix":
		listener, err := listenSocket(ctx, at.Address)
		return listener, withSocketHint(err)
	default:
		return new(net.ListenConfig).Listen(ctx, at.Network, at.Address)
	}
}

// listenSocket makes a socket that only this account may use. Close removes it, unless
// another server has put its own in its place.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if info, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("the folder of the socket: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder", filepath.Dir(path))
	}
	if err := clearLeftOver(ctx, path); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	own := &socketListener{UnixListener: listener, path: path}
	own.made, _ = os.Lstat(path)
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return own, nil
}

// socketListener is a listener that knows its own file.
type socketListener struct {
	*net.UnixListener
	path string
	made fs.FileInfo // nil when it could not be looked at
	once sync.Once
}

// Close ends the listener, after its file has gone: whoever finds no file starts anew.
func (l *socketListener) Close() (err error) {
	l.once.Do(func() {
		if there, statErr := os.Lstat(l.path); l.made == nil || statErr == nil && os.SameFile(l.made, there) {
			err = os.Remove(l.path)
		}
	})
	return errors.Join(err, l.UnixListener.Close())
}

// clearLeftOver removes the socket of a server that has gone.
func clearLeftOver(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !mayBeSocket(info.Mode(), info.Size(), runtime.GOOS):
		return fmt.Errorf("%s exists and is no socket (%s, %d bytes); it is left alone", path, info.Mode(), info.Size())
	}
	ctx, cancel := context.WithTimeout(ctx, probeEndpointTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return errEndpointInUse
	case errors.Is(err, fs.ErrNotExist): // its server has just ended
		return nil
	case !isUnanswered(err):
		return fmt.Errorf("%w, or it cannot be seen whether it is: %w", errEndpointInUse, err)
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// mayBeSocket reports whether a file can be the socket of a server. On Windows a
// socket has a reparse tag of its own, which not every way of looking shows as a
// socket; it has no content then.
//
// Source: IO_REPARSE_TAG_AF_UNIX, ntifs.h.
func mayBeSocket(mode fs.FileMode, size int64, system string) bool {
	if mode.Type() == fs.ModeSocket {
		return true
	}
	return system == "windows" && size == 0 && mode.Type()&^fs.ModeIrregular == 0
}
