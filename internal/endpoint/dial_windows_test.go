package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"

	"github.com/csi-windows/csi-windows/internal/endpoint"
)

// pipeWait bounds waits that a good run ends in milliseconds.
const pipeWait = time.Minute

// A named pipe is connected to by every spelling of its name, and what is said on
// one side is heard on the other.
func TestANamedPipeIsConnectedTo(t *testing.T) {
	name := fmt.Sprintf(`\\.\pipe\endpoint-%d`, os.Getpid())
	listener, err := winio.ListenPipe(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	defer func() { _ = listener.Close(); <-served }()
	// Under Wine the first client of a listener gets an instance that nobody serves.
	if conn, err := winio.DialPipe(name, nil); err == nil {
		_ = conn.Close()
	}
	for _, text := range []string{"npipe:" + name, "npipe:" + strings.ReplaceAll(name, `\`, "/")} {
		at, err := endpoint.Parse(text, "windows")
		if err != nil {
			t.Fatal(err)
		}
		if err := echo(t, at); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func echo(t *testing.T, at endpoint.Endpoint) error {
	ctx, cancel := context.WithTimeout(t.Context(), pipeWait)
	defer cancel()
	conn, err := at.Dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(pipeWait)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("hear me")); err != nil {
		return err
	}
	heard := make([]byte, 7)
	if _, err := io.ReadFull(conn, heard); err != nil || string(heard) != "hear me" {
		return fmt.Errorf("heard %q, %w", heard, err)
	}
	return nil
}

// A pipe that nobody serves is told of at once and by its name.
func TestANamedPipeThatIsNotThere(t *testing.T) {
	at := endpoint.Endpoint{Network: "npipe", Address: fmt.Sprintf(`\\.\pipe\nobody-%d`, os.Getpid())}
	ctx, cancel := context.WithTimeout(t.Context(), pipeWait)
	defer cancel()
	if _, err := at.Dial(ctx); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), at.Address) {
		t.Errorf("the error is %v", err)
	}
}
