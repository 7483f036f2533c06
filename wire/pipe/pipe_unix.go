//go:build !windows

package pipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultDir is the folder of the sockets when a Place names none.
const DefaultDir = "/run/csi-proxy"

// neededAccount tells a caller who was refused what would help.
const neededAccount = "the socket is for the account that runs the server, or root"

// stagingName is the name under which a socket is bound before it has its final
// mode and name. Two servers never use it at once: they hold the folder's lock.
const stagingName = ".new.sock"

// lockRetryInterval is how often the lock of the folder is asked for.
const lockRetryInterval = 5 * time.Millisecond

// Address returns the path of the socket of a group and version. A path that
// does not fit into a socket address is an error.
func (p Place) Address(group, version string) (string, error) {
	return p.address(Name(group, version))
}

func (p Place) address(name string) (string, error) {
	dir := p.Dir
	if dir == "" {
		dir = DefaultDir
	}
	path := filepath.Join(dir, name+".sock")
	// The last byte is the terminator. Source: unix(7), sun_path.
	if max := len(unix.RawSockaddrUnix{}.Path) - 1; len(path) > max {
		return "", fmt.Errorf("socket path %s has %d bytes and may have %d: choose a shorter folder", path, len(path), max)
	}
	return path, nil
}

// listen binds the socket under a staging name, closes it to other users and
// only then gives it its name: nobody can connect in between.
func (p Place) listen(ctx context.Context, name string) (net.Listener, error) {
	path, err := p.address(name)
	if err != nil {
		return nil, unusable(err)
	}
	unlock, err := openDir(ctx, filepath.Dir(path))
	if err != nil {
		return nil, unusable(err)
	}
	defer unlock()
	if err := clearStale(ctx, path); err != nil {
		return nil, err
	}
	staging := filepath.Join(filepath.Dir(path), stagingName)
	if err := os.Remove(staging); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unusable(err)
	}
	inner, err := net.ListenUnix("unix", &net.UnixAddr{Name: staging, Net: "unix"})
	if err != nil {
		return nil, unusable(err)
	}
	inner.SetUnlinkOnClose(false)
	info, err := publish(staging, path)
	if err != nil {
		_ = inner.Close()
		_ = os.Remove(staging)
		return nil, unusable(err)
	}
	return &listener{UnixListener: inner, path: path, info: info}, nil
}

// unusable words every failure but "in use".
func unusable(err error) error { return fmt.Errorf("not usable: %w", err) }

// publish gives a bound socket its mode and its name.
func publish(staging, path string) (fs.FileInfo, error) {
	if err := os.Chmod(staging, 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(staging, path); err != nil {
		return nil, err
	}
	return os.Lstat(path)
}

// openDir makes the folder when it is missing, refuses one that other users may
// change, and locks it against other servers until unlock is called.
func openDir(ctx context.Context, dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("folder %s may be changed by other users (mode %#o)", dir, info.Mode().Perm())
	}
	if err == nil {
		err = lock(ctx, file)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil // closing gives the lock back
}

// lock takes the advisory lock of an open file before ctx ends.
func lock(ctx context.Context, file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lock folder %s: %w", file.Name(), context.Cause(ctx))
		case <-time.After(lockRetryInterval):
		}
	}
}

// clearStale removes the socket of a dead server. A live server is ErrInUse, and
// a file that is no socket is left alone.
func clearStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unusable(err)
	case info.Mode().Type() != fs.ModeSocket:
		return unusable(fmt.Errorf("%s exists and is no socket", path))
	}
	conn, err := dial(ctx, path)
	if err == nil {
		_ = conn.Close()
		return ErrInUse
	}
	// Nobody listens. Source: connect(2), ECONNREFUSED.
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w or cannot be looked at: %w", ErrInUse, err)
	}
	if err := os.Remove(path); err != nil {
		return unusable(err)
	}
	return nil
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", address)
}

// listener removes its socket on Close, unless the name leads to another one.
type listener struct {
	*net.UnixListener
	path string
	info fs.FileInfo
}

// Addr returns the path clients use.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close stops listening and removes the socket.
func (l *listener) Close() error {
	err := l.UnixListener.Close()
	if err != nil {
		return err
	}
	if info, statErr := os.Lstat(l.path); statErr == nil && os.SameFile(info, l.info) {
		return os.Remove(l.path)
	}
	return nil
}
