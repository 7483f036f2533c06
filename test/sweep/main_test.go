package sweep

import (
	"fmt"
	"os"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/test/bed"
)

// The whole sweep: every source, every step, every way to break, every call; over
// the agent, and over the official primitives of csi-proxy alone.
func TestSweep(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(host.Host) host.Host{"agent": nil, "official": bed.Official} {
		for _, from := range sources() {
			for _, how := range breakages() {
				t.Run(name+"/"+from.name+"/"+how.name, func(t *testing.T) {
					t.Parallel()
					sweepLife(t, from, how, wrap)
				})
			}
		}
	}
}

// sweepLife sweeps every step of a volume's life.
func sweepLife(t *testing.T, from source, how breakage, wrap func(host.Host) host.Host) {
	for _, at := range []step{stepStage, stepPublish, stepExpand, stepUnpublish, stepUnstage} {
		if at == stepExpand && from.grow == nil {
			continue
		}
		t.Run(string(at), func(t *testing.T) { sweep(t, from, at, false, how, wrap) })
	}
	t.Run("stage again", func(t *testing.T) { sweep(t, from, stepStage, true, how, wrap) })
}

func TestMain(m *testing.M) {
	code := m.Run()
	fmt.Println("points swept:", points.Load())
	os.Exit(code)
}
