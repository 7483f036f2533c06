package pipe_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

func TestMain(m *testing.M) { wiretest.Main(m) }

func TestName(t *testing.T) {
	t.Parallel()
	if got := pipe.Name("filesystem", "v2alpha1"); got != "csi-proxy-filesystem-v2alpha1" {
		t.Errorf("got %q", got)
	}
}

// What one end writes, the other reads, and the server knows who the caller is.
func TestListenAndDial(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	listener, err := place.Listen(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	type accepted struct {
		text string
		pid  uint32
		err  error
	}
	done := make(chan accepted, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			done <- accepted{err: err}
			return
		}
		defer conn.Close()
		text := make([]byte, 5)
		_, err = conn.Read(text)
		pid, _ := pipe.PeerPID(conn)
		done <- accepted{string(text), pid, err}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := place.Dial(ctx, "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	got := <-done
	if got.err != nil || got.text != "hello" || got.pid != uint32(os.Getpid()) {
		t.Errorf("got %+v, want hello from %d", got, os.Getpid())
	}
}

// C058: the second server is told that the pipe is in use, and which.
func TestC058_PipeInUse(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	first, err := place.Listen(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = place.Listen(t.Context(), "disk", "v1")
	if !errors.Is(err, pipe.ErrInUse) || err.Error() != "pipe csi-proxy-disk-v1 is in use" {
		t.Errorf("second listener: %v", err)
	}
	other, err := place.Listen(t.Context(), "disk", "v1beta1")
	if err != nil {
		t.Errorf("another pipe: %v", err)
	} else {
		_ = other.Close()
	}
}

func TestDialMissingPipe(t *testing.T) {
	t.Parallel()
	_, err := wiretest.Place(t).Dial(t.Context(), "disk", "v1")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

// A closed pipe is gone, and can be opened again.
func TestListenAgain(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	for range 3 {
		listener, err := place.Listen(t.Context(), "disk", "v1")
		if err != nil {
			t.Fatal(err)
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := place.Dial(t.Context(), "disk", "v1"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after Close: %v", err)
		}
	}
}
