package life

import (
	"fmt"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// bed is a cluster with nodes of both zones.
type bed struct {
	*cluster.Cluster
	storages []*cluster.Storage
}

// simcloud starts the driver of the simulated cloud.
func (b *bed) simcloud(t *testing.T) *target {
	t.Helper()
	var flags []string
	for i, s := range b.storages {
		flags = append(flags, fmt.Sprintf("-cloud-node=%s=%s,zone=%s", s.Node, s.ControlAddress, zones[i]))
	}
	g := b.target(t, cluster.DriverName, b.ControllerDriver(nil, flags...), true)
	g.zoneKey, g.onNode = simcloudZone, true
	g.slow, g.fast, g.bad = map[string]string{"tier": "standard"}, map[string]string{"tier": "premium"}, map[string]string{"tier": "golden"}
	return g
}

// plain starts the driver that shares no code with the kit.
func (b *bed) plain(t *testing.T, flags ...string) *target {
	t.Helper()
	g := b.target(t, cluster.PlainDriverName, b.PlainDriver(flags...), true)
	g.zoneKey, g.onNode = plainZone, true
	g.slow, g.fast, g.bad = map[string]string{"speed": "slow"}, map[string]string{"speed": "fast"}, map[string]string{"bad": "yes"}
	return g
}

// target has a driver watched, and known to the cluster.
func (b *bed) target(t *testing.T, name string, driver *cluster.Driver, capacity bool) *target {
	t.Helper()
	yes := true
	if _, err := b.Client.StorageV1().CSIDrivers().Create(t.Context(), &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{AttachRequired: &yes, StorageCapacity: &capacity},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return &target{name: name, driver: newBetween(t, b.Cluster, driver), controller: csi.NewControllerClient(b.Dial(driver.Address))}
}

// nodes makes the Windows nodes, with both drivers registered.
func (b *bed) nodes(t *testing.T) {
	t.Helper()
	for i, s := range b.storages {
		options := b.Registered(s.NodeDriver("-cloud-zone=" + zones[i]).Address)
		options.Labels[plainZone] = zones[i]
		options.Drivers = append(options.Drivers, storagev1.CSINodeDriver{Name: cluster.PlainDriverName, NodeID: s.Node, TopologyKeys: []string{plainZone}})
		for _, name := range []string{bareDriver, attachDriver, noneDriver} {
			options.Drivers = append(options.Drivers, storagev1.CSINodeDriver{Name: name, NodeID: s.Node})
		}
		b.FakeWindowsNode(s.Node, options)
	}
	b.FakeWindowsNode(strangeNode, cluster.NodeOptions{})
}
