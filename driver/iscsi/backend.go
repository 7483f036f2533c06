package iscsi

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/csikit"
)

// ParameterPool is the parameter of a storage class that chooses the units with this
// pool name.
const ParameterPool = "pool"

// Prefixes of parameters that are not the driver's: the kit's, which the node needs to
// know, and those the provisioner adds.
const (
	kitPrefix         = "csi-windows/"
	provisionerPrefix = "csi.storage.k8s.io/"
)

// CreateVolume implements csikit.Backend: it hands out the smallest unit that is free
// and large enough.
func (d *Driver) CreateVolume(_ context.Context, request csikit.CreateVolumeRequest) (csikit.Volume, error) {
	volumeContext, err := contextOf(request.Parameters)
	if err != nil {
		return csikit.Volume{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.records.units {
		if one.State == stateUsed && one.Name == request.Name {
			return one.volume(), nil
		}
	}
	chosen, err := d.chooseLocked(request.Parameters[ParameterPool], request.Capacity)
	if err != nil {
		return csikit.Volume{}, err
	}
	one := record{
		VolumeID: chosen.unit.String(), Name: request.Name, State: stateUsed,
		SizeBytes: chosen.SizeBytes, Context: volumeContext, Wiped: chosen.Wiped,
	}
	if len(one.VolumeID) > idBytesMax { // the ways to the unit do not fit
		one.VolumeID = chosen.unit.key()
		one.Context[ContextPortals] = FormatPortals(chosen.unit.Portals)
	}
	if err := d.records.set(chosen.unit.key(), one); err != nil {
		return csikit.Volume{}, unwritten(err)
	}
	return one.volume(), nil
}

// CheckParameters implements csikit.ParameterChecker.
func (d *Driver) CheckParameters(parameters map[string]string) error {
	_, err := contextOf(parameters)
	return err
}

// contextOf is what nodes need to know of a storage class.
func contextOf(parameters map[string]string) (map[string]string, error) {
	if _, err := isPersistent("parameters", parameters); err != nil {
		return nil, err
	}
	volumeContext := map[string]string{}
	for key, value := range parameters {
		switch {
		case key == Persistent, strings.HasPrefix(key, kitPrefix):
			volumeContext[key] = value
		case key != ParameterPool && !strings.HasPrefix(key, provisionerPrefix):
			return nil, invalidf("parameters: %.64q is unknown; there are %q and %q", key, ParameterPool, Persistent)
		}
	}
	return volumeContext, nil
}

// chooseLocked finds the unit to hand out.
func (d *Driver) chooseLocked(pool string, capacity csikit.CapacityRange) (poolUnit, error) {
	units, err := d.unitsLocked(pool)
	if err != nil {
		return poolUnit{}, err
	}
	fits := func(u poolUnit) bool {
		return u.SizeBytes >= capacity.RequiredBytes && (capacity.LimitBytes == 0 || u.SizeBytes <= capacity.LimitBytes)
	}
	units = slices.DeleteFunc(units, func(u poolUnit) bool { return !fits(u) })
	if len(units) == 0 {
		return poolUnit{}, fmt.Errorf("%w: the pool has no unit of %d bytes or more (limit %d)",
			csikit.ErrOutOfRange, capacity.RequiredBytes, capacity.LimitBytes)
	}
	free := slices.DeleteFunc(units, func(u poolUnit) bool { return !d.records.isFree(u) })
	if len(free) == 0 {
		return poolUnit{}, fmt.Errorf("%w: every unit of %d bytes or more is in use, or was released and not wiped since",
			csikit.ErrExhausted, capacity.RequiredBytes)
	}
	return slices.MinFunc(free, func(a, b poolUnit) int {
		return cmp.Or(cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(a.unit.key(), b.unit.key()))
	}), nil
}

// unitsLocked are the units of a pool, as the file is now.
func (d *Driver) unitsLocked(pool string) ([]poolUnit, error) {
	units, err := readPool(d.poolFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", csikit.ErrUnavailable, err)
	}
	if err := d.records.see(units); err != nil {
		return nil, unwritten(err)
	}
	return slices.DeleteFunc(units, func(u poolUnit) bool { return u.Pool != pool }), nil
}

// DeleteVolume implements csikit.Backend: the unit is released and stays so until
// the pool file says that it was wiped. A static volume is left as it is.
func (d *Driver) DeleteVolume(_ context.Context, request csikit.VolumeRequest) error {
	unit, err := ParseUnit(request.VolumeID)
	if err != nil {
		return nil // no such volume
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	one, found := d.records.units[unit.key()]
	if !found || one.State != stateUsed || one.VolumeID != request.VolumeID {
		return nil
	}
	// A wipe that the file tells of by now came before the release: it does not count.
	units, err := readPool(d.poolFile)
	if err != nil {
		return fmt.Errorf("%w: %w", csikit.ErrUnavailable, err)
	}
	one.State, one.Unseen = stateReleased, true
	for _, u := range units {
		if u.unit.key() == unit.key() {
			one.Unseen, one.Wiped = false, max(one.Wiped, u.Wiped)
		}
	}
	if err := d.records.set(unit.key(), one); err != nil {
		return unwritten(err)
	}
	return nil
}

func unwritten(err error) error {
	return fmt.Errorf("%w: the records cannot be written: %w", csikit.ErrUnavailable, err)
}

// GetVolume implements csikit.Backend. An id of a unit that is neither in the pool nor
// was ever handed out is a static volume of unknown size.
func (d *Driver) GetVolume(_ context.Context, request csikit.VolumeRequest) (csikit.Volume, error) {
	unit, err := ParseUnit(request.VolumeID)
	if err != nil {
		return csikit.Volume{}, fmt.Errorf("%w: %w", csikit.ErrNotFound, err)
	}
	units, err := readPool(d.poolFile)
	if err != nil {
		return csikit.Volume{}, fmt.Errorf("%w: %w", csikit.ErrUnavailable, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	one, found := d.records.units[unit.key()]
	inPool := slices.ContainsFunc(units, func(u poolUnit) bool { return u.unit.key() == unit.key() })
	switch {
	case found && one.State == stateUsed && one.VolumeID == request.VolumeID:
		return one.volume(), nil
	case found || inPool:
		return csikit.Volume{}, fmt.Errorf("%w: %s is a unit of the pool and no volume", csikit.ErrNotFound, unit.key())
	default:
		return csikit.Volume{ID: request.VolumeID}, nil
	}
}

// ListVolumes implements csikit.VolumeLister: the volumes from the pool in the order
// of their ids. A token is the last id of the page before.
func (d *Driver) ListVolumes(_ context.Context, page csikit.Page) (csikit.VolumePage, error) {
	if page.Token != "" {
		if _, err := ParseUnit(page.Token); err != nil {
			return csikit.VolumePage{}, fmt.Errorf("%w: %w", csikit.ErrBadToken, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := map[string]record{}
	for _, one := range d.records.units {
		if one.State == stateUsed && one.VolumeID > page.Token {
			ids[one.VolumeID] = one
		}
	}
	var answer csikit.VolumePage
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if page.MaxEntries > 0 && len(answer.Volumes) == page.MaxEntries {
			answer.NextToken = answer.Volumes[len(answer.Volumes)-1].ID
			break
		}
		answer.Volumes = append(answer.Volumes, ids[id].volume())
	}
	return answer, nil
}

// GetCapacity implements csikit.CapacityReporter: the sizes of the free units.
func (d *Driver) GetCapacity(_ context.Context, request csikit.CapacityRequest) (csikit.Capacity, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	units, err := d.unitsLocked(request.Parameters[ParameterPool])
	if err != nil {
		return csikit.Capacity{}, err
	}
	var capacity csikit.Capacity
	for _, u := range units {
		if d.records.isFree(u) {
			capacity.AvailableBytes += min(u.SizeBytes, math.MaxInt64-capacity.AvailableBytes)
			capacity.MaximumBytes = max(capacity.MaximumBytes, u.SizeBytes)
		}
	}
	return capacity, nil
}

// volume is the volume of a record.
func (r record) volume() csikit.Volume {
	return csikit.Volume{ID: r.VolumeID, CapacityBytes: r.SizeBytes, Context: maps.Clone(r.Context)}
}
