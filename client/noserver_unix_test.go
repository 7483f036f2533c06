//go:build unix

package client_test

import (
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// leaveBehind makes the socket of a server that has ended without removing it.
func leaveBehind(t *testing.T, place pipe.Place, group, version string) {
	t.Helper()
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(place.Dir, pipe.Name(group, version)+".sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
}

// Where nothing at all is served the error says so, whatever was left behind.
func TestNoServerIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left, serve string
		kind        host.Kind
		isNone      bool
	}{
		"no folder's content":         {"", "", host.KindUnavailable, true},
		"socket of a server gone":     {wire.GroupDisk, "", host.KindUnavailable, true},
		"another group's server gone": {wire.GroupVolume, "", host.KindUnavailable, true},
		"another group is served":     {"", wire.GroupVolume, host.KindUnsupported, false},
		"another, and a left socket":  {wire.GroupDisk, wire.GroupVolume, host.KindUnavailable, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := wiretest.Place(t)
			if c.left != "" {
				leaveBehind(t, place, c.left, "v1")
			}
			if c.serve != "" {
				t.Cleanup(start(t, richHost(), place, c.serve))
			}
			_, err := open(t, client.Options{Place: place}).ListDiskLocations(t.Context())
			wantKind(t, err, c.kind)
			if errors.Is(err, client.ErrNoServer) != c.isNone {
				t.Errorf("%v: ErrNoServer is in it: %v, want %v", err, !c.isNone, c.isNone)
			}
		})
	}
}
