package cloud

import (
	"context"
	"fmt"

	"github.com/csi-windows/csi-windows/sim"
)

// AttachDisk attaches a disk to a node and returns its number there. A disk the
// node has already is left as it is; one that another node has is ErrAttached.
func (c *Cloud) AttachDisk(ctx context.Context, id, nodeName string, node sim.DiskController) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, err := c.diskLocked(id)
	if err != nil {
		return 0, err
	}
	if d.AttachedTo != "" && d.AttachedTo != nodeName {
		return 0, fmt.Errorf("attach disk %q: %w: %s", id, ErrAttached, d.AttachedTo)
	}
	// The intent is recorded first: after a crash the disk counts as attached,
	// and both AttachDisk and DetachDisk finish the work.
	if err := c.setAttachedLocked(d, nodeName); err != nil {
		return 0, fmt.Errorf("attach disk %q: %w", id, err)
	}
	if number, ok, err := c.numberOn(ctx, id, node); ok || err != nil {
		return number, err
	}
	number, err := node.AttachDisk(ctx, sim.DiskSpec{
		Image: c.Image(id), Bus: d.Bus, Serial: d.Serial,
		IDs: []sim.DeviceID{{CodeSet: 1, Type: 3, ID: d.naa()}},
	})
	if err != nil {
		return 0, fmt.Errorf("attach disk %q: %w", id, err)
	}
	return number, nil
}

// DetachDisk takes a disk away from a node. A disk that no node has is no error.
func (c *Cloud) DetachDisk(ctx context.Context, id, nodeName string, node sim.DiskController) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, err := c.diskLocked(id)
	if err != nil {
		return err
	}
	if d.AttachedTo != nodeName {
		return nil
	}
	number, ok, err := c.numberOn(ctx, id, node)
	if ok {
		err = node.DetachDisk(ctx, number)
	}
	if err == nil {
		err = c.setAttachedLocked(d, "")
	}
	if err != nil {
		return fmt.Errorf("detach disk %q: %w", id, err)
	}
	return nil
}

// numberOn finds a disk on a node by its image.
func (c *Cloud) numberOn(ctx context.Context, id string, node sim.DiskController) (uint32, bool, error) {
	disks, err := node.Disks(ctx)
	if err != nil {
		return 0, false, err
	}
	for _, d := range disks {
		if d.Spec.Image == c.Image(id) {
			return d.Number, true, nil
		}
	}
	return 0, false, nil
}

func (c *Cloud) setAttachedLocked(d *Disk, nodeName string) error {
	changed := *d
	changed.AttachedTo = nodeName
	if err := c.saveLocked(disksFolder, &changed); err != nil {
		return err
	}
	*d = changed
	return nil
}
