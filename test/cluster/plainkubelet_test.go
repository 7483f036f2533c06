package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// plainOnNode is a plain driver at a real kubelet.
type plainOnNode struct {
	name, capabilities string
	driver             *cluster.Driver
}

// Two drivers that share no code with the kit, at one real kubelet: registered by the
// sidecar, a claim becomes a file in a pod, another pod sees it, the volume grows while
// it is in use, and all goes. One of them stages volumes and expands them on the node,
// the other does neither, and is not asked to.
func TestPlainDriversOfANode(t *testing.T) {
	cluster.NeedsKubelet(t)
	c := cluster.Start(t, cluster.Options{})
	k := c.Kubelet(node1)
	drivers := []*plainOnNode{
		{name: "staged.example.com", capabilities: "controller,attach,expand,stage,node-expand"},
		{name: "simple.example.com", capabilities: "controller,expand"},
	}
	for _, d := range drivers {
		d.driver = k.PlainDriver(d.name, d.capabilities)
		c.ControllerSidecar(d.driver)
		d.createObjects(t, c)
		createPod(t, c, podWith("writer-"+d.name, node1, d.name, "append", "/data/letter.txt", "line"))
	}
	for _, d := range drivers {
		c.Wait("the writer of "+d.name+" runs", podTime, func(ctx context.Context) error { return podRuns(ctx, c, "writer-"+d.name) })
		d.grow(t, c)
		deletePod(t, c, "writer-"+d.name)
		createPod(t, c, podWith("reader-"+d.name, node1, d.name, "show", "/data/letter.txt"))
	}
	for _, d := range drivers {
		c.Wait("the file of "+d.name+" is there", podTime, func(ctx context.Context) error {
			text, err := lastMessage(ctx, c, "reader-"+d.name)
			if err == nil && text != "line\n" {
				err = fmt.Errorf("it is %q", text)
			}
			return err
		})
		deletePod(t, c, "reader-"+d.name)
		deleteClaim(t, c, d.name)
	}
	c.Wait("everything goes", podTime, func(ctx context.Context) error { return noVolumes(ctx, c) })
	wasAsked(t, drivers[0], "NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeExpandVolume", "ControllerPublishVolume", "ControllerUnpublishVolume")
	wasAsked(t, drivers[1], "NodePublishVolume", "NodeUnpublishVolume")
}

// createObjects makes the driver's object, its class and a claim.
func (d *plainOnNode) createObjects(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	attach, expand, mode := d.name == "staged.example.com", true, storagev1.VolumeBindingWaitForFirstConsumer
	_, err := c.Client.StorageV1().CSIDrivers().Create(t.Context(), &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: d.name}, Spec: storagev1.CSIDriverSpec{AttachRequired: &attach},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = c.Client.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: d.name}, Provisioner: d.name, AllowVolumeExpansion: &expand, VolumeBindingMode: &mode,
		}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = c.Client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: d.name},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &d.name,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
			},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// grow has the claim grow, and waits until it has, on the node too.
func (d *plainOnNode) grow(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	claims := c.Client.CoreV1().PersistentVolumeClaims("default")
	patch := []byte(`{"spec": {"resources": {"requests": {"storage": "2Mi"}}}}`)
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		_, err := claims.Patch(t.Context(), d.name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c.Wait("claim "+d.name+" has grown", 2*podTime, func(ctx context.Context) error {
		claim, err := claims.Get(ctx, d.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if have := claim.Status.Capacity[corev1.ResourceStorage]; have.Value() != 2<<20 {
			return fmt.Errorf("it has %v: %+v", have.String(), claim.Status.Conditions)
		}
		return nil
	})
}

func noVolumes(ctx context.Context, c *cluster.Cluster) error {
	volumes, err := c.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err == nil && len(volumes.Items) > 0 {
		err = fmt.Errorf("volumes %v", names(volumes.Items))
	}
	return err
}

// wasAsked fails the test unless a driver was asked these things for its volume, and no
// others of their kind; and if a volume is left.
func wasAsked(t *testing.T, d *plainOnNode, methods ...string) {
	t.Helper()
	folder := filepath.Dir(d.driver.SocketPath)
	data, err := os.ReadFile(filepath.Join(folder, "calls.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is still being written
		}
		var call struct{ Method string }
		if err := json.Unmarshal([]byte(line), &call); err != nil {
			t.Fatal(err)
		}
		asked[call.Method] = true
	}
	for _, method := range []string{
		"NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeExpandVolume", "ControllerPublishVolume", "ControllerUnpublishVolume",
	} {
		wanted := false
		for _, one := range methods {
			wanted = wanted || one == method
		}
		if asked[method] != wanted {
			t.Errorf("%s was asked %s: %v", d.name, method, asked[method])
		}
	}
	left, err := os.ReadDir(filepath.Join(folder, "volumes"))
	if err != nil || len(left) > 0 {
		t.Errorf("volumes of %s: %v, %v", d.name, left, err)
	}
}
