package cluster_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// Claims of pods on Windows nodes in two zones: each volume is made where its pod is
// scheduled and attached there, and goes with its claim.
func TestClaimsOfWindowsNodes(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	storages := []*cluster.Storage{c.Storage("win1"), c.Storage("win2")}
	controller := c.ControllerDriver(nil, zoned(storages)...)
	for i, s := range storages {
		driver := s.NodeDriver("-cloud-zone="+zone(i), "-cloud-max-volumes=4")
		c.FakeWindowsNode(s.Node, c.Registered(driver.Address))
	}
	sidecar := c.ControllerSidecar(controller)
	c.Apply([]byte(driverObjects))
	for i, s := range storages {
		createClaim(t, c, s.Node, "64Mi")
		pod := podWith(s.Node, s.Node, s.Node)
		pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
		pod.Spec.HostNetwork = false
		createPod(t, c, pod)
		c.Wait("the pod runs", podTime, func(ctx context.Context) error { return podRuns(ctx, c, s.Node) })
		disks, err := s.Disks(t.Context())
		if err != nil || len(disks) != 2 {
			t.Errorf("disks of %s: %+v, %v", s.Node, disks, err)
		}
		claim, err := c.Client.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), s.Node, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		volume, err := c.Client.CoreV1().PersistentVolumes().Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if terms := volume.Spec.NodeAffinity.Required.NodeSelectorTerms; len(terms) != 1 || terms[0].MatchExpressions[0].Values[0] != zone(i) {
			t.Errorf("the volume of %s is in %+v", s.Node, terms)
		}
	}
	if usage, err := sidecar.Usage(); err != nil || usage.ResidentBytes < 1<<20 || usage.CPU <= 0 {
		t.Errorf("usage of the sidecar: %+v, %v", usage, err)
	}
	for _, s := range storages {
		deletePod(t, c, s.Node)
		deleteClaim(t, c, s.Node)
	}
	c.Wait("everything goes", podTime, func(ctx context.Context) error { return nothingLeft(ctx, c) })
}

func zone(i int) string { return fmt.Sprintf("zone-%d", i+1) }

// zoned are the flags of a cloud with a zone for each node.
func zoned(storages []*cluster.Storage) (flags []string) {
	for i, s := range storages {
		flags = append(flags, fmt.Sprintf("-cloud-node=%s=%s,zone=%s,max=4", s.Node, s.ControlAddress, zone(i)))
	}
	return flags
}
