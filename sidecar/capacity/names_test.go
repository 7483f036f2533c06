package capacity

import (
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sidecar/topology"
)

func TestManagerOfANodeFitsInALabel(t *testing.T) {
	for _, c := range []struct{ node, want string }{
		{"", "external-provisioner"},
		{"n1", "external-provisioner-n1"},
		{strings.Repeat("n", 42), "external-provisioner-" + strings.Repeat("n", 42)},
		{strings.Repeat("n", 43), "external-p-" + shortHash("external-provisioner") + "-" + strings.Repeat("n", 43)},
		{strings.Repeat("n", 52), "e-" + shortHash("external-provisioner") + "-" + strings.Repeat("n", 52)},
		{strings.Repeat("n", 53), "external-provisioner-" + shortHash("external-provisioner-"+strings.Repeat("n", 53))},
		{strings.Repeat("n", 253), "external-provisioner-" + shortHash("external-provisioner-"+strings.Repeat("n", 253))},
	} {
		if got := managedBy(c.node); got != c.want || len(got) > labelMax {
			t.Errorf("node of %d characters: %s, want %s", len(c.node), got, c.want)
		}
	}
}

func TestNamesOfObjectsTellItemsApart(t *testing.T) {
	names := map[string]bool{}
	add := func(driver, manager, class string, pairs ...topology.Pair) {
		name := objectName(driver, manager, item{class, pairs})
		if names[name] || len(name) != len("csisc-")+20 {
			t.Errorf("%s %s %s %v: %s", driver, manager, class, pairs, name)
		}
		names[name] = true
	}
	add("d", "m", "c")
	add("e", "m", "c")
	add("d", "n", "c")
	add("d", "m", "d")
	add("d", "m", "c", topology.Pair{Key: "zone", Value: "a"})
	add("d", "m", "c", topology.Pair{Key: "zone", Value: "b"})
	add("d", "m", "c", topology.Pair{Key: "zone", Value: "a"}, topology.Pair{Key: "zones", Value: "a"})
}
