// Package chaos has many claims, pods and snapshots live and die in random order on a
// real control plane, while the sidecar and the driver are killed and started again,
// the driver answers as bad networks and bad back-ends do, and the API server stands
// still. In the end the back-end holds what the cluster holds and nothing else.
package chaos

import (
	"os"
	"testing"

	"github.com/csi-windows/csi-windows/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }
