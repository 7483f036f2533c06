package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// WholeSidecar is a csi-sidecar with all components in one process.
type WholeSidecar struct {
	*Process

	c            *Cluster
	registration string // its socket
	health       string // its URL
}

// WholeSidecar starts csi-sidecar beside a driver with all six components, those of a
// node included. No kubelet is needed: Register does what one would.
func (c *Cluster) WholeSidecar(driver *Driver, flags ...string) *WholeSidecar {
	c.t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		c.t.Fatal(err)
	}
	folder := c.path("plugins_registry")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		c.t.Fatal(err)
	}
	health := fmt.Sprintf("127.0.0.1:%d", ports[0])
	s := &WholeSidecar{c: c, registration: filepath.Join(folder, PlainDriverName+"-reg.sock"), health: "http://" + health + "/healthz"}
	s.Process = c.Start("csi-sidecar", Program(c.t, "csi-sidecar"), append([]string{
		"--controllers=provisioner,attacher,resizer,snapshotter,node-driver-registrar,livenessprobe", "--csi-address=" + driver.SocketPath,
		"--kubeconfig=" + c.SidecarKubeconfig(), "--leader-election-namespace=" + Namespace,
		"--plugin-registration-path=" + folder, "--kubelet-registration-path=" + driver.SocketPath, "--livenessprobe-http-endpoint=" + health,
	}, flags...)...)
	return s
}

// Register asks for the driver and accepts it, as a kubelet does.
func (s *WholeSidecar) Register(ctx context.Context) error {
	client := registerapi.NewRegistrationClient(s.c.Dial("unix:" + s.registration))
	s.c.waitFor(s.Process, func(ctx context.Context) error {
		_, err := client.GetInfo(ctx, &registerapi.InfoRequest{})
		return err
	})
	_, err := client.NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{PluginRegistered: true})
	return err
}

// Probe asks whether the driver is well, as the kubelet's probe of a container does.
func (s *WholeSidecar) Probe(ctx context.Context) error {
	return askHealth(ctx, http.DefaultClient, s.health)
}
