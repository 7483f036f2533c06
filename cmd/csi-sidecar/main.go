// Command csi-sidecar is what stands beside a CSI driver in Kubernetes: the
// registrar, the provisioner, the attacher, the resizer, the snapshotter and
// the liveness probe, any of them in one process. Under the name of one of
// upstream's programs it takes that program's flags.
//
// Flags are described in docs/csi-sidecar.md.
package main

import (
	"context"
	"os"
	"runtime"
)

func main() {
	os.Exit(run(context.Background(), os.Args, environment{
		GOOS:     runtime.GOOS,
		Getenv:   os.Getenv,
		Hostname: os.Hostname,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
	}))
}
