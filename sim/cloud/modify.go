package cloud

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Properties of a disk that can be changed while it is in use.
type Properties struct {
	Tier string `json:"tier,omitempty"` // TierStandard, TierPremium; empty means standard
	// IOPS are the operations a second the disk is made for; 0 means the least.
	IOPS int64 `json:"iops,omitempty"`
}

// The tiers.
const (
	TierStandard = "standard"
	TierPremium  = "premium"
)

// The limits of IOPS.
const (
	IOPSMin         = 100
	IOPSMaxStandard = 5000
	IOPSMaxPremium  = 80000
)

// filled gives zero properties their defaults.
func (p Properties) filled() Properties {
	if p.Tier == "" {
		p.Tier = TierStandard
	}
	if p.IOPS == 0 {
		p.IOPS = IOPSMin
	}
	return p
}

// check refuses what is outside the limits.
func (p Properties) check() error {
	most := int64(IOPSMaxStandard)
	switch p.Tier {
	case TierStandard:
	case TierPremium:
		most = IOPSMaxPremium
	default:
		return fmt.Errorf("tier %q, %s or %s is allowed: %w", p.Tier, TierStandard, TierPremium, ErrInvalid)
	}
	if p.IOPS < IOPSMin || p.IOPS > most {
		return fmt.Errorf("iops %d, from %d to %d are allowed in tier %s: %w", p.IOPS, IOPSMin, most, p.Tier, ErrInvalid)
	}
	return nil
}

// locked runs do with a disk and writes back what it made of it.
func (c *Cloud) locked(ctx context.Context, what, id string, do func(d *Disk) (changed bool, err error)) (Disk, error) {
	unlock, err := c.locks.lock(ctx, diskKey(id))
	if err != nil {
		return Disk{}, fmt.Errorf("%s disk %q: %w", what, id, err)
	}
	defer unlock()
	d, err := c.Disk(ctx, id)
	if err != nil {
		return Disk{}, err
	}
	changed, err := do(&d)
	if err == nil && changed {
		err = c.update(d)
	}
	if err != nil {
		return Disk{}, fmt.Errorf("%s disk %q: %w", what, id, err)
	}
	return d, nil
}

// ModifyDisk changes the properties that are not zero.
func (c *Cloud) ModifyDisk(ctx context.Context, id string, p Properties) (Disk, error) {
	return c.locked(ctx, "modify", id, func(d *Disk) (bool, error) {
		old := d.Properties
		if p.Tier != "" {
			d.Properties.Tier = p.Tier
		}
		if p.IOPS != 0 {
			d.Properties.IOPS = p.IOPS
		}
		return d.Properties != old, d.Properties.check()
	})
}

// GrowDisk makes a disk larger, attached or not. A node sees it after a rescan.
// A size it has already reached is left alone.
func (c *Cloud) GrowDisk(ctx context.Context, id string, sizeBytes int64) (Disk, error) {
	return c.locked(ctx, "grow", id, func(d *Disk) (bool, error) {
		size := roundUp(sizeBytes)
		if size <= d.SizeBytes {
			return false, nil
		}
		if size > MaxDiskBytes {
			return false, fmt.Errorf("%d bytes, %d are allowed: %w", sizeBytes, int64(MaxDiskBytes), ErrSize)
		}
		done, err := c.reserve(d.Zone, size-d.SizeBytes)
		if err != nil {
			return false, err
		}
		defer done()
		c.step("grow")
		// The medium first: were it recorded first, a repeat after a crash would
		// find nothing to do. Open records what a crash left unrecorded.
		if info, err := os.Stat(c.Image(id)); err != nil {
			return false, err
		} else if size = max(size, info.Size()); size > info.Size() {
			if err := os.Truncate(c.Image(id), size); err != nil {
				return false, err
			}
		}
		d.SizeBytes = size
		return true, nil
	})
}

// Condition is one thing that is wrong with a disk.
type Condition struct {
	// Status is DEGRADED, INACCESSIBLE or DATA_LOSS, as CSI has them.
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// The states of a condition.
const (
	StatusDegraded     = "DEGRADED"
	StatusInaccessible = "INACCESSIBLE"
	StatusDataLoss     = "DATA_LOSS"
)

// SetConditions says what is wrong with a disk; none means that it is well. It is
// how a test makes a disk ill.
func (c *Cloud) SetConditions(ctx context.Context, id string, conditions ...Condition) error {
	_, err := c.locked(ctx, "set conditions of", id, func(d *Disk) (bool, error) {
		for _, k := range conditions {
			if !slices.Contains([]string{StatusDegraded, StatusInaccessible, StatusDataLoss}, k.Status) || k.Reason == "" {
				return false, fmt.Errorf("status %q with reason %q: %w", k.Status, k.Reason, ErrInvalid)
			}
		}
		d.Conditions = slices.Clone(conditions)
		return true, nil
	})
	return err
}

// Health is what is wrong with a disk: the conditions that were set, a medium that
// is missing, and a node that is gone with the disk attached.
func (c *Cloud) Health(ctx context.Context, id string) ([]Condition, error) {
	d, err := c.Disk(ctx, id)
	if err != nil {
		return nil, err
	}
	conditions := slices.Clone(d.Conditions)
	if _, err := os.Stat(c.Image(id)); errors.Is(err, fs.ErrNotExist) {
		conditions = append(conditions, Condition{StatusDataLoss, "MediumMissing", "the file that is the disk's medium is missing"})
	}
	if d.AttachedTo == "" {
		return conditions, nil
	}
	if _, err := c.Node(ctx, d.AttachedTo); errors.Is(err, ErrNotFound) {
		conditions = append(conditions, Condition{StatusDegraded, "NodeGone", "attached to a node that does not exist: " + d.AttachedTo})
	}
	return conditions, nil
}
