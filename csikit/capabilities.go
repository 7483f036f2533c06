package csikit

import "github.com/container-storage-interface/spec/lib/go/csi"

// Short names of what the tables hold.
type (
	pluginService  = csi.PluginCapability_Service_Type
	controllerCall = csi.ControllerServiceCapability_RPC_Type
	nodeCall       = csi.NodeServiceCapability_RPC_Type
)

// row says which values have a capability.
type row[C any] struct {
	capability C
	has        func(value any) bool
}

// is reports whether a value implements an interface.
func is[I any](value any) bool {
	_, ok := value.(I)
	return ok
}

// both is the conjunction of two conditions.
func both(a, b func(any) bool) func(any) bool {
	return func(value any) bool { return a(value) && b(value) }
}

func exists(value any) bool { return value != nil }

// snapshots reports whether a backend does all that CSI wants of one with snapshots:
// volumes are made from them as well.
func snapshots(value any) bool { return is[Snapshotter](value) && is[SnapshotRestorer](value) }

// controllerTable is what a Backend has to implement for a capability of the
// Controller service.
func controllerTable() []row[controllerCall] {
	return []row[controllerCall]{
		{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, exists},
		{csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME, is[Attacher]},
		{csi.ControllerServiceCapability_RPC_PUBLISH_READONLY, is[Attacher]},
		{csi.ControllerServiceCapability_RPC_LIST_VOLUMES, is[VolumeLister]},
		{csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES, both(is[VolumeLister], is[Attacher])},
		{csi.ControllerServiceCapability_RPC_GET_CAPACITY, is[CapacityReporter]},
		{csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, snapshots},
		{csi.ControllerServiceCapability_RPC_GET_SNAPSHOT, snapshots},
		{csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS, is[SnapshotLister]},
		{csi.ControllerServiceCapability_RPC_CLONE_VOLUME, is[Cloner]},
		{csi.ControllerServiceCapability_RPC_EXPAND_VOLUME, is[Expander]},
		{csi.ControllerServiceCapability_RPC_GET_VOLUME, exists},
		{csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER, takesSingleWriter},
		{csi.ControllerServiceCapability_RPC_MODIFY_VOLUME, is[Modifier]},
		{csi.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH, is[HealthReporter]},
		{csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH, is[HealthReporter]},
	}
}

// nodeTable is what a NodeBackend has to implement for a capability of the Node
// service. Most of them the node tasks give.
func nodeTable() []row[nodeCall] {
	return []row[nodeCall]{
		{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, exists},
		{csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, exists},
		{csi.NodeServiceCapability_RPC_EXPAND_VOLUME, exists},
		{csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER, takesSingleWriter},
		{csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH, exists},
		{csi.NodeServiceCapability_RPC_GET_STORAGE_HEALTH, is[NodeStorageHealth]},
	}
}

// pluginTable is what a Backend has to implement for a service.
func pluginTable() []row[pluginService] {
	return []row[pluginService]{
		{csi.PluginCapability_Service_CONTROLLER_SERVICE, exists},
		{csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE, is[GroupSnapshotter]},
		{csi.PluginCapability_Service_SNAPSHOT_METADATA_SERVICE, is[SnapshotDiffer]},
		{csi.PluginCapability_Service_SNAPSHOT_ACCESSIBILITY_CONSTRAINTS, both(snapshots, is[SnapshotPlacer])},
	}
}

// takesSingleWriter reports whether the modes that tell one writer from several are
// among those that are accepted.
func takesSingleWriter(value any) bool {
	if value == nil {
		return false
	}
	checker, ok := value.(CapabilityChecker)
	return !ok || checker.CheckCapability(Capability{AccessMode: SingleNodeSingleWriter}) == nil
}

// having are the capabilities of a table that a value has.
func having[C any](table []row[C], value any) []C {
	var capabilities []C
	for _, r := range table {
		if r.has(value) {
			capabilities = append(capabilities, r.capability)
		}
	}
	return capabilities
}

func (d *Driver) hasTopology() bool {
	return is[NodeTopology](d.backend) || is[NodeTopology](d.nodeBackend)
}

// pluginCapabilities are those of the Identity service.
func (d *Driver) pluginCapabilities() []*csi.PluginCapability {
	services := having(pluginTable(), any(d.backend))
	if d.hasTopology() {
		services = append(services, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	}
	var capabilities []*csi.PluginCapability
	for _, service := range services {
		capabilities = append(capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: service}}})
	}
	// A node grows file systems while they are in use, so every expansion is online.
	if is[Expander](d.backend) || d.nodeBackend != nil {
		capabilities = append(capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_VolumeExpansion_{
			VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE}}})
	}
	return capabilities
}

func (d *Driver) controllerCapabilities() []*csi.ControllerServiceCapability {
	var capabilities []*csi.ControllerServiceCapability
	for _, call := range having(controllerTable(), any(d.backend)) {
		capabilities = append(capabilities, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{
			Rpc: &csi.ControllerServiceCapability_RPC{Type: call}}})
	}
	return capabilities
}

func (d *Driver) nodeCapabilities() []*csi.NodeServiceCapability {
	var capabilities []*csi.NodeServiceCapability
	for _, call := range having(nodeTable(), any(d.nodeBackend)) {
		capabilities = append(capabilities, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
			Rpc: &csi.NodeServiceCapability_RPC{Type: call}}})
	}
	return capabilities
}
