package simcloud

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/cloud"
	"github.com/csi-windows/csi-windows/sim/control"
)

// NodeConfig says where a node is.
type NodeConfig struct {
	Zone string // empty means cloud.DefaultZone
	// MaxVolumes is how many disks the node takes; 0 means any number.
	MaxVolumes int64
	// Control is the address of the node's control, which stands for the hypervisor
	// below it. It is asked for health only; empty means nobody is asked.
	Control string
}

// Node is the node side.
type Node struct {
	config  NodeConfig
	control *control.Client // nil when nobody is asked
}

// NewNode makes the node side. Close it after the last call has ended.
func NewNode(config NodeConfig) (*Node, error) {
	if config.Zone == "" {
		config.Zone = cloud.DefaultZone
	}
	if config.MaxVolumes < 0 {
		return nil, fmt.Errorf("simcloud: a node with %d volumes at most: %w", config.MaxVolumes, csikit.ErrInvalid)
	}
	n := &Node{config: config}
	if config.Control != "" {
		n.control = control.NewClient(config.Control)
	}
	return n, nil
}

// Close drops the idle connections.
func (n *Node) Close() {
	if n.control != nil {
		n.control.Close()
	}
}

// NodeSource implements csikit.NodeBackend: the disk's identifier follows from the
// volume's id.
func (n *Node) NodeSource(_ context.Context, request csikit.NodeSourceRequest) (node.Source, error) {
	if uuid.Validate(request.VolumeID) != nil {
		if request.Ending {
			return node.Source{}, nil
		}
		return node.Source{}, fmt.Errorf("disk %q: %w", request.VolumeID, csikit.ErrNotFound)
	}
	page83 := cloud.Page83(request.VolumeID)
	if attached := request.PublishContext[contextPage83]; attached != "" && attached != page83 {
		return node.Source{}, fmt.Errorf("disk %q was attached as %q, its identifier is %q: %w",
			request.VolumeID, attached, page83, csikit.ErrInvalid)
	}
	return node.Source{Disk: &node.DiskSource{Page83: page83}}, nil
}

// NodeTopology implements csikit.NodeTopology.
func (n *Node) NodeTopology(context.Context) (csikit.Topology, error) {
	return csikit.Topology{ZoneKey: n.config.Zone}, nil
}

// MaxVolumesPerNode implements csikit.NodeLimiter.
func (n *Node) MaxVolumesPerNode(context.Context) (int64, error) { return n.config.MaxVolumes, nil }

// StorageHealth implements csikit.NodeStorageHealth: whether the control answers.
func (n *Node) StorageHealth(ctx context.Context, _ map[string]string) ([]csikit.StorageCondition, error) {
	if n.control == nil {
		return nil, nil
	}
	if _, err := n.control.Disks(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return []csikit.StorageCondition{{Unreachable: true, Reason: "ControlUnreachable", Message: err.Error()}}, nil
	}
	return nil, nil
}

// NodeVolumeHealth implements csikit.NodeHealth: whether the disk is plugged in.
func (n *Node) NodeVolumeHealth(ctx context.Context, volumeID string) ([]node.HealthCondition, error) {
	if n.control == nil {
		return nil, nil
	}
	disks, err := n.control.Disks(ctx)
	if err != nil {
		return nil, fmt.Errorf("disk %q: %w: %w", volumeID, csikit.ErrUnavailable, err)
	}
	for _, d := range disks {
		if hasPage83(d.Spec, cloud.Page83(volumeID)) {
			return nil, nil
		}
	}
	return []node.HealthCondition{{
		Status: node.HealthInaccessible, Reason: "DiskNotAttached", Message: "the disk is not attached to this node",
	}}, nil
}

func hasPage83(spec sim.DiskSpec, page83 string) bool {
	wanted, err := hex.DecodeString(page83)
	for _, id := range spec.IDs {
		if err == nil && bytes.Equal(id.ID, wanted) {
			return true
		}
	}
	return false
}
