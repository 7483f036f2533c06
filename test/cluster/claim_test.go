package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// className is the storage class of most tests.
const className = "simcloud"

// objects of a driver: who has to be attached, and the class that waits for a pod.
const driverObjects = `
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: simcloud.csi-windows.io}
spec: {attachRequired: true, podInfoOnMount: false, fsGroupPolicy: None}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: simcloud}
provisioner: simcloud.csi-windows.io
volumeBindingMode: WaitForFirstConsumer
allowVolumeExpansion: true
`

// createClaim makes a claim of the usual class.
func createClaim(t *testing.T, c *cluster.Cluster, name, size string) {
	t.Helper()
	class := className
	if _, err := c.Client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The life of a claim with nothing but real components: registered by the sidecar,
// provisioned late, attached, staged and published; the file is there after the pod
// was recreated, and again after it was moved to another node; and with the claim
// everything goes.
func TestLifeOfAClaim(t *testing.T) {
	cluster.NeedsKubelet(t)
	c := cluster.Start(t, cluster.Options{})
	kubelets := []*cluster.Kubelet{c.Kubelet(node1), c.Kubelet(node2)}
	var storages []*cluster.Storage
	for _, k := range kubelets {
		storages = append(storages, k.Storage())
	}
	c.ControllerSidecar(c.ControllerDriver(storages))
	c.Apply([]byte(driverObjects))
	for i, k := range kubelets {
		k.NodeSidecar(storages[i].NodeDriver())
		c.Wait("the driver is registered", podTime, func(ctx context.Context) error { return k.Registered(ctx, cluster.DriverName) })
	}

	createClaim(t, c, "claim", "64Mi")
	for i, node := range []string{node1, node1, node2, node1} {
		writeAndRead(t, c, node, i+1)
	}
	deleteClaim(t, c, "claim")
	c.Wait("everything goes", podTime, func(ctx context.Context) error { return nothingLeft(ctx, c) })
	for _, s := range storages {
		disks, err := s.Disks(t.Context())
		if err != nil || len(disks) != 1 {
			t.Errorf("disks of %s: %+v, %v", s.Node, disks, err)
		}
	}
	for _, r := range c.Requests(cluster.AccountUser(cluster.Namespace, cluster.SidecarAccount)) {
		if r.Code == 403 {
			t.Errorf("forbidden: %+v", r)
		}
	}
}

// writeAndRead has a pod on a node add a line to a file of the claim, and another
// one see every line so far.
func writeAndRead(t *testing.T, c *cluster.Cluster, node string, lines int) {
	t.Helper()
	writer, reader := fmt.Sprintf("writer-%d", lines), fmt.Sprintf("reader-%d", lines)
	createPod(t, c, podWith(writer, node, "claim", "append", "/data/letter.txt", "line"))
	c.Wait("pod "+writer+" runs", podTime, func(ctx context.Context) error { return podRuns(ctx, c, writer) })
	deletePod(t, c, writer)
	createPod(t, c, podWith(reader, node, "claim", "show", "/data/letter.txt"))
	c.Wait("the file is there", podTime, func(ctx context.Context) error {
		text, err := lastMessage(ctx, c, reader)
		if err == nil && text != strings.Repeat("line\n", lines) {
			err = fmt.Errorf("it is %q, not %d lines", text, lines)
		}
		return err
	})
	deletePod(t, c, reader)
}

func deleteClaim(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	if err := c.Client.CoreV1().PersistentVolumeClaims("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Wait("claim "+name+" goes", podTime, func(ctx context.Context) error {
		_, err := c.Client.CoreV1().PersistentVolumeClaims("default").Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

// nothingLeft fails while there are volumes in the cluster or in the cloud, or
// attachments.
func nothingLeft(ctx context.Context, c *cluster.Cluster) error {
	volumes, err := c.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	attachments, err := c.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	disks, err := cloudDisks(c)
	if err != nil {
		return err
	}
	if len(volumes.Items)+len(attachments.Items)+len(disks) > 0 {
		return fmt.Errorf("volumes %v, attachments %v, disks %v", names(volumes.Items), attachmentNames(attachments.Items), disks)
	}
	return nil
}

func names(volumes []corev1.PersistentVolume) (all []string) {
	for i := range volumes {
		all = append(all, volumes[i].Name)
	}
	return all
}

func attachmentNames(attachments []storagev1.VolumeAttachment) (all []string) {
	for i := range attachments {
		all = append(all, attachments[i].Name)
	}
	return all
}

// cloudDisks are the disks that the cloud keeps.
func cloudDisks(c *cluster.Cluster) (disks []string, err error) {
	entries, err := os.ReadDir(filepath.Join(c.CloudDir(), "disks"))
	for _, entry := range entries {
		disks = append(disks, entry.Name())
	}
	return disks, err
}
