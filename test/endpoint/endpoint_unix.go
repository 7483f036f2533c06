//go:build !windows

package endpoint

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func own(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "kit") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return "unix:" + filepath.Join(folder, "csi.sock")
}

func dial(ctx context.Context, endpoint string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(endpoint, "unix:"))
}
