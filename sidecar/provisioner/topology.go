package provisioner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/csi-windows/csi-windows/sidecar"
	topo "github.com/csi-windows/csi-windows/sidecar/topology"
)

// errNodeWithoutDriver is a selected node that volumes of the driver cannot
// be reached from, and never will as things are: the node is gone, the driver
// is not on it, or the class does not allow it. Another node is to be selected.
//
// Where an earlier CreateVolume for the claim may have done something, the
// request is to be repeated as it was instead, with the requirement it had.
var errNodeWithoutDriver = errors.New("the selected node cannot use the driver's volumes")

// topology says where a new volume has to be reached from. It reads caches only.
type topology struct {
	// nodes is nil when the driver knows no topology.
	nodes *topo.Nodes
}

// topologyInput is what the place of a volume depends on.
type topologyInput struct {
	PVC          *v1.PersistentVolumeClaim
	StorageClass *storagev1.StorageClass
	// SelectedNode is the node that the scheduler chose for the claim's first
	// pod; empty when the claim is bound before a pod uses it.
	SelectedNode string
	// StrictTopology asks for the selected node's own segment only.
	StrictTopology bool
	// ImmediateTopology asks for all segments of the cluster when no node is
	// selected and the class allows all.
	ImmediateTopology bool
}

// newTopology starts to watch nodes if the driver knows topology.
func newTopology(env *sidecar.Env) *topology {
	if !topo.Has(env) {
		return &topology{}
	}
	return &topology{nodes: topo.Watch(env)}
}

// newOwnTopology is the topology of a driver of node-local volumes: its one
// segment, as topo.AskDriver gives it, and no other node.
func newOwnTopology(env *sidecar.Env, node string, segment topo.Segment) *topology {
	if !topo.Has(env) {
		return &topology{}
	}
	return &topology{nodes: topo.Own(node, segment)}
}

// synced tell whether the caches are full.
func (t *topology) synced() []cache.InformerSynced {
	if t.nodes == nil {
		return nil
	}
	return t.nodes.Synced()
}

// requirement says where a volume has to be reached from: Requisite are the
// segments one of which it must be in, Preferred the same in the order in
// which the driver is to try them. It is nil where any place will do.
func (t *topology) requirement(_ context.Context, in topologyInput) (*csi.TopologyRequirement, error) {
	if t.nodes == nil {
		return nil, nil // no requirement is a requirement too
	}
	allowed, err := allowedSegments(in.StorageClass)
	if err != nil {
		return nil, err
	}
	if in.SelectedNode != "" {
		return t.forNode(in, allowed)
	}
	segments := allowed
	if len(segments) == 0 {
		if !in.ImmediateTopology {
			return nil, nil // as above
		}
		if segments, err = t.allSegments(); err != nil || len(segments) == 0 {
			return nil, err
		}
	}
	return require(segments, spread(in.PVC.Name, len(segments))), nil
}

// forNode is the requirement of a claim whose first pod runs on a node.
func (t *topology) forNode(in topologyInput, allowed []topo.Segment) (*csi.TopologyRequirement, error) {
	own, err := t.segmentOf(in.SelectedNode)
	if err != nil {
		return nil, err
	}
	isOurs := func(segment topo.Segment) bool { return segment.Contains(own) }
	if len(allowed) > 0 && !slices.ContainsFunc(allowed, isOurs) {
		return nil, fmt.Errorf("%w: node %s (%s) is outside of the topologies that storage class %s allows",
			errNodeWithoutDriver, in.SelectedNode, own, in.StorageClass.Name)
	}
	if in.StrictTopology {
		return require([]topo.Segment{own}, 0), nil
	}
	segments := allowed
	if len(segments) == 0 {
		census, err := t.nodes.Count()
		if err != nil {
			return nil, err
		}
		// The caches may have changed since the node was looked up.
		segments = topo.Unique(append(slices.DeleteFunc(census.Segments, func(other topo.Segment) bool {
			return !sameKeys(own, other)
		}), own))
	}
	return require(segments, slices.IndexFunc(segments, isOurs)), nil
}

func (t *topology) segmentOf(node string) (topo.Segment, error) {
	segment, err := t.nodes.Of(node)
	switch {
	case errors.Is(err, topo.ErrNoDriver):
		return nil, fmt.Errorf("%w: %w", errNodeWithoutDriver, err)
	case errors.Is(err, topo.ErrNoKeys):
		// Elsewhere the pod may do better, if there is an elsewhere. If not, the
		// node plugins lack topology, and to select again would change nothing.
		if census, countErr := t.nodes.Count(); countErr == nil && len(census.Segments) > 0 {
			return nil, fmt.Errorf("%w: %w", errNodeWithoutDriver, err)
		}
	}
	return segment, err
}

// allSegments are those of the cluster; none if the driver told none of any
// node, and then the driver is to choose.
func (t *topology) allSegments() ([]topo.Segment, error) {
	census, err := t.nodes.Count()
	if err != nil {
		return nil, err
	}
	if len(census.Segments) == 0 && census.WithKeys > 0 {
		return nil, fmt.Errorf("none of %d nodes has labels for all topology keys the driver registered on it", census.WithKeys)
	}
	return census.Segments, nil
}

func sameKeys(a, b topo.Segment) bool {
	return slices.EqualFunc(a, b, func(x, y topo.Pair) bool { return x.Key == y.Key })
}

// require makes the requirement of segments, of which the one at index first
// is preferred, and then those behind it.
func require(segments []topo.Segment, first int) *csi.TopologyRequirement {
	requisite := make([]*csi.Topology, len(segments))
	for i, segment := range segments {
		requisite[i] = segment.CSI()
	}
	return &csi.TopologyRequirement{
		Requisite: requisite,
		Preferred: slices.Concat(requisite[first:], requisite[:first]),
	}
}
