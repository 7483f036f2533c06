package capacity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/sidecar/topology"
)

// Name is the component's name.
const Name = "capacity"

// Labels of the objects, the same as upstream's.
const (
	driverLabel    = "csi.storage.k8s.io/drivername"
	managedByLabel = "csi.storage.k8s.io/managed-by"
	// manager is the managed-by label of a process for the whole cluster.
	manager = "external-provisioner"
	// labelMax is the length of a label's value.
	labelMax = 63
)

// managedBy is the managed-by label of a process that serves one node, or all
// when node is empty. A long name is shortened as upstream shortens it, or the
// objects of an upgraded driver would not be found again: the node's name
// stays while it leaves room for a letter before it and a hash.
func managedBy(node string) string {
	if node == "" {
		return manager
	}
	full := manager + "-" + node
	if len(full) <= labelMax {
		return full
	}
	const hashed = len("-01234567-")
	if room := labelMax - hashed - len(node); room > 0 {
		return manager[:room] + "-" + shortHash(manager) + "-" + node
	}
	return manager + "-" + shortHash(full)
}

// shortHash is upstream's hash of 8 digits.
func shortHash(text string) string {
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, text) // a hash takes everything
	return fmt.Sprintf("%08x", hash.Sum32())
}

// item is what one object is about.
type item struct {
	class   string
	segment topology.Segment
}

// key is the item in queues and logs. A class' name has no space.
func (i item) key() string { return i.class + " " + i.segment.String() }

// objectName is the name of the item's object.
func objectName(driver, manager string, i item) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{driver, manager, i.key()}, "\n")))
	return "csisc-" + hex.EncodeToString(sum[:10])
}

// keyOf is the key of the item that an object is about. One of a shape that no
// item has gets a key of its own, which is never wanted.
func keyOf(object *storagev1.CSIStorageCapacity) string {
	place := object.NodeTopology
	if place == nil || len(place.MatchExpressions) > 0 {
		return "?" + object.Name
	}
	return item{object.StorageClassName, topology.NewSegment(place.MatchLabels)}.key()
}

// selector is the segment as the scheduler reads it; empty for all nodes.
func selector(segment topology.Segment) *metav1.LabelSelector {
	if len(segment) == 0 {
		return &metav1.LabelSelector{}
	}
	return &metav1.LabelSelector{MatchLabels: segment.Map()}
}
