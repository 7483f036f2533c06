package simcloud

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/sim/cloud"
)

// ZoneKey is the key of the topology: the zone of a disk and of a node.
const ZoneKey = "topology.simcloud.csi-windows.io/zone"

// DefaultVolumeBytes is the size of a volume whose claim names none.
const DefaultVolumeBytes = 1 << 30

// CreateVolume implements csikit.Backend.
func (b *Backend) CreateVolume(ctx context.Context, request csikit.CreateVolumeRequest) (csikit.Volume, error) {
	return b.create(ctx, request, "", 0)
}

// RestoreSnapshot implements csikit.SnapshotRestorer.
func (b *Backend) RestoreSnapshot(ctx context.Context, request csikit.CreateVolumeRequest) (csikit.Volume, error) {
	if d, err := b.cloud.DiskNamed(ctx, request.Name); err == nil {
		return b.volume(ctx, d), nil
	}
	s, err := b.cloud.Snapshot(ctx, request.Source.SnapshotID)
	if err != nil {
		return csikit.Volume{}, kit(err)
	}
	return b.create(ctx, request, s.ID, s.SizeBytes)
}

// CloneVolume implements csikit.Cloner.
func (b *Backend) CloneVolume(ctx context.Context, request csikit.CreateVolumeRequest) (csikit.Volume, error) {
	if d, err := b.cloud.DiskNamed(ctx, request.Name); err == nil {
		return b.volume(ctx, d), nil
	}
	d, err := b.cloud.Disk(ctx, request.Source.VolumeID)
	if err != nil {
		return csikit.Volume{}, kit(err)
	}
	return b.create(ctx, request, d.ID, d.SizeBytes)
}

// create makes a disk in the first zone that will do and has room.
func (b *Backend) create(ctx context.Context, request csikit.CreateVolumeRequest, source string, leastBytes int64) (csikit.Volume, error) {
	if d, err := b.cloud.DiskNamed(ctx, request.Name); err == nil {
		return b.volume(ctx, d), nil
	}
	wanted, zones, err := b.plan(ctx, request, leastBytes)
	if err != nil {
		return csikit.Volume{}, err
	}
	wanted.Source = source
	for _, zone := range zones {
		wanted.Zone = zone
		var d cloud.Disk
		d, err = b.cloud.CreateDisk(ctx, wanted)
		if errors.Is(err, cloud.ErrExists) { // made meanwhile by another call
			if d, err = b.cloud.DiskNamed(ctx, request.Name); err == nil {
				return b.volume(ctx, d), nil
			}
		}
		if err == nil {
			return b.volume(ctx, d), nil
		}
		if !errors.Is(err, cloud.ErrExhausted) {
			break
		}
	}
	return csikit.Volume{}, kit(err)
}

// plan makes a request to the cloud of one to the driver.
func (b *Backend) plan(ctx context.Context, request csikit.CreateVolumeRequest, leastBytes int64) (cloud.CreateRequest, []string, error) {
	var wanted cloud.CreateRequest
	p, err := classParameters(request.Parameters)
	if err != nil {
		return wanted, nil, err
	}
	mutable, err := mutableParameters(request.MutableParameters)
	if err != nil {
		return wanted, nil, err
	}
	if mutable.Tier != "" {
		p.properties.Tier = mutable.Tier
	}
	if mutable.IOPS != 0 {
		p.properties.IOPS = mutable.IOPS
	}
	size, err := sizeFor(request.Capacity, leastBytes)
	if err != nil {
		return wanted, nil, err
	}
	zones, err := b.zonesFor(ctx, request, p.zone)
	wanted = cloud.CreateRequest{Name: request.Name, SizeBytes: size, Bus: p.bus, Properties: p.properties}
	return wanted, zones, err
}

// sizeFor is the size of a volume that fits a range: whole MiB, and not below the
// size of its source.
func sizeFor(want csikit.CapacityRange, leastBytes int64) (int64, error) {
	size := max(want.RequiredBytes, leastBytes)
	if size == 0 {
		size = DefaultVolumeBytes
		if want.LimitBytes > 0 {
			size = min(size, want.LimitBytes>>20<<20)
		}
	}
	size = max(size, cloud.MinDiskBytes)
	if size > cloud.MaxDiskBytes {
		return 0, fmt.Errorf("%d bytes, at most %d are possible: %w", size, int64(cloud.MaxDiskBytes), csikit.ErrOutOfRange)
	}
	size = (size + 1<<20 - 1) >> 20 << 20
	if want.LimitBytes > 0 && size > want.LimitBytes {
		return 0, fmt.Errorf("%d bytes at least, the limit is %d: %w", size, want.LimitBytes, csikit.ErrOutOfRange)
	}
	return size, nil
}

// zonesFor are the zones in which a volume may be, best first.
func (b *Backend) zonesFor(ctx context.Context, request csikit.CreateVolumeRequest, fixed string) ([]string, error) {
	known := b.zoneNames(ctx)
	if fixed != "" && !slices.Contains(known, fixed) {
		return nil, fmt.Errorf("parameter %q: no zone is called %q: %w", ParameterZone, fixed, csikit.ErrInvalid)
	}
	var zones []string
	for _, places := range [][]csikit.Topology{request.Preferred, request.Requisite} {
		for _, place := range places {
			zone, ok := place[ZoneKey]
			if ok && slices.Contains(known, zone) && !slices.Contains(zones, zone) && (fixed == "" || zone == fixed) {
				zones = append(zones, zone)
			}
		}
	}
	switch {
	case len(zones) > 0:
		return zones, nil
	case len(request.Preferred)+len(request.Requisite) > 0:
		return nil, fmt.Errorf("no zone of the cloud is among the places that are asked for: %w", csikit.ErrExhausted)
	case fixed != "":
		return []string{fixed}, nil
	}
	return known, nil
}

func (b *Backend) zoneNames(ctx context.Context) (names []string) {
	for _, z := range b.cloud.Zones(ctx) {
		names = append(names, z.Name)
	}
	return names
}

// volume is a disk as the kit has it.
func (b *Backend) volume(ctx context.Context, d cloud.Disk) csikit.Volume {
	v := csikit.Volume{ID: d.ID, CapacityBytes: d.SizeBytes, Topology: []csikit.Topology{{ZoneKey: d.Zone}}}
	if d.AttachedTo != "" {
		v.NodeIDs = []string{d.AttachedTo}
	}
	switch {
	case d.Source == "":
	case d.FromSnapshot:
		v.Source = &csikit.ContentSource{SnapshotID: d.Source}
	default:
		v.Source = &csikit.ContentSource{VolumeID: d.Source}
	}
	return v
}

// DeleteVolume implements csikit.Backend.
func (b *Backend) DeleteVolume(ctx context.Context, request csikit.VolumeRequest) error {
	return kit(b.cloud.DeleteDisk(ctx, request.VolumeID))
}

// GetVolume implements csikit.Backend.
func (b *Backend) GetVolume(ctx context.Context, request csikit.VolumeRequest) (csikit.Volume, error) {
	d, err := b.cloud.Disk(ctx, request.VolumeID)
	if err != nil {
		return csikit.Volume{}, kit(err)
	}
	return b.volume(ctx, d), nil
}

// ListVolumes implements csikit.VolumeLister.
func (b *Backend) ListVolumes(ctx context.Context, page csikit.Page) (csikit.VolumePage, error) {
	disks, next, err := b.cloud.DiskPage(ctx, cloud.Page(page), nil)
	if err != nil {
		return csikit.VolumePage{}, kit(err)
	}
	out := csikit.VolumePage{NextToken: next}
	for _, d := range disks {
		out.Volumes = append(out.Volumes, b.volume(ctx, d))
	}
	return out, nil
}

// GetCapacity implements csikit.CapacityReporter. A place without zone is all of them.
func (b *Backend) GetCapacity(ctx context.Context, request csikit.CapacityRequest) (csikit.Capacity, error) {
	p, err := classParameters(request.Parameters)
	if err != nil {
		return csikit.Capacity{}, err
	}
	asked := request.Topology[ZoneKey]
	out := csikit.Capacity{MinimumBytes: cloud.MinDiskBytes}
	for _, z := range b.cloud.Zones(ctx) {
		if asked != "" && z.Name != asked || p.zone != "" && z.Name != p.zone {
			continue
		}
		out.AvailableBytes += min(z.AvailableBytes, math.MaxInt64-out.AvailableBytes)
		out.MaximumBytes = max(out.MaximumBytes, min(z.AvailableBytes>>20<<20, cloud.MaxDiskBytes))
	}
	return out, nil
}

// ExpandVolume implements csikit.Expander.
func (b *Backend) ExpandVolume(ctx context.Context, request csikit.ExpandRequest) (csikit.Volume, error) {
	d, err := b.cloud.Disk(ctx, request.VolumeID)
	if err != nil {
		return csikit.Volume{}, kit(err)
	}
	size, err := sizeFor(request.Capacity, d.SizeBytes)
	if err != nil {
		return csikit.Volume{}, err
	}
	if d, err = b.cloud.GrowDisk(ctx, d.ID, size); err != nil {
		return csikit.Volume{}, kit(err)
	}
	v := b.volume(ctx, d)
	v.NodeExpansionNeeded = true
	return v, nil
}

// ModifyVolume implements csikit.Modifier.
func (b *Backend) ModifyVolume(ctx context.Context, request csikit.ModifyRequest) error {
	p, err := mutableParameters(request.MutableParameters)
	if err != nil {
		return err
	}
	_, err = b.cloud.ModifyDisk(ctx, request.VolumeID, p)
	return kit(err)
}
