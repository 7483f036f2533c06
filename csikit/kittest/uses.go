package kittest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/node"
)

// AttachVolume implements csikit.Attacher.
func (b *Backend) AttachVolume(ctx context.Context, r csikit.AttachRequest) (map[string]string, error) {
	leave, err := b.enter(ctx, "AttachVolume", r.VolumeID)
	if err != nil {
		return nil, err
	}
	defer leave()
	v, err := b.find(r.VolumeID)
	if err != nil {
		return nil, err
	}
	publishContext := map[string]string{"disk": diskOf(v.ID)}
	switch {
	case !slices.Contains(b.nodeIDs, r.NodeID):
		return nil, fmt.Errorf("node %q: %w", r.NodeID, csikit.ErrNotFound)
	case slices.Contains(v.NodeIDs, r.NodeID) && v.isReadOnly != r.ReadOnly:
		return nil, fmt.Errorf("volume %s is attached to %s with readOnly=%t: %w", v.ID, r.NodeID, v.isReadOnly, csikit.ErrExists)
	case slices.Contains(v.NodeIDs, r.NodeID):
		return publishContext, nil
	case len(v.NodeIDs) > 0:
		return nil, fmt.Errorf("volume %s is attached to %s: %w", v.ID, v.NodeIDs[0], csikit.ErrInUse)
	}
	attached := 0
	for _, other := range b.volumes {
		if slices.Contains(other.NodeIDs, r.NodeID) {
			attached++
		}
	}
	if attached >= VolumesPerNodeMax {
		return nil, fmt.Errorf("node %s has %d volumes: %w", r.NodeID, attached, csikit.ErrExhausted)
	}
	v.NodeIDs, v.isReadOnly = append(v.NodeIDs, r.NodeID), r.ReadOnly
	return publishContext, nil
}

// DetachVolume implements csikit.Attacher.
func (b *Backend) DetachVolume(ctx context.Context, r csikit.DetachRequest) error {
	leave, err := b.enter(ctx, "DetachVolume", r.VolumeID)
	if err != nil {
		return err
	}
	defer leave()
	if v, ok := b.volumes[r.VolumeID]; ok {
		v.NodeIDs = slices.DeleteFunc(v.NodeIDs, func(id string) bool { return r.NodeID == "" || id == r.NodeID })
	}
	return nil
}

// ExpandVolume implements csikit.Expander.
func (b *Backend) ExpandVolume(ctx context.Context, r csikit.ExpandRequest) (csikit.Volume, error) {
	leave, err := b.enter(ctx, "ExpandVolume", r.VolumeID)
	if err != nil {
		return csikit.Volume{}, err
	}
	defer leave()
	v, err := b.find(r.VolumeID)
	if err != nil {
		return csikit.Volume{}, err
	}
	sizeBytes, err := b.size(r.Capacity, v.CapacityBytes)
	if err != nil {
		return csikit.Volume{}, err
	}
	b.usedBytes += sizeBytes - v.CapacityBytes
	v.CapacityBytes = sizeBytes
	answer := v.copy()
	answer.NodeExpansionNeeded = true
	return answer, nil
}

// CheckMutableParameters implements csikit.Modifier.
func (b *Backend) CheckMutableParameters(parameters map[string]string) error {
	for key := range parameters {
		if key != MutableParameter {
			return fmt.Errorf("parameter %q, volumes have only %q: %w", key, MutableParameter, csikit.ErrInvalid)
		}
	}
	return nil
}

// ModifyVolume implements csikit.Modifier.
func (b *Backend) ModifyVolume(ctx context.Context, r csikit.ModifyRequest) error {
	leave, err := b.enter(ctx, "ModifyVolume", r.VolumeID)
	if err != nil {
		return err
	}
	defer leave()
	v, err := b.find(r.VolumeID)
	if err != nil {
		return err
	}
	if v.parameters == nil {
		v.parameters = map[string]string{}
	}
	maps.Copy(v.parameters, r.MutableParameters)
	return nil
}

// CheckParameters implements csikit.ParameterChecker.
func (b *Backend) CheckParameters(parameters map[string]string) error {
	for key := range parameters {
		if len(formatting(map[string]string{key: ""})) == 0 {
			return fmt.Errorf("parameter %q: %w", key, csikit.ErrInvalid)
		}
	}
	return nil
}

// GetCapacity implements csikit.CapacityReporter.
func (b *Backend) GetCapacity(ctx context.Context, r csikit.CapacityRequest) (csikit.Capacity, error) {
	leave, err := b.enter(ctx, "GetCapacity", "")
	if err != nil {
		return csikit.Capacity{}, err
	}
	defer leave()
	if zone, ok := r.Topology[TopologyKey]; ok && zone != Zone {
		return csikit.Capacity{}, nil
	}
	return csikit.Capacity{AvailableBytes: CapacityBytes - b.usedBytes, MaximumBytes: VolumeBytesMax, MinimumBytes: VolumeBytesMin}, nil
}

// Probe implements csikit.Prober.
func (b *Backend) Probe(ctx context.Context) error {
	leave, err := b.enter(ctx, "Probe", "")
	if err == nil {
		leave()
	}
	return err
}

// SetHealth says what is wrong with a volume from now on.
func (b *Backend) SetHealth(volumeID string, conditions ...node.HealthCondition) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.health[volumeID] = conditions
}

// VolumeHealth implements csikit.HealthReporter.
func (b *Backend) VolumeHealth(ctx context.Context, r csikit.VolumeRequest) (csikit.VolumeHealth, error) {
	leave, err := b.enter(ctx, "VolumeHealth", r.VolumeID)
	if err != nil {
		return csikit.VolumeHealth{}, err
	}
	defer leave()
	if _, err := b.find(r.VolumeID); err != nil {
		return csikit.VolumeHealth{}, err
	}
	return csikit.VolumeHealth{VolumeID: r.VolumeID, Conditions: b.health[r.VolumeID]}, nil
}

// diskOf is the disk of a volume, as page 0x83 of the disk says it.
func diskOf(volumeID string) string { return "kittest." + volumeID }

// NodeSource implements csikit.NodeBackend.
func (b *Backend) NodeSource(ctx context.Context, r csikit.NodeSourceRequest) (node.Source, error) {
	leave, err := b.enter(ctx, "NodeSource", r.VolumeID)
	if err != nil {
		return node.Source{}, err
	}
	defer leave()
	if _, err := b.find(r.VolumeID); err != nil {
		return node.Source{}, err
	}
	return node.Source{Disk: &node.DiskSource{Page83: diskOf(r.VolumeID)}}, nil
}

// NodeTopology implements csikit.NodeTopology.
func (b *Backend) NodeTopology(context.Context) (csikit.Topology, error) {
	return csikit.Topology{TopologyKey: Zone}, nil
}

// MaxVolumesPerNode implements csikit.NodeLimiter.
func (b *Backend) MaxVolumesPerNode(context.Context) (int64, error) { return VolumesPerNodeMax, nil }

// StorageHealth implements csikit.NodeStorageHealth.
func (b *Backend) StorageHealth(ctx context.Context, _ map[string]string) ([]csikit.StorageCondition, error) {
	leave, err := b.enter(ctx, "StorageHealth", "")
	if err != nil {
		return nil, err
	}
	defer leave()
	return nil, nil
}

// NodeVolumeHealth implements csikit.NodeHealth.
func (b *Backend) NodeVolumeHealth(ctx context.Context, volumeID string) ([]node.HealthCondition, error) {
	leave, err := b.enter(ctx, "NodeVolumeHealth", volumeID)
	if err != nil {
		return nil, err
	}
	defer leave()
	return b.health[volumeID], nil
}
