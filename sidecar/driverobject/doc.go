// Package driverobject makes or checks the CSIDriver object of a driver, which
// tells Kubernetes how to treat it, and checks what nodes registered of the
// driver in their CSINode objects.
//
// It never fights a human. An object that is there is changed only when
// Config.Update asks for it, and then at most once in the life of the process;
// one that somebody deleted is not made again. What is wrong is reported: as
// a warning event on the CSIDriver, a line in the log and a metric, once, and
// again only after it was right in between or says something else.
//
// # Findings
//
//	reason                      what is wrong
//	CSIDriverMissing            there is no CSIDriver object: Kubernetes assumes that volumes are attached
//	AttachWithoutCapability     attachRequired, but the driver cannot attach (no PUBLISH_UNPUBLISH_VOLUME)
//	CapabilityWithoutAttach     the driver attaches volumes, but Kubernetes will not ask it to
//	CapacityWithoutCapability   storageCapacity, but the driver has no GET_CAPACITY: no pod is scheduled
//	CapacityIgnored             capacity is published, but storageCapacity is not set
//	CSIDriverDiffers            a field is not what Config says
//	NodeIDEmpty                 a node's nodeID is empty
//	NodeIDNotUnique             two nodes have one nodeID: volumes are attached to the wrong one
//	TopologyKeysMissing         the driver has topology, but registered no keys on a node
//	TopologyKeysUnused          the driver has no topology, but registered keys on a node
//	TopologyKeysDiffer          nodes have different topology keys: volumes are placed by the keys of each node
//	TopologyLabelMissing        a node lacks the label for a topology key
//	AllocatableCount            a node can take no volume at all: allocatable.count is below 1
//
// A node's part is compared after it has stayed the same for half a minute: the
// kubelet writes labels and keys one after the other.
//
// # Permissions
//
// Upstream's roles do not know CSIDriver objects. The component needs csidrivers
// (storage.k8s.io): list, watch; with Config.Create also create, with
// Config.Update also patch; and csinodes: list, watch; for drivers with
// topology nodes: list, watch.
package driverobject
