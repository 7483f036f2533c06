// Package topology knows where in a cluster a driver's storage can be reached
// from: the keys that the driver registered on each node (CSINode objects),
// with the values of the nodes' labels. It reads caches only.
package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/csi-windows/csi-windows/sidecar"
)

// Why a node is in no segment.
var (
	// ErrNoDriver is a node that is not there, or that the driver is not
	// registered on.
	ErrNoDriver = errors.New("the driver is not on the node")
	// ErrNoKeys is a node on which the driver registered no topology key.
	ErrNoKeys = errors.New("the driver registered no topology keys on the node")
	// ErrNoLabel is a node without a label for one of the driver's keys.
	ErrNoLabel = errors.New("the node has no label for a topology key of the driver")
)

// Nodes are the nodes of a cluster as the driver sees them.
type Nodes struct {
	driver   string
	nodes    corelisters.NodeLister
	csiNodes storagelisters.CSINodeLister
	// informers of nodes and CSINodes; none when there is only one node.
	informers []cache.SharedIndexInformer
	// own is the only node, where the driver serves no other.
	own *ownNode
}

type ownNode struct {
	name    string
	segment Segment
}

// Has reports whether the driver tells where its volumes can be reached from.
func Has(env *sidecar.Env) bool {
	return env.Driver.Info().Plugin[csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS]
}

// Watch reads nodes and CSINodes from the shared caches. They are watched only
// once someone has called it.
func Watch(env *sidecar.Env) *Nodes {
	nodes := env.Informers.Kube().Core().V1().Nodes()
	csiNodes := env.Informers.Kube().Storage().V1().CSINodes()
	return &Nodes{
		driver: env.Driver.Name(), nodes: nodes.Lister(), csiNodes: csiNodes.Lister(),
		informers: []cache.SharedIndexInformer{nodes.Informer(), csiNodes.Informer()},
	}
}

// Own are the nodes of a driver that serves only the one it runs on. Nothing is
// watched: a cluster of n nodes would otherwise be watched n times.
func Own(node string, segment Segment) *Nodes { return &Nodes{own: &ownNode{node, segment}} }

// AskDriver gives the segment of the node that the driver runs on.
func AskDriver(ctx context.Context, env *sidecar.Env, timeout time.Duration) (Segment, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := csi.NewNodeClient(env.Driver.Conn()).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil {
		return nil, fmt.Errorf("topology of this node: NodeGetInfo: %w", err)
	}
	return NewSegment(answer.GetAccessibleTopology().GetSegments()), nil
}

// Synced tell whether the caches are full.
func (n *Nodes) Synced() []cache.InformerSynced {
	var synced []cache.InformerSynced
	for _, informer := range n.informers {
		synced = append(synced, informer.HasSynced)
	}
	return synced
}

// Of gives the segment of a node. Its error says why there is none.
func (n *Nodes) Of(name string) (Segment, error) {
	if n.own != nil {
		if n.own.name != name {
			return nil, fmt.Errorf("node %s: %w", name, ErrNoDriver)
		}
		if len(n.own.segment) == 0 {
			return nil, fmt.Errorf("node %s: %w", name, ErrNoKeys)
		}
		return n.own.segment, nil
	}
	node, err := n.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("node %s: not found: %w", name, ErrNoDriver)
	} else if err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	csiNode, err := n.csiNodes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("node %s: no CSINode: %w", name, ErrNoDriver)
	} else if err != nil {
		return nil, fmt.Errorf("CSINode %s: %w", name, err)
	}
	driver := DriverOf(csiNode, n.driver)
	if driver == nil {
		return nil, fmt.Errorf("node %s: %w", name, ErrNoDriver)
	}
	return segmentOf(node, driver)
}

// DriverOf is what a driver registered on a node; nil for nothing.
func DriverOf(csiNode *storagev1.CSINode, driver string) *storagev1.CSINodeDriver {
	for i := range csiNode.Spec.Drivers {
		if csiNode.Spec.Drivers[i].Name == driver {
			return &csiNode.Spec.Drivers[i]
		}
	}
	return nil
}

func segmentOf(node *v1.Node, driver *storagev1.CSINodeDriver) (Segment, error) {
	if len(driver.TopologyKeys) == 0 {
		return nil, fmt.Errorf("node %s: %w", node.Name, ErrNoKeys)
	}
	values := make(map[string]string, len(driver.TopologyKeys))
	for _, key := range driver.TopologyKeys {
		value, ok := node.Labels[key]
		if !ok {
			return nil, fmt.Errorf("node %s: %w: %s", node.Name, ErrNoLabel, key)
		}
		values[key] = value
	}
	return NewSegment(values), nil
}

// Census is what the nodes of a cluster say together.
type Census struct {
	// Segments are all segments with a node in them, sorted, each once. They
	// need not have the same keys: a driver may tell nodes apart more finely in
	// one part of a cluster than in another.
	Segments []Segment
	// WithDriver is how many nodes have the driver, WithKeys on how many of
	// these it registered topology keys.
	WithDriver, WithKeys int
}

// Count looks at all nodes. One that is in no segment, see Of, is left out.
func (n *Nodes) Count() (Census, error) {
	if n.own != nil {
		if len(n.own.segment) == 0 {
			return Census{WithDriver: 1}, nil
		}
		return Census{Segments: []Segment{n.own.segment}, WithDriver: 1, WithKeys: 1}, nil
	}
	csiNodes, err := n.csiNodes.List(labels.Everything())
	if err != nil {
		return Census{}, fmt.Errorf("list CSINodes: %w", err)
	}
	var census Census
	for _, csiNode := range csiNodes {
		driver := DriverOf(csiNode, n.driver)
		if driver == nil {
			continue
		}
		node, err := n.nodes.Get(csiNode.Name)
		if err != nil {
			continue // the CSINode of a node that is gone, or not there yet
		}
		census.WithDriver++
		if len(driver.TopologyKeys) == 0 {
			continue
		}
		census.WithKeys++
		if segment, err := segmentOf(node, driver); err == nil {
			census.Segments = append(census.Segments, segment)
		}
	}
	census.Segments = Unique(census.Segments)
	return census, nil
}
