// Package simnode makes scratch disks of the conformance suite on a simulated node,
// in this process or in another one of this machine.
package simnode

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/test/conformance"
)

// reservedType is the type of Microsoft's reserved partition. Source:
// PARTITION_MSFT_RESERVED_GUID.
const reservedType = "e3c9e316-0b5c-4db8-817d-f92df00215ae"

// Scratch makes disks on a simulated node. Its node must reach the folder by the
// same name.
type Scratch struct {
	node sim.DiskController
	dir  string
}

var _ conformance.Scratch = (*Scratch)(nil)

// New makes a Scratch that keeps its images in a folder.
func New(node sim.DiskController, dir string) *Scratch { return &Scratch{node: node, dir: dir} }

// Remote is a simulated node in another process: its files, and scratch disks on it.
type Remote struct {
	conformance.Files
	conformance.Scratch
	client *control.Client
}

// Dial makes a Remote of the node with a control address, see sim/control. Images
// lie in a folder, that for temporary files when dir is empty. It connects when it
// is used.
func Dial(address, dir string) *Remote {
	client := control.NewClient(address)
	return &Remote{Files: client, Scratch: New(client, dir), client: client}
}

// Close drops the connections.
func (r *Remote) Close() { r.client.Close() }

// disk is a disk in an image file.
type disk struct {
	node      sim.DiskController
	spec      sim.DiskSpec
	number    uint32
	known     conformance.Known
	unplugged bool
}

// Create implements conformance.Scratch. The disk is on a shared bus, so it arrives
// offline and read-only, as a cloud's disks do.
func (s *Scratch) Create(ctx context.Context, sizeBytes int64) (conformance.Disk, error) {
	folder, err := os.MkdirTemp(s.dir, "scratch")
	if err == nil {
		folder, err = filepath.Abs(folder) // the node's process may be in another folder
	}
	if err != nil {
		return nil, err
	}
	unit := strings.TrimPrefix(filepath.Base(folder), "scratch")
	lun, _ := strconv.ParseUint(unit, 10, 64)
	id := make([]byte, 8)
	for i := range id {
		id[i] = byte(lun >> (8 * i))
	}
	id[0] |= 0x80 // never an identifier of zeros
	location := fmt.Sprintf("Integrated : Adapter 6 : Port 0 : Target 3 : LUN %d", lun%256)
	d := &disk{node: s.node, spec: sim.DiskSpec{
		Image: filepath.Join(folder, "disk.img"), SizeBytes: sizeBytes, Bus: "SCSI",
		Serial: "  SCRATCH-" + unit + " ", IDs: []sim.DeviceID{{CodeSet: 1, Type: 3, ID: id}}, Location: &location,
	}}
	d.known = conformance.Known{
		IDs:      &host.DiskIDs{Page83: hex.EncodeToString(id), SerialNumber: "SCRATCH-" + unit},
		Location: &host.DiskLocation{Adapter: "6", Bus: "0", Target: "3", LUNID: strconv.FormatUint(lun%256, 10)},
	}
	if err := d.plug(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return d, nil
}

func (d *disk) plug(ctx context.Context) (err error) {
	d.number, err = d.node.AttachDisk(ctx, d.spec)
	d.unplugged = err != nil
	return err
}

// Number implements conformance.Disk.
func (d *disk) Number() uint32 { return d.number }

// Known implements conformance.Disk.
func (d *disk) Known() conformance.Known { return d.known }

// status is the disk as the node has it, or an error when its number is another's.
func (d *disk) status(ctx context.Context) (sim.DiskStatus, error) {
	disks, err := d.node.Disks(ctx)
	if err != nil {
		return sim.DiskStatus{}, err
	}
	for _, other := range disks {
		if other.Number == d.number && other.Spec.Image == d.spec.Image && !other.System {
			return other, nil
		}
	}
	return sim.DiskStatus{}, fmt.Errorf("disk %d is not the one in %s", d.number, d.spec.Image)
}

// Look implements conformance.Disk. The table is read from the image, the rest is
// what the node says.
func (d *disk) Look(ctx context.Context) (conformance.DiskState, error) {
	status, err := d.status(ctx)
	if err != nil {
		return conformance.DiskState{}, err
	}
	img, err := image.Open(d.spec.Image)
	if err != nil {
		return conformance.DiskState{}, err
	}
	defer func() { _ = img.Close() }() // nothing was written
	layout, err := img.Layout()
	if err != nil {
		return conformance.DiskState{}, err
	}
	state := conformance.DiskState{
		Number: status.Number, SizeBytes: img.SizeBytes(), Offline: status.Offline, ReadOnly: status.ReadOnly,
		Style: host.PartitionStyle(status.Style),
	}
	for _, e := range layout.Entries {
		if !strings.Contains(strings.ToLower(e.GPTType), reservedType) {
			state.Partitions = append(state.Partitions, conformance.Partition{ID: e.GUID, OffsetBytes: e.OffsetBytes, SizeBytes: e.SizeBytes})
		}
	}
	return state, nil
}

// Holds implements conformance.Disk.
func (d *disk) Holds(ctx context.Context, volumeID string) (bool, error) {
	status, err := d.status(ctx)
	for _, id := range status.Volumes {
		if strings.EqualFold(strings.TrimSuffix(id, `\`), strings.TrimSuffix(volumeID, `\`)) {
			return true, nil
		}
	}
	return false, err
}

// WriteRaw implements conformance.Disk.
func (d *disk) WriteRaw(ctx context.Context, offsetBytes int64, data []byte) error {
	if _, err := d.status(ctx); err != nil {
		return err
	}
	return d.node.CorruptDisk(ctx, d.number, offsetBytes, data)
}

// Grow implements conformance.Disk.
func (d *disk) Grow(ctx context.Context, sizeBytes int64) error {
	if _, err := d.status(ctx); err != nil {
		return err
	}
	return d.node.GrowDisk(ctx, d.number, sizeBytes)
}

// Replug implements conformance.Disk. What was not flushed is lost.
func (d *disk) Replug(ctx context.Context) error {
	if err := d.unplug(ctx); err != nil {
		return err
	}
	return d.plug(ctx)
}

func (d *disk) unplug(ctx context.Context) error {
	if d.unplugged {
		return nil
	}
	if _, err := d.status(ctx); err != nil {
		return err
	}
	err := d.node.DetachDisk(ctx, d.number)
	d.unplugged = err == nil
	return err
}

// Remove implements conformance.Disk.
func (d *disk) Remove(ctx context.Context) error {
	if err := d.unplug(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Dir(d.spec.Image)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
