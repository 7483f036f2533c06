// Package life has the lives of claims, volumes, attachments, snapshots and classes
// on a real control plane: the same scenes with the driver of the simulated cloud and
// with one that shares no code with the kit, and with drivers that can do little.
// Nothing runs on the nodes; their pods run when their volumes are attached.
package life

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// drivers go through their scenes at once, so many unless -parallel says otherwise:
// most of a scene is waiting for controllers.
const parallel = "8"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", parallel); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(cluster.Main(m))
}
