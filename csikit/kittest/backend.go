// Package kittest has what tests of drivers and of the kit itself need: a backend
// that keeps everything in memory and implements every interface of csikit, a
// node.Node that keeps a node in memory, and a way to serve a driver for the length
// of a test.
package kittest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/node"
)

// What a Backend has.
const (
	CapacityBytes      = 1 << 50 // of all volumes
	VolumeBytesMax     = 1 << 44
	VolumeBytesMin     = 1 << 20
	VolumeBytesDefault = 1 << 30
	VolumesPerNodeMax  = 64
	// BlockBytes is the size in which changes are noticed.
	BlockBytes = 64 << 10
	// MutableParameter is the one parameter that volumes have and that can be changed.
	MutableParameter = "iops"
	// TopologyKey is the key of the only segment of a topology, Zone its value.
	TopologyKey = "kittest.example.com/zone"
	Zone        = "z1"
)

// Backend is a backend in memory. It is safe for concurrent use.
type Backend struct {
	// Before, when set, is called at the start of every call, with the name of the
	// method and what it is about. Its error is the call's. It is set before the
	// first call.
	Before func(ctx context.Context, method, object string) error

	mutex     sync.Mutex
	nodeIDs   []string
	volumes   map[string]*volume
	snapshots map[string]*snapshot
	groups    map[string]csikit.GroupSnapshot
	names     map[string]string // of everything that has one, with its sort before it, to ids
	made      int
	usedBytes int64
	health    map[string][]node.HealthCondition
}

type volume struct {
	csikit.Volume
	name       string
	isReadOnly bool // as it is attached
	parameters map[string]string
	blocks     map[int64]int // the version of each block that was written
}

type snapshot struct {
	csikit.Snapshot
	name          string
	capacityBytes int64
	blocks        map[int64]int
}

// NewBackend makes an empty backend that can attach volumes to the given nodes.
func NewBackend(nodeIDs ...string) *Backend {
	return &Backend{
		nodeIDs: nodeIDs, volumes: map[string]*volume{}, snapshots: map[string]*snapshot{},
		groups: map[string]csikit.GroupSnapshot{}, names: map[string]string{}, health: map[string][]node.HealthCondition{},
	}
}

// enter begins a call. The caller releases the lock.
func (b *Backend) enter(ctx context.Context, method, object string) (leave func(), err error) {
	if b.Before != nil {
		if err := b.Before(ctx, method, object); err != nil {
			return nil, err
		}
	}
	b.mutex.Lock()
	return b.mutex.Unlock, nil
}

// newID is an id that sorts after those before it.
func (b *Backend) newID(sort string) string {
	b.made++
	return fmt.Sprintf("%s-%06d", sort, b.made)
}

func (b *Backend) find(id string) (*volume, error) {
	v, ok := b.volumes[id]
	if !ok {
		return nil, fmt.Errorf("volume %q: %w", id, csikit.ErrNotFound)
	}
	return v, nil
}

// CreateVolume implements csikit.Backend.
func (b *Backend) CreateVolume(ctx context.Context, r csikit.CreateVolumeRequest) (csikit.Volume, error) {
	return b.create(ctx, "CreateVolume", r, func() (int64, map[int64]int, error) { return 0, nil, nil })
}

// RestoreSnapshot implements csikit.SnapshotRestorer.
func (b *Backend) RestoreSnapshot(ctx context.Context, r csikit.CreateVolumeRequest) (csikit.Volume, error) {
	return b.create(ctx, "RestoreSnapshot", r, func() (int64, map[int64]int, error) {
		s, err := b.findSnapshot(r.Source.SnapshotID)
		if err != nil {
			return 0, nil, err
		}
		return s.SizeBytes, s.blocks, nil
	})
}

// CloneVolume implements csikit.Cloner.
func (b *Backend) CloneVolume(ctx context.Context, r csikit.CreateVolumeRequest) (csikit.Volume, error) {
	return b.create(ctx, "CloneVolume", r, func() (int64, map[int64]int, error) {
		v, err := b.find(r.Source.VolumeID)
		if err != nil {
			return 0, nil, err
		}
		return v.CapacityBytes, v.blocks, nil
	})
}

// create makes a volume of what origin has, or returns the one of this name.
func (b *Backend) create(
	ctx context.Context, method string, r csikit.CreateVolumeRequest, origin func() (leastBytes int64, blocks map[int64]int, err error),
) (csikit.Volume, error) {
	leave, err := b.enter(ctx, method, r.Name)
	if err != nil {
		return csikit.Volume{}, err
	}
	defer leave()
	if id, ok := b.names["volume "+r.Name]; ok {
		return b.volumes[id].copy(), nil
	}
	leastBytes, blocks, err := origin()
	if err != nil {
		return csikit.Volume{}, err
	}
	sizeBytes, err := b.size(r.Capacity, leastBytes)
	if err != nil {
		return csikit.Volume{}, err
	}
	v := &volume{
		Volume: csikit.Volume{
			ID: b.newID("volume"), CapacityBytes: sizeBytes, Source: r.Source,
			Context: formatting(r.Parameters), Topology: []csikit.Topology{{TopologyKey: Zone}},
		},
		name: r.Name, parameters: maps.Clone(r.MutableParameters), blocks: maps.Clone(blocks),
	}
	b.volumes[v.ID], b.names["volume "+r.Name] = v, v.ID
	b.usedBytes += sizeBytes
	return v.copy(), nil
}

// formatting are the parameters that nodes have to know.
func formatting(parameters map[string]string) map[string]string {
	told := map[string]string{}
	for _, key := range []string{csikit.ContextFileSystem, csikit.ContextClusterBytes, csikit.ContextLabel} {
		if value, ok := parameters[key]; ok {
			told[key] = value
		}
	}
	return told
}

func (b *Backend) size(asked csikit.CapacityRange, leastBytes int64) (int64, error) {
	sizeBytes := max(asked.RequiredBytes, leastBytes, VolumeBytesMin)
	if asked == (csikit.CapacityRange{}) {
		sizeBytes = max(sizeBytes, VolumeBytesDefault)
	}
	if asked.LimitBytes > 0 && sizeBytes > asked.LimitBytes || sizeBytes > VolumeBytesMax {
		return 0, fmt.Errorf("a volume of %d bytes: %w", sizeBytes, csikit.ErrOutOfRange)
	}
	if sizeBytes > CapacityBytes-b.usedBytes {
		return 0, fmt.Errorf("a volume of %d bytes: %w", sizeBytes, csikit.ErrExhausted)
	}
	return sizeBytes, nil
}

func (v *volume) copy() csikit.Volume {
	c := v.Volume
	c.Context, c.NodeIDs = maps.Clone(v.Context), slices.Clone(v.NodeIDs)
	return c
}

// DeleteVolume implements csikit.Backend.
func (b *Backend) DeleteVolume(ctx context.Context, r csikit.VolumeRequest) error {
	leave, err := b.enter(ctx, "DeleteVolume", r.VolumeID)
	if err != nil {
		return err
	}
	defer leave()
	v, ok := b.volumes[r.VolumeID]
	if !ok {
		return nil
	}
	if len(v.NodeIDs) > 0 {
		return fmt.Errorf("volume %s is attached to %s: %w", v.ID, v.NodeIDs[0], csikit.ErrInUse)
	}
	delete(b.volumes, v.ID)
	delete(b.names, "volume "+v.name)
	b.usedBytes -= v.CapacityBytes
	return nil
}

// GetVolume implements csikit.Backend.
func (b *Backend) GetVolume(ctx context.Context, r csikit.VolumeRequest) (csikit.Volume, error) {
	leave, err := b.enter(ctx, "GetVolume", r.VolumeID)
	if err != nil {
		return csikit.Volume{}, err
	}
	defer leave()
	v, err := b.find(r.VolumeID)
	if err != nil {
		return csikit.Volume{}, err
	}
	return v.copy(), nil
}

// Write notes that a part of a volume was written.
func (b *Backend) Write(volumeID string, offsetBytes, sizeBytes int64) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	v, err := b.find(volumeID)
	if err != nil {
		return err
	}
	if offsetBytes < 0 || sizeBytes <= 0 || offsetBytes > v.CapacityBytes-sizeBytes {
		return fmt.Errorf("%d bytes at %d of volume %s: %w", sizeBytes, offsetBytes, volumeID, csikit.ErrInvalid)
	}
	if v.blocks == nil {
		v.blocks = map[int64]int{}
	}
	b.made++
	for block := offsetBytes / BlockBytes; block*BlockBytes < offsetBytes+sizeBytes; block++ {
		v.blocks[block] = b.made
	}
	return nil
}

// Volumes is how many volumes there are.
func (b *Backend) Volumes() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return len(b.volumes)
}

// now is the time of a snapshot.
func now() time.Time { return time.Now().UTC() }
