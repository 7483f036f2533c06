package driverobject

import (
	"fmt"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// Reasons of findings, see the package's documentation.
const (
	reasonMissing               = "CSIDriverMissing"
	reasonAttachNoCapability    = "AttachWithoutCapability"
	reasonCapabilityNoAttach    = "CapabilityWithoutAttach"
	reasonCapacityNoCapability  = "CapacityWithoutCapability"
	reasonCapacityIgnored       = "CapacityIgnored"
	reasonDiffers               = "CSIDriverDiffers"
	reasonNodeIDEmpty           = "NodeIDEmpty"
	reasonNodeIDNotUnique       = "NodeIDNotUnique"
	reasonTopologyKeysMissing   = "TopologyKeysMissing"
	reasonTopologyKeysUnused    = "TopologyKeysUnused"
	reasonTopologyKeysDiffer    = "TopologyKeysDiffer"
	reasonTopologyLabelMissing  = "TopologyLabelMissing"
	reasonAllocatableCountSmall = "AllocatableCount"
)

// finding is something that is wrong. It is another one when its text is.
type finding struct{ reason, text string }

// checkObject looks at the CSIDriver object, nil for none.
func checkObject(object *storagev1.CSIDriver, info csiclient.Info, config Config) []finding {
	if object == nil {
		return []finding{{reasonMissing, fmt.Sprintf(
			"There is no CSIDriver object %s: volumes wait to be attached, and pod info, fsGroup and capacity are not handled as the driver may need it", info.Name)}}
	}
	var found []finding
	add := func(wrong bool, reason, text string) {
		if wrong {
			found = append(found, finding{reason, text})
		}
	}
	// Not set is what the API server takes for set.
	requiresAttach := object.Spec.AttachRequired == nil || *object.Spec.AttachRequired
	usesCapacity := object.Spec.StorageCapacity != nil && *object.Spec.StorageCapacity
	hasCapacity := info.Controller[csi.ControllerServiceCapability_RPC_GET_CAPACITY]
	if hasController(info) && config.AttachRequired == nil {
		add(requiresAttach && !canAttach(info), reasonAttachNoCapability,
			"attachRequired is true, but the driver has no capability PUBLISH_UNPUBLISH_VOLUME: every volume waits for an attachment that does nothing; make the object anew with attachRequired false")
		add(!requiresAttach && canAttach(info), reasonCapabilityNoAttach,
			"attachRequired is false, but the driver has the capability PUBLISH_UNPUBLISH_VOLUME: nodes get volumes that were never attached; make the object anew with attachRequired true")
	}
	add(hasController(info) && usesCapacity && !hasCapacity, reasonCapacityNoCapability,
		"storageCapacity is true, but the driver has no capability GET_CAPACITY: pods with volumes yet to be made will not be scheduled")
	add(config.PublishesCapacity && !usesCapacity, reasonCapacityIgnored,
		"Capacity is published, but storageCapacity is not true: the scheduler does not look at it")
	for _, one := range differences(&object.Spec, config) {
		text := one.text()
		if one.immutable {
			text += "; Kubernetes does not let it change: delete the object and make it anew"
		}
		found = append(found, finding{reasonDiffers, text})
	}
	return found
}

// registration is what a node says of the driver.
type registration struct {
	node   string
	driver *storagev1.CSINodeDriver
	// labels are those of the node; nil where they are not looked at.
	labels map[string]string
}

// checkNodes looks at registrations in the order of node names.
func checkNodes(nodes []registration, hasTopology bool) []finding {
	var found []finding
	add := func(reason, format string, args ...any) {
		found = append(found, finding{reason, fmt.Sprintf(format, args...)})
	}
	firstWithID := map[string]string{}
	for _, one := range nodes {
		id := one.driver.NodeID
		switch first, known := firstWithID[id]; {
		case id == "":
			add(reasonNodeIDEmpty, "Node %s: the driver registered an empty nodeID: no volume can be attached", one.node)
		case known:
			add(reasonNodeIDNotUnique, "Nodes %s and %s: the driver registered the nodeID %q on both: volumes may be attached to the wrong one", first, one.node, id)
		default:
			firstWithID[id] = one.node
		}
		if limit := one.driver.Allocatable; limit != nil && limit.Count != nil && *limit.Count < 1 {
			add(reasonAllocatableCountSmall, "Node %s: allocatable.count is %d: no volume fits on the node", one.node, *limit.Count)
		}
		switch keys := one.driver.TopologyKeys; {
		case hasTopology && len(keys) == 0:
			add(reasonTopologyKeysMissing, "Node %s: the driver registered no topology keys: no volume is made for the node", one.node)
		case !hasTopology && len(keys) > 0:
			add(reasonTopologyKeysUnused, "Node %s: the driver registered topology keys, but has no plugin capability VOLUME_ACCESSIBILITY_CONSTRAINTS: the keys have no effect", one.node)
		}
		if hasTopology && one.labels != nil {
			for _, key := range one.driver.TopologyKeys {
				if _, ok := one.labels[key]; !ok {
					add(reasonTopologyLabelMissing, "Node %s: no label %s, a topology key of the driver: the node is in no segment", one.node, key)
				}
			}
		}
	}
	if hasTopology {
		found = append(found, checkKeys(nodes)...)
	}
	return found
}

// checkKeys compares the keys of nodes that have any.
func checkKeys(nodes []registration) []finding {
	firstWithKeys := map[string]string{}
	var sets []string
	for _, one := range nodes {
		keys := strings.Join(slices.Sorted(slices.Values(one.driver.TopologyKeys)), ", ")
		if _, known := firstWithKeys[keys]; !known && keys != "" {
			firstWithKeys[keys] = one.node
			sets = append(sets, keys)
		}
	}
	if len(sets) < 2 {
		return nil
	}
	var texts []string
	for i, keys := range slices.Sorted(slices.Values(sets)) {
		if i == perReasonMax {
			texts = append(texts, fmt.Sprintf("and %d more", len(sets)-i))
			break
		}
		texts = append(texts, fmt.Sprintf("[%s] on %s", keys, firstWithKeys[keys]))
	}
	return []finding{{reasonTopologyKeysDiffer, "The driver registered different topology keys: " + strings.Join(texts, ", ")}}
}

// registrations joins CSINodes with their nodes. A CSINode whose node is gone
// waits for the garbage collector and is left out.
func registrations(csiNodes []*storagev1.CSINode, driver string, node func(name string) (*v1.Node, bool)) []registration {
	var all []registration
	for _, csiNode := range csiNodes {
		for i := range csiNode.Spec.Drivers {
			one := registration{node: csiNode.Name, driver: &csiNode.Spec.Drivers[i]}
			if one.driver.Name != driver {
				continue
			}
			if node != nil {
				found, ok := node(csiNode.Name)
				if !ok {
					continue
				}
				if one.labels = found.Labels; one.labels == nil {
					one.labels = map[string]string{}
				}
			}
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b registration) int { return strings.Compare(a.node, b.node) })
	return all
}
