package cluster

import (
	"os"
	"strings"
)

// NamedPlainDriver starts the plain driver under a name of its own, with a back-end
// of its own, so that a cluster has several that can do different things.
func (c *Cluster) NamedPlainDriver(name string, flags ...string) *Driver {
	c.t.Helper()
	short, _, _ := strings.Cut(name, ".")
	folder := c.path("plain-" + short)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		c.t.Fatal(err)
	}
	return c.plainDriver(short, c.path(short+".sock"), append([]string{"-name=" + name, "-dir=" + folder}, flags...))
}
