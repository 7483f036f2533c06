package cloud

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/sim/internal/folder"
)

// DefaultZone is the zone of a cloud that was told of none.
const DefaultZone = "zone-1"

// DefaultZoneBytes is the capacity of a zone that names none.
const DefaultZoneBytes = 1 << 50

// Zone is a place: a disk is in one, and so is a node.
type Zone struct {
	Name string `json:"name"`
	// CapacityBytes bounds the sum of its disks; 0 means DefaultZoneBytes. Snapshots
	// do not count.
	CapacityBytes int64 `json:"capacityBytes"`
	// AvailableBytes is what is left of it; only reported.
	AvailableBytes int64 `json:"-"`
}

func (c *Cloud) zonesPath() string { return filepath.Join(c.dir, zonesFile) }

func (c *Cloud) loadZones() (map[string]int64, error) {
	found := map[string]int64{}
	err := folder.ReadJSON(c.zonesPath(), &found)
	if errors.Is(err, fs.ErrNotExist) {
		found[DefaultZone], err = DefaultZoneBytes, nil
	}
	return found, err
}

// SetZones says which zones there are. A zone that has disks stays, with the
// capacity it had.
func (c *Cloud) SetZones(ctx context.Context, zones []Zone) error {
	wanted := map[string]int64{}
	for _, z := range zones {
		if !ValidName(z.Name) || z.CapacityBytes < 0 {
			return fmt.Errorf("zone %q of %d bytes: %w", z.Name, z.CapacityBytes, ErrInvalid)
		}
		if wanted[z.Name] = z.CapacityBytes; z.CapacityBytes == 0 {
			wanted[z.Name] = DefaultZoneBytes
		}
	}
	unlock, err := c.locks.lock(ctx, "zones")
	if err != nil {
		return fmt.Errorf("set zones: %w", err)
	}
	defer unlock()
	c.mu.Lock()
	for name, capacity := range c.zones {
		if _, ok := wanted[name]; !ok && c.usedLocked(name) > 0 {
			wanted[name] = capacity
		}
	}
	c.mu.Unlock()
	if len(wanted) == 0 {
		return fmt.Errorf("set zones: there must be one: %w", ErrInvalid)
	}
	c.step("zones")
	if err := folder.WriteJSON(c.zonesPath(), wanted); err != nil {
		return fmt.Errorf("set zones: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.zones = wanted
	return nil
}

// Zones returns every zone, by name.
func (c *Cloud) Zones(context.Context) []Zone {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Zone, 0, len(c.zones))
	for _, name := range slices.SortedFunc(maps.Keys(c.zones), strings.Compare) {
		capacity := c.zones[name]
		out = append(out, Zone{Name: name, CapacityBytes: capacity, AvailableBytes: max(capacity-c.usedLocked(name), 0)})
	}
	return out
}

// usedLocked is the sum of the disks of a zone, those included that are being made.
func (c *Cloud) usedLocked(zone string) int64 {
	used := c.reserved[zone]
	for _, d := range c.disks {
		if d.Zone == zone {
			used += d.SizeBytes
		}
	}
	return used
}

// reserve takes room in a zone until done is called, by when a record counts in
// its place.
func (c *Cloud) reserve(zone string, sizeBytes int64) (done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	capacity, ok := c.zones[zone]
	if !ok {
		return nil, fmt.Errorf("zone %q: %w", zone, ErrNotFound)
	}
	if left := capacity - c.usedLocked(zone); left < sizeBytes {
		return nil, fmt.Errorf("zone %q has %d bytes left, %d are needed: %w", zone, max(left, 0), sizeBytes, ErrExhausted)
	}
	c.reserved[zone] += sizeBytes
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.reserved[zone] -= sizeBytes; c.reserved[zone] == 0 {
			delete(c.reserved, zone)
		}
	}, nil
}
