package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// KubeletDir is kubelet's folder as the node sees it.
const KubeletDir = "/var/lib/kubelet"

// Kubelet is a real kubelet with containers, in name spaces of its own.
type Kubelet struct {
	// Node is the name of its Node object.
	Node string
	// Root is the folder of the machine that is the node's tree: what the node calls
	// /var/lib/kubelet is Root/var/lib/kubelet. It can be the drive C: of a simulated
	// Windows node.
	Root string

	c          *Cluster
	dir        string
	namespace  *namespace
	containerd *program
	kubelet    *program
	args       []string
}

// kubeletRequired makes a machine that cannot run a kubelet an error.
const kubeletRequired = "CSI_KUBELET_REQUIRED"

// NeedsKubelet skips a test where no kubelet can run, unless CSI_KUBELET_REQUIRED is
// set. It costs less when it is called before Start.
func NeedsKubelet(t testing.TB) {
	t.Helper()
	_, err := exec.LookPath("containerd")
	if err == nil {
		_, err = exec.LookPath("runc")
	}
	if err == nil && os.Geteuid() != 0 {
		err = errors.New("this is not root")
	}
	switch {
	case err == nil:
	case os.Getenv(kubeletRequired) != "":
		t.Fatalf("a kubelet cannot run: %v", err)
	default:
		t.Skipf("a kubelet cannot run: %v", err)
	}
}

// Kubelet starts a kubelet and its container runtime, and waits until the node is
// ready.
func (c *Cluster) Kubelet(node string) *Kubelet {
	c.t.Helper()
	NeedsKubelet(c.t)
	k := &Kubelet{Node: node, Root: c.path(node, "c"), c: c, dir: c.path(node)}
	for _, folder := range []string{k.Path(KubeletDir), k.path("cni"), k.path("containerd")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			c.t.Fatal(err)
		}
	}
	c.t.Cleanup(func() { // after the end of the name spaces
		ids, err := k.containers()
		if err == nil {
			err = removeGroups(ids)
		}
		if err != nil {
			c.t.Errorf("node %s: control groups: %v", node, err)
		}
	})
	k.namespace = c.newNamespace(node)
	k.namespace.must(map[string]any{"bind": []string{k.Path(KubeletDir), KubeletDir}})
	// What runs here leaves nothing in the machine's own folders.
	k.namespace.must(map[string]any{"hide": "/run"})
	k.namespace.must(map[string]any{"hide": "/var/log"})
	k.startContainerd()
	k.Start()
	c.Wait("node "+node, startTime, k.Ready)
	return k
}

// Path is the machine's path of a path of the node.
func (k *Kubelet) Path(path string) string { return filepath.Join(k.Root, path) }

// path is one of the node's own state, outside its tree.
func (k *Kubelet) path(name string) string { return filepath.Join(k.dir, name) }

// startContainerd starts the container runtime and gives it the image.
func (k *Kubelet) startContainerd() {
	k.c.t.Helper()
	program, err := exec.LookPath("containerd")
	if err != nil {
		k.c.t.Fatal(err)
	}
	for name, text := range map[string]string{"containerd.toml": k.containerdConfig(), "cni/10-none.conflist": noNetwork} {
		if err := os.WriteFile(k.path(name), []byte(text), 0o600); err != nil {
			k.c.t.Fatal(err)
		}
	}
	image := k.path("image.tar")
	writeImage(k.c.t, image)
	k.containerd = k.namespace.start(k.Node+"-containerd", program, "--config", k.path("containerd.toml"))
	k.c.Wait("containerd", startTime, func(ctx context.Context) error {
		if err := k.containerd.failure(); err != nil {
			k.c.t.Fatal(err)
		}
		output, err := exec.CommandContext(ctx, "ctr", "-a", k.path("containerd.sock"), "-n", "k8s.io", "images", "import", image).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	})
}

// noNetwork lets the runtime say that there is a network; pods use the machine's.
const noNetwork = `{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}`

func (k *Kubelet) containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = %[1]q
state = %[2]q
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt"]
[grpc]
address = %[3]q
[plugins."io.containerd.grpc.v1.cri"]
# The machine may lack the rights for both.
disable_cgroup = true
restrict_oom_score_adj = true
sandbox_image = %[4]q
disable_tcp_service = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = %[5]q
conf_dir = %[5]q
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
`, k.path("containerd"), "/run/containerd", k.path("containerd.sock"), Image, k.path("cni"))
}

// Start starts the kubelet, again after Stop or Kill.
func (k *Kubelet) Start() {
	k.c.t.Helper()
	if k.args == nil {
		k.prepare()
	}
	k.kubelet = k.namespace.start(k.Node+"-kubelet", kubernetesProgram(k.c.t, "kubelet"), k.args...)
}

// prepare writes the kubelet's configuration.
func (k *Kubelet) prepare() {
	k.c.t.Helper()
	ports, err := freePorts(2)
	if err != nil {
		k.c.t.Fatal(err)
	}
	data, err := yaml.Marshal(k.config(ports[0], ports[1]))
	if err == nil {
		err = os.WriteFile(k.path("kubelet.yaml"), data, 0o600)
	}
	kubeconfig := k.path("kubeconfig.yaml")
	if err == nil {
		err = writeKubeconfig(kubeconfig, k.c.nodeConfig(k.Node))
	}
	if err != nil {
		k.c.t.Fatal(err)
	}
	k.args = []string{
		"--config=" + k.path("kubelet.yaml"), "--kubeconfig=" + kubeconfig, "--root-dir=" + KubeletDir,
		"--cert-dir=" + k.path("pki"), "--hostname-override=" + k.Node,
	}
}

// config is the kubelet's: limits of the machine that a test does not meet are off.
func (k *Kubelet) config(port, healthPort int) map[string]any {
	noEviction := map[string]string{}
	for _, signal := range []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"} {
		noEviction[signal] = "0%"
	}
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"containerRuntimeEndpoint": "unix://" + k.path("containerd.sock"),
		"failCgroupV1":             false, "cgroupsPerQOS": false, "enforceNodeAllocatable": []string{}, "cgroupDriver": "cgroupfs",
		"address": "127.0.0.1", "port": port, "readOnlyPort": 0, "healthzBindAddress": "127.0.0.1", "healthzPort": healthPort,
		"authentication":         map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}},
		"authorization":          map[string]any{"mode": "AlwaysAllow"},
		"makeIPTablesUtilChains": false, "localStorageCapacityIsolation": false, "evictionHard": noEviction,
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99, // the image cannot be had again
		"resolvConf": "", "volumePluginDir": k.path("volumeplugins"), "failSwapOn": false,
	}
}

// Ready fails while the node is not ready.
func (k *Kubelet) Ready(ctx context.Context) error {
	if err := k.kubelet.failure(); err != nil {
		return err
	}
	node, err := k.c.Client.CoreV1().Nodes().Get(ctx, k.Node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return condition(node.Status.Conditions, "Ready")
}

// Stop asks the kubelet to stop, as a restart for an upgrade does; pods run on.
func (k *Kubelet) Stop() {
	k.c.t.Helper()
	if err := k.kubelet.stop(syscall.SIGTERM); err != nil {
		k.c.t.Fatal(err)
	}
}

// Kill ends the kubelet at once; pods run on.
func (k *Kubelet) Kill() {
	k.c.t.Helper()
	if err := k.kubelet.stop(syscall.SIGKILL); err != nil {
		k.c.t.Fatal(err)
	}
}

// Registered fails while a driver is not registered at the node.
func (k *Kubelet) Registered(ctx context.Context, driver string) error {
	node, err := k.c.Client.StorageV1().CSINodes().Get(ctx, k.Node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, d := range node.Spec.Drivers {
		if d.Name == driver {
			return nil
		}
	}
	text, err := json.Marshal(node.Spec.Drivers)
	return errors.Join(fmt.Errorf("%s is not among %s", driver, text), err)
}
