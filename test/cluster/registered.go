package cluster

import (
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
)

// Registered are the options of a node where the driver at an address is registered,
// as a kubelet would register it.
func (c *Cluster) Registered(address string) NodeOptions {
	c.t.Helper()
	ctx, cancel := c.context()
	defer cancel()
	conn := c.Dial(address)
	plugin, err := csi.NewIdentityClient(conn).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	info, err := csi.NewNodeClient(conn).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	segments := info.GetAccessibleTopology().GetSegments()
	driver := storagev1.CSINodeDriver{
		Name: plugin.GetName(), NodeID: info.GetNodeId(), TopologyKeys: slices.Sorted(maps.Keys(segments)),
	}
	if limit := int32(info.GetMaxVolumesPerNode()); limit > 0 {
		driver.Allocatable = &storagev1.VolumeNodeResources{Count: &limit}
	}
	return NodeOptions{Labels: segments, Drivers: []storagev1.CSINodeDriver{driver}}
}
