package registrar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// socketMode lets this account in, and root, which the kubelet is.
	socketMode = 0o600
	// dialTimeout bounds the look whether somebody answers on a socket.
	dialTimeout = time.Second
	// takeoverTime is what another registrar has between removing the socket and
	// listening on its own. A container that has used up its share of the
	// processor stands still for a tenth of a second, or for several.
	takeoverTime = 500 * time.Millisecond
)

// socket is a registration socket that knows its own file.
type socket struct {
	*net.UnixListener
	path string
	made fs.FileInfo
	once sync.Once
}

// openSocket makes the socket at a path. One that is there already is replaced,
// even when it is in use: its owner may be a registrar that is about to be
// replaced by this one, and lets it be (see state). Other files stay.
func openSocket(path string) (*socket, error) {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil {
		return nil, fmt.Errorf("plugin registration path: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("plugin registration path %s is no folder but %s", folder, info.Mode())
	}
	if err := clearLeftOver(path); err != nil {
		return nil, fmt.Errorf("registration socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("registration socket: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	s := &socket{UnixListener: listener, path: path}
	if s.made, err = os.Lstat(path); err == nil {
		// On Windows the identity of a file is read when it is first compared.
		os.SameFile(s.made, s.made)
		err = os.Chmod(path, socketMode)
	}
	if err != nil {
		return nil, fmt.Errorf("registration socket: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

// Close ends the listener after its file has gone, unless another is there by now.
func (s *socket) Close() (err error) {
	s.once.Do(func() {
		if s.isOwn() {
			if err = os.Remove(s.path); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
		err = errors.Join(err, s.UnixListener.Close())
	})
	return err
}

func (s *socket) isOwn() bool {
	there, err := os.Lstat(s.path)
	return err == nil && s.made != nil && os.SameFile(s.made, there)
}

// fileState says what is at the path of a socket.
type fileState int

const (
	fileOwn    fileState = iota // the socket itself
	fileGone                    // nothing that answers
	fileOthers                  // a socket of another process, which answers
)

// state looks at the path. A socket that others have put there and that answers
// is to be let alone: two registrars that each replaced the other's socket
// would have the kubelet register for ever.
func (s *socket) state(ctx context.Context) fileState {
	if s.isOwn() {
		return fileOwn
	}
	if answers(ctx, s.path) == nil {
		return fileOthers
	}
	moment := time.NewTimer(takeoverTime)
	defer moment.Stop()
	select {
	case <-ctx.Done():
	case <-moment.C:
	}
	if answers(ctx, s.path) == nil {
		return fileOthers
	}
	return fileGone
}

// answers tries whether somebody listens on a socket.
func answers(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	return conn.Close()
}

// clearLeftOver removes what an earlier registrar has left.
func clearLeftOver(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !mayBeSocket(info.Mode(), info.Size()):
		return fmt.Errorf("%s exists and is no socket (%s, %d bytes); it is left alone", path, info.Mode(), info.Size())
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a left-over: %w", err)
	}
	return nil
}

// mayBeSocket reports whether a file can be a socket that somebody has left. On
// Windows one is not always shown as a socket: its reparse tag cannot be seen
// through the folder of a container. It has no content then, and where a file
// without content is none, nothing is lost with it.
//
// Source: IO_REPARSE_TAG_AF_UNIX, ntifs.h.
func mayBeSocket(mode fs.FileMode, sizeBytes int64) bool {
	if mode.Type() == fs.ModeSocket {
		return true
	}
	return sizeBytes == 0 && mode.Type()&^fs.ModeIrregular == 0
}
