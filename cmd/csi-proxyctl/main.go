// Command csi-proxyctl is an operator's look at the storage of a node, through
// the pipes of a csi-proxy. It works against any csi-proxy; what an older or
// foreign one cannot tell is left blank or put together from what it can. Its
// conformance verb checks what a csi-proxy does.
package main

import (
	"context"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], environment{Stdout: os.Stdout, Stderr: os.Stderr, Open: openClient})
	stop()
	os.Exit(code)
}
