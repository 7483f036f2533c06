package cluster_test

import (
	"os"
	"testing"

	"github.com/csi-windows/csi-windows/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }
