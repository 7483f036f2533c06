package upstream_test

import (
	"testing"

	"github.com/csi-windows/csi-windows/test/upstream"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// Every method of every version, called by csi-proxy's whole client on its
// well-known pipes. There is one such place on a machine, so no other server may
// run beside this test.
func TestWholeClient(t *testing.T) {
	h := upstream.Host()
	wiretest.Serve(t, wire.ServerConfig{Host: h, Place: pipe.Place{}})
	for api, cases := range upstream.CasesByAPI() {
		client, err := upstream.Client(api.Group, api.Version)
		if err != nil {
			t.Errorf("%s: %v", api, err)
			continue
		}
		for _, c := range cases {
			if _, diff := c.Run(t.Context(), client, h); diff != "" {
				t.Errorf("%s: %s", c.Name(), diff)
			}
		}
		if err := client.Close(); err != nil {
			t.Errorf("%s: close: %v", api, err)
		}
	}
}
