package wine

import (
	"context"
	"testing"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/internal/freeport"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/test/wine/worlds"
)

// csi-proxy's whole client calls every method of every version of csi-proxy.exe
// on its well-known pipes, on a simulated node inside the program.
func TestEveryMethodOfEveryVersion(t *testing.T) {
	// Made first: it outlives csi-proxy.exe, which may keep files in it open.
	folder, address := t.TempDir(), freeport.Address(t)
	p := bed.Start(t, simFlags(t, "-sim-control="+address, "-kubelet-path="+worlds.Root)...)
	p.WaitReady(t)
	c, err := client.New(client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	node := control.NewClient(address)
	t.Cleanup(func() {
		node.Close()
		_ = c.Close()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-p.Ended
		cancel()
	}()
	worlds.Run(t, worlds.Bed{
		Ctx: ctx, Control: node, Client: c, Folder: folder, NodePath: func(path string) string { return path },
		Services: worlds.SimServices{Control: node},
	})
}
