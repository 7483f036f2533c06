package cloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/csi-windows/csi-windows/sim"
)

// AttachDisk attaches a disk to a node and returns its number there. A disk the
// node has already is left as it is; one that another node has is ErrAttached. A
// node that the cloud knows must be in the disk's zone and have a slot free.
func (c *Cloud) AttachDisk(ctx context.Context, id, nodeName string, node sim.DiskController) (uint32, error) {
	return c.attach(ctx, id, nodeName, node, false)
}

// AttachDiskReadOnly is AttachDisk with a disk that refuses writes. One that is
// attached in the other way is ErrExists.
func (c *Cloud) AttachDiskReadOnly(ctx context.Context, id, nodeName string, node sim.DiskController) (uint32, error) {
	return c.attach(ctx, id, nodeName, node, true)
}

func (c *Cloud) attach(ctx context.Context, id, nodeName string, node sim.DiskController, readOnly bool) (number uint32, err error) {
	unlock, err := c.locks.lock(ctx, diskKey(id))
	if err != nil {
		return 0, fmt.Errorf("attach disk %q: %w", id, err)
	}
	defer unlock()
	d, err := c.Disk(ctx, id)
	if err != nil {
		return 0, err
	}
	// The intent is recorded first: after a crash the disk counts as attached,
	// and both AttachDisk and DetachDisk finish the work.
	if err = c.intend(ctx, &d, nodeName, readOnly); err == nil {
		number, err = c.plugIn(ctx, d, node)
	}
	if err != nil {
		return 0, fmt.Errorf("attach disk %q: %w", id, err)
	}
	return number, nil
}

// intend checks that a disk may go to a node, and records that it does.
func (c *Cloud) intend(ctx context.Context, d *Disk, nodeName string, readOnly bool) error {
	if d.AttachedTo == nodeName && d.AttachedReadOnly == readOnly {
		return nil
	}
	switch d.AttachedTo {
	case "":
	case nodeName:
		return fmt.Errorf("attached read-only %t: %w", d.AttachedReadOnly, ErrExists)
	default:
		return fmt.Errorf("%w: %s", ErrAttached, d.AttachedTo)
	}
	known, err := c.Node(ctx, nodeName)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err == nil && known.Zone != d.Zone {
		return fmt.Errorf("node %q is in zone %q, the disk in %q: %w", nodeName, known.Zone, d.Zone, ErrZone)
	}
	// Two disks that race for a node's last slot are counted one after the other.
	unlock, err := c.locks.lock(ctx, "slots "+nodeName)
	if err != nil {
		return err
	}
	defer unlock()
	if has := c.attachedTo(nodeName); known.MaxDisks > 0 && has >= known.MaxDisks {
		return fmt.Errorf("node %q has %d disks: %w", nodeName, has, ErrExhausted)
	}
	d.AttachedTo, d.AttachedReadOnly = nodeName, readOnly
	return c.update(*d)
}

func (c *Cloud) attachedTo(nodeName string) (count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.disks {
		if d.AttachedTo == nodeName {
			count++
		}
	}
	return count
}

// plugIn puts a disk into a node that does not have it.
func (c *Cloud) plugIn(ctx context.Context, d Disk, node sim.DiskController) (uint32, error) {
	if number, ok, err := numberOn(ctx, d.ID, node); ok || err != nil {
		return number, err
	}
	c.step("attach")
	number, err := node.AttachDisk(ctx, sim.DiskSpec{
		Image: c.Image(d.ID), Bus: d.Bus, Serial: d.Serial, WriteProtected: d.AttachedReadOnly,
		IDs: []sim.DeviceID{{CodeSet: 1, Type: 3, ID: naa(d.ID)}},
	})
	return number, nodeError(err)
}

// DetachDisk takes a disk away from a node. A disk that no node has is no error. A
// nil node is one that is gone for good.
func (c *Cloud) DetachDisk(ctx context.Context, id, nodeName string, node sim.DiskController) error {
	_, err := c.locked(ctx, "detach", id, func(d *Disk) (bool, error) {
		if d.AttachedTo != nodeName || nodeName == "" {
			return false, nil
		}
		if node != nil {
			number, ok, err := numberOn(ctx, id, node)
			if err != nil {
				return false, err
			}
			if ok {
				c.step("detach")
				if err := node.DetachDisk(ctx, number); err != nil {
					return false, nodeError(err)
				}
			}
		}
		d.AttachedTo, d.AttachedReadOnly = "", false
		return true, nil
	})
	return err
}

// numberOn finds a disk on a node by its identifier.
func numberOn(ctx context.Context, id string, node sim.DiskController) (uint32, bool, error) {
	disks, err := node.Disks(ctx)
	if err != nil {
		return 0, false, nodeError(err)
	}
	for _, d := range disks {
		for _, known := range d.Spec.IDs {
			if bytes.Equal(known.ID, naa(id)) {
				return d.Number, true, nil
			}
		}
	}
	return 0, false, nil
}

// nodeError marks a failure as the node's; the end of the call's time stays one.
func nodeError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNode, err)
}
