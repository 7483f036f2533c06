package client_test

import (
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// C052, the option: it arrives whole, and a server that lacks it is not asked for a
// login of another kind.
func TestC052_PersistentLogin(t *testing.T) {
	t.Parallel()
	portal := host.TargetPortal{Address: "10.0.0.1", Port: 3261}
	options := host.ConnectOptions{AuthType: host.AuthMutualCHAP, ChapUsername: "u", ChapSecret: "0123456789ab", Persistent: true}
	for name, tt := range map[string]struct {
		apis    []wire.API
		carries bool
	}{
		"ours":     {nil, true},
		"official": {apis(t, "iscsi/v1alpha2"), false},
	} {
		place := wiretest.Place(t)
		served, direct := &wiretest.Host{}, &wiretest.Host{}
		wiretest.Serve(t, wire.ServerConfig{Host: served, Place: place, APIs: tt.apis})
		c := open(t, client.Options{Place: place})
		err := c.ConnectTarget(t.Context(), portal, "iqn.x", options)
		if tt.carries {
			if directErr := direct.ConnectTarget(t.Context(), portal, "iqn.x", options); err != nil || directErr != nil {
				t.Errorf("%s: %v, %v", name, err, directErr)
			}
		} else {
			wantKind(t, err, host.KindUnsupported)
			if !strings.Contains(err.Error(), "persistent") || !strings.Contains(err.Error(), "ConnectTarget") {
				t.Errorf("%s: %v does not name the option", name, err)
			}
		}
		if got, want := strings.Join(served.Calls(), "\n"), strings.Join(direct.Calls(), "\n"); got != want {
			t.Errorf("%s: the host heard %q, want %q", name, got, want)
		}
	}
}
