package simcloud

import "github.com/csi-windows/csi-windows/csikit"

// The capabilities of the driver follow from these.
var (
	_ csikit.Backend           = (*Backend)(nil)
	_ csikit.Attacher          = (*Backend)(nil)
	_ csikit.VolumeLister      = (*Backend)(nil)
	_ csikit.CapacityReporter  = (*Backend)(nil)
	_ csikit.Expander          = (*Backend)(nil)
	_ csikit.Modifier          = (*Backend)(nil)
	_ csikit.Snapshotter       = (*Backend)(nil)
	_ csikit.SnapshotLister    = (*Backend)(nil)
	_ csikit.SnapshotRestorer  = (*Backend)(nil)
	_ csikit.Cloner            = (*Backend)(nil)
	_ csikit.GroupSnapshotter  = (*Backend)(nil)
	_ csikit.HealthReporter    = (*Backend)(nil)
	_ csikit.SnapshotDiffer    = (*Backend)(nil)
	_ csikit.CapabilityChecker = (*Backend)(nil)
	_ csikit.ParameterChecker  = (*Backend)(nil)
	_ csikit.Prober            = (*Backend)(nil)
	_ csikit.NodeTopology      = (*Backend)(nil)

	_ csikit.NodeBackend       = (*Node)(nil)
	_ csikit.NodeTopology      = (*Node)(nil)
	_ csikit.NodeLimiter       = (*Node)(nil)
	_ csikit.NodeHealth        = (*Node)(nil)
	_ csikit.NodeStorageHealth = (*Node)(nil)
)
