package cluster

import (
	"context"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// PlainDriver starts a plain driver, controller and node in one, in the name spaces of
// a node, where the kubelet sees what it mounts, and registers it there. It can be
// started once a name.
func (k *Kubelet) PlainDriver(name, capabilities string) *Driver {
	k.c.t.Helper()
	folder := filepath.Join(KubeletDir, "plugins", name)
	d := &Driver{SocketPath: k.Path(filepath.Join(folder, "csi.sock"))}
	d.Address = "unix:" + d.SocketPath
	running := k.namespace.start(name, helper(k.c.t, "plaindriver"), "-name="+name, "-socket="+filepath.Join(folder, "csi.sock"),
		"-dir="+folder, "-node="+k.Node, "-capabilities="+capabilities)
	identity := csi.NewIdentityClient(k.c.Dial(d.Address))
	k.c.Wait(name, startTime, func(ctx context.Context) error {
		if err := running.failure(); err != nil {
			k.c.t.Fatal(err)
		}
		_, err := identity.Probe(ctx, &csi.ProbeRequest{})
		return err
	})
	k.c.Start(name+"-registrar", Program(k.c.t, "csi-sidecar"), "--controllers=node-driver-registrar", "--csi-address="+d.SocketPath,
		"--plugin-registration-path="+k.Path(filepath.Join(KubeletDir, "plugins_registry")), "--kubelet-registration-path="+filepath.Join(folder, "csi.sock"))
	k.c.Wait("driver "+name+" is registered", startTime, func(ctx context.Context) error { return k.Registered(ctx, name) })
	return d
}
