//go:build !windows

package pipe_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

const socketName = "csi-proxy-disk-v1.sock"

// A missing folder is made for the server alone, and so is the socket.
func TestModes(t *testing.T) {
	t.Parallel()
	place := pipe.Place{Dir: filepath.Join(wiretest.Place(t).Dir, "a", "b")}
	listener, err := place.Listen(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	path := filepath.Join(place.Dir, socketName)
	if listener.Addr().String() != path {
		t.Errorf("address %s, want %s", listener.Addr(), path)
	}
	for name, want := range map[string]fs.FileMode{place.Dir: fs.ModeDir | 0o700, path: fs.ModeSocket | 0o600} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v (%v), want %v", name, info.Mode(), err, want)
		}
	}
}

func TestFolderOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	if err := os.Chmod(place.Dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := place.Listen(t.Context(), "disk", "v1"); err == nil || !strings.Contains(err.Error(), "other users") {
		t.Errorf("got %v", err)
	}
}

// The socket of a server that died is replaced, and so is one that died while
// it was starting.
func TestStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	for _, name := range []string{socketName, ".new.sock"} {
		stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(place.Dir, name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		stale.SetUnlinkOnClose(false)
		_ = stale.Close()
	}
	listener, err := place.Listen(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := place.Dial(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// What is no socket is not ours to remove.
func TestForeignFileIsRefused(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	path := filepath.Join(place.Dir, socketName)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := place.Listen(t.Context(), "disk", "v1")
	if err == nil || errors.Is(err, pipe.ErrInUse) || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("got %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "precious" {
		t.Errorf("the file now holds %q", text)
	}
}

// Of many servers that start at once over a dead one's socket, one wins, and it
// is the one that clients reach.
func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(place.Dir, socketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	won := make(chan net.Listener, 8)
	var all sync.WaitGroup
	for range cap(won) {
		all.Go(func() {
			listener, err := place.Listen(t.Context(), "disk", "v1")
			if err == nil {
				won <- listener
			} else if !errors.Is(err, pipe.ErrInUse) {
				t.Errorf("a loser: %v", err)
			}
		})
	}
	all.Wait()
	close(won)
	if len(won) != 1 {
		t.Errorf("%d servers listen, want 1", len(won))
	}
	for listener := range won {
		conn, err := place.Dial(t.Context(), "disk", "v1")
		if err != nil {
			t.Errorf("the winner cannot be reached: %v", err)
		} else {
			_ = conn.Close()
		}
		_ = listener.Close()
	}
}

// Close leaves the socket of a successor alone.
func TestCloseLeavesASuccessor(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	path := filepath.Join(place.Dir, socketName)
	first, err := place.Listen(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second, err := place.Listen(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the successor's socket is gone: %v", err)
	}
}

// A folder whose sockets would not fit into an address is named, with the limit.
func TestPathTooLong(t *testing.T) {
	t.Parallel()
	place := pipe.Place{Dir: filepath.Join(wiretest.Place(t).Dir, strings.Repeat("x", 90))}
	_, listenErr := place.Listen(t.Context(), "disk", "v1")
	_, dialErr := place.Dial(t.Context(), "disk", "v1")
	for _, err := range []error{listenErr, dialErr} {
		if err == nil || !strings.Contains(err.Error(), "choose a shorter folder") {
			t.Errorf("got %v", err)
		}
	}
}
