package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// podTime is how long a pod may take to run, or to go: longer than a few retries with
// delays that double.
const podTime = 3 * time.Minute

// A control plane serves built-in kinds and those of snapshots, a Windows node is
// ready there, and pods are scheduled to it, run and end.
func TestControlPlane(t *testing.T) {
	began := time.Now()
	c := cluster.Start(t, cluster.Options{SnapshotController: true})
	t.Logf("started in %v", time.Since(began))
	version, err := c.Client.Discovery().ServerVersion()
	if err != nil || version.GitVersion != "v1.37.2" {
		t.Errorf("version %v, %v", version, err)
	}
	snapshots := snapshotv1.NewForConfigOrDie(c.Config)
	if _, err := snapshots.SnapshotV1().VolumeSnapshots("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("snapshots: %v", err)
	}
	if _, err := snapshots.GroupsnapshotV1().VolumeGroupSnapshotContents().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("group snapshots: %v", err)
	}
	c.FakeWindowsNode("win1", cluster.NodeOptions{})
	pod, err := c.Client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{
			OS: &corev1.PodOS{Name: corev1.Windows}, NodeSelector: map[string]string{"kubernetes.io/os": "windows"},
			Containers: []corev1.Container{{Name: "c", Image: "none"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Wait("the pod runs", podTime, func(ctx context.Context) error { return podRuns(ctx, c, pod.Name) })
	if err := c.Client.CoreV1().Pods("default").Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Wait("the pod goes", podTime, func(ctx context.Context) error { return podIsGone(ctx, c, pod.Name) })
}

// podRuns fails while a pod is not ready.
func podRuns(ctx context.Context, c *cluster.Cluster, name string) error {
	pod, err := c.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("%s on node %q: %v", pod.Status.Phase, pod.Spec.NodeName, pod.Status.Conditions)
}

// podIsGone fails while a pod is there.
func podIsGone(ctx context.Context, c *cluster.Cluster, name string) error {
	_, err := c.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(errors.New("it is there"), err)
}

// Who asks what is counted by user, a paused API server answers nobody and goes on
// where it was, and accounts have the rights of a sidecar and no more.
func TestAccountsRequestsAndPause(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	config, err := clientcmd.BuildConfigFromFlags("", c.AccountKubeconfig(cluster.Namespace, cluster.SidecarAccount))
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	if _, err := client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("secrets: %v", err)
	}
	requests := c.Requests(cluster.AccountUser(cluster.Namespace, cluster.SidecarAccount))
	if len(requests) != 2 || requests[0].Verb != "list" || requests[0].Resource != "persistentvolumes" || requests[0].Code != 200 || requests[1].Code != 403 {
		t.Errorf("requests: %+v", requests)
	}
	c.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{}); err == nil {
		t.Error("a paused API server answers")
	}
	c.Resume()
	if _, err := client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
