// Command csi-proxy is the privileged storage agent of a Windows node: it serves
// the csi-proxy APIs on named pipes. Off Windows it serves the same APIs on
// unix sockets, for a simulated node.
//
// Flags, exit codes, logs and metrics are described in docs/operations.md.
package main

import (
	"context"
	"os"
	"runtime"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], environment{
		GOOS:   runtime.GOOS,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
	}))
}
