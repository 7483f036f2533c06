package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/test/wine/worlds"
)

// The shipped csi-proxy.exe, unchanged and on Windows as it believes, answers
// csi-proxy's whole client: every method goes through COM, devices, Win32 calls
// and the service manager to the simulated node, and changes it.
func TestEveryMethodOfEveryVersionOnWindows(t *testing.T) {
	n := bed.Connect(t)
	n.Fresh()
	// Made first: it outlives csi-proxy.exe. On the drive that is the machine's own.
	folder, err := os.MkdirTemp(`Z:\tmp`, "csi-lab")
	n.OK(err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	p := bed.Start(t, "-host=windows", "-kubelet-path="+worlds.Root)
	p.WaitReady(t)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-p.Ended
		cancel()
	}()
	c, err := client.New(client.Options{})
	n.OK(err)
	t.Cleanup(func() { _ = c.Close() })
	worlds.Run(t, worlds.Bed{
		Ctx: ctx, Control: n.Control, Client: c, Folder: folder, Services: newManagedServices(t),
		NodePath: func(path string) string { return filepath.ToSlash(strings.TrimPrefix(path, "Z:")) },
	})
}
