package wine

import (
	"io"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/test/upstream"
	"github.com/csi-windows/csi-windows/wire"
)

// csi-proxy's whole client calls every method of every version of csi-proxy.exe
// on its well-known pipes; the answer is right, and the node is changed as it says.
func TestEveryMethodOfEveryVersion(t *testing.T) {
	n := startNode(t)
	arrangers, called := worlds(), 0
	for api, cases := range upstream.CasesByAPI() {
		stub, err := upstream.Client(api.Group, api.Version)
		if err != nil {
			t.Errorf("%s: %v", api, err)
			continue
		}
		for _, c := range cases {
			called++
			t.Run(c.Name(), func(t *testing.T) { runCase(n.on(t), c, stub, arrangers[worldOf(c)]) })
		}
		if err := stub.Close(); err != nil {
			t.Errorf("%s: close: %v", api, err)
		}
	}
	want := 0
	for _, d := range wire.Describe() {
		if d.API.Group != wire.GroupExtension {
			want++
		}
	}
	if called != want {
		t.Errorf("%d methods were called, want %d", called, want)
	}
}

// runCase arranges the node, makes the call and looks at what has changed.
func runCase(n *node, c upstream.Case, stub io.Closer, arrange func(*node) world) {
	if arrange == nil {
		n.Fatalf("nothing is known of %s", worldOf(c))
	}
	defer n.reset()
	w := arrange(n)
	words := strings.NewReplacer(w.words...)
	c.Request, c.Response = words.Replace(c.Request), words.Replace(c.Response)
	messages, err := c.Do(n.Context(), stub)
	if err != nil {
		n.Fatal(err)
	}
	if diff, err := c.Check(messages.Response); err != nil || diff != "" {
		n.Errorf("answer (-want +got), error %v:\n%s", err, diff)
	}
	w.check()
}
