package wiretest

import (
	"context"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"fmt"

	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// stopTimeout is how long Serve's server may take to stop at the end of a test; it
// is far more than it takes.
const stopTimeout = 30 * time.Second

// places counts the places on Windows, which all lie in one name space.
var places atomic.Int64

// Place returns a place for pipes that nobody else uses. It is short enough for
// socket addresses, which t.TempDir is not always.
func Place(t testing.TB) pipe.Place {
	t.Helper()
	if runtime.GOOS == "windows" {
		return pipe.Place{Dir: fmt.Sprintf("csi-windows-test-%d-%d", os.Getpid(), places.Add(1))}
	}
	dir, err := os.MkdirTemp("", "pipes")
	if err != nil {
		t.Fatalf("make a folder for sockets: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return pipe.Place{Dir: dir}
}

// Serve starts a server and stops it at the end of the test.
func Serve(t testing.TB, cfg wire.ServerConfig) *wire.Server {
	t.Helper()
	server, err := wire.NewServer(cfg)
	if err != nil {
		t.Fatalf("new server: %v", err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatalf("start server: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("shut down server: %v", err)
		}
	})
	return server
}
