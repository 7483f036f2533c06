//go:build unix

package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// A stop that comes while the pipes are being opened is no failure, also when the
// sockets of a killed process have to be looked at.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(folder, pipe.Name("disk", "v1")+".sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := parse("linux", "-sim-dir="+t.TempDir(), "-socket-dir="+folder, "-api=disk/v1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := (&program{config: c, log: slog.New(slog.DiscardHandler)}).serve(ctx, startReport{ready: func() { t.Error("it was ready") }}); err != nil {
		t.Errorf("exit code %d: %v", exit.Code(err), err)
	}
}
