package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// The nodes with kubelets.
const (
	node1 = "node1"
	node2 = "node2"
)

// podWith is a pod on a node that runs the tool, with a claim at /data if there is one.
func podWith(name, node, claim string, command ...string) *corev1.Pod {
	seconds := int64(1)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{"kubernetes.io/hostname": node}, HostNetwork: true, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &seconds,
		Containers: []corev1.Container{{Name: "c", Image: cluster.Image, ImagePullPolicy: corev1.PullNever, Args: command}},
	}}
	if claim != "" {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
	return pod
}

// createPod makes a pod.
func createPod(t *testing.T, c *cluster.Cluster, pod *corev1.Pod) {
	t.Helper()
	if _, err := c.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// deletePod deletes a pod and waits until it is gone.
func deletePod(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	if err := c.Client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Wait("pod "+name+" goes", podTime, func(ctx context.Context) error { return podIsGone(ctx, c, name) })
}

// lastMessage is what the container of a pod said when it ended.
func lastMessage(ctx context.Context, c *cluster.Cluster, name string) (string, error) {
	pod, err := c.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil {
			if ended.ExitCode != 0 {
				err = fmt.Errorf("exit code %d", ended.ExitCode)
			}
			return ended.Message, err
		}
	}
	return "", fmt.Errorf("it has not ended: %s, %v", pod.Status.Phase, pod.Status.Conditions)
}

// A kubelet becomes ready and runs pods with containers; killed and started again it
// finds them as they were.
func TestKubelet(t *testing.T) {
	cluster.NeedsKubelet(t)
	c := cluster.Start(t, cluster.Options{})
	began := time.Now()
	k := c.Kubelet(node1)
	t.Logf("ready in %v", time.Since(began))
	createPod(t, c, podWith("p", node1, "", "pause"))
	c.Wait("the pod runs", podTime, func(ctx context.Context) error { return podRuns(ctx, c, "p") })
	k.Kill()
	k.Start()
	createPod(t, c, podWith("q", node1, "", "show", "/proc/self/mounts"))
	var mounts string
	c.Wait("the pod ends", podTime, func(ctx context.Context) (err error) {
		mounts, err = lastMessage(ctx, c, "q")
		return err
	})
	if !strings.Contains(mounts, "overlay / ") {
		t.Errorf("its mounts: %s", mounts)
	}
	pod, err := c.Client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil || pod.Status.ContainerStatuses[0].RestartCount != 0 || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the first pod: %+v, %v", pod.Status, err)
	}
	deletePod(t, c, "p")
}

// A real kubelet stages and publishes a volume through driver, csi-proxy and
// simulated node, whose drive C: is the kubelet's own tree; what one pod writes the
// next one reads, after the volume was off the node meanwhile.
func TestVolumeOfTheSimulatedNodeInAPod(t *testing.T) {
	cluster.NeedsKubelet(t)
	c := cluster.Start(t, cluster.Options{})
	k := c.Kubelet(node1)
	s := k.Storage()
	controller := c.ControllerDriver([]*cluster.Storage{s})
	s.NodeDriver()
	isNeeded := true
	if _, err := c.Client.StorageV1().CSIDrivers().Create(t.Context(), &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.DriverName}, Spec: storagev1.CSIDriverSpec{AttachRequired: &isNeeded},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	h := &hand{t: t, c: c, controller: csi.NewControllerClient(c.Dial(controller.Address))}
	h.register(k)
	c.Wait("the driver is registered", podTime, func(ctx context.Context) error { return k.Registered(ctx, cluster.DriverName) })
	h.provision("claim", 64<<20)

	createPod(t, c, podWith("writer", node1, "claim", "append", "/data/letter.txt", "first line"))
	c.Wait("it is attached", podTime, h.attach)
	c.Wait("the pod runs", podTime, func(ctx context.Context) error { return podRuns(ctx, c, "writer") })
	published, err := filepath.Glob(k.Path(cluster.KubeletDir + "/pods/*/volumes/kubernetes.io~csi/claim/mount"))
	if err != nil || len(published) != 1 {
		t.Fatalf("published: %q, %v", published, err)
	}
	// The same file, as a program of the Windows node sees it.
	windows := `C:` + strings.ReplaceAll(strings.TrimPrefix(published[0], k.Root), "/", `\`)
	c.Wait("the file is written", podTime, func(ctx context.Context) error {
		data, err := s.ReadFile(ctx, windows+`\letter.txt`)
		if err == nil && string(data) != "first line\n" {
			err = fmt.Errorf("it is %q", data)
		}
		return err
	})
	deletePod(t, c, "writer")
	if _, err := os.Lstat(published[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the published path: %v", err)
	}
	createPod(t, c, podWith("reader", node1, "claim", "show", "/data/letter.txt"))
	c.Wait("the file is there", podTime, func(ctx context.Context) error {
		_ = h.attach(ctx) // again, if it was detached meanwhile
		text, err := lastMessage(ctx, c, "reader")
		if err == nil && text != "first line\n" {
			err = fmt.Errorf("it is %q", text)
		}
		return err
	})
}
