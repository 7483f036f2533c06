// Command csi-driver is the reference CSI driver: the controller's services, the
// node's, or both, for one of its backends.
//
// Flags, storage classes, secrets and volume ids are described in docs/driver.md.
package main

import (
	"context"
	"os"
	"runtime"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], environment{
		GOOS:   runtime.GOOS,
		Getenv: os.Getenv,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
	}))
}
