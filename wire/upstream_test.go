package wire_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/test/upstream"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Every method of every version, called through csi-proxy's own stubs: the host is
// asked the right thing, the driver gets the right answer, and the bytes of both
// are those of the golden file.
func TestEveryMethodThroughUpstreamStubs(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	h := upstream.Host()
	wiretest.Serve(t, wire.ServerConfig{Host: h, Place: place})
	cases := upstream.Cases()
	if len(cases) != 139 {
		t.Fatalf("%d cases, want 139", len(cases))
	}
	stubs := map[wire.API]any{}
	var golden bytes.Buffer
	for _, c := range cases {
		api := wire.API{Group: c.Group, Version: c.Version}
		if stubs[api] == nil {
			stubs[api] = upstream.Stub(c.Group, c.Version, dial(t, place, api))
		}
		messages, diff := c.Run(t.Context(), stubs[api], h)
		if diff != "" {
			t.Errorf("%s: %s", c.Name(), diff)
			continue
		}
		fmt.Fprintf(&golden, "%s %s %s\n", c.Name(), bytesOf(t, messages.Request), bytesOf(t, messages.Response))
	}
	checkGolden(t, "methods.golden", golden.Bytes())
}

// bytesOf returns the bytes of a message in hex, and "-" for none.
func bytesOf(t *testing.T, m proto.Message) string {
	t.Helper()
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	if len(raw) == 0 {
		return "-"
	}
	return hex.EncodeToString(raw)
}

func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and look at the difference", path)
	}
}
