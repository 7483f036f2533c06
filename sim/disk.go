package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/csi-windows/csi-windows/sim/image"
)

// Reasons for which a disk is offline. Source: MSFT_Disk.OfflineReason.
const (
	offlinePolicy    = 1
	offlineCollision = 4
)

// SAN policies. Source: MSFT_StorageSetting.NewDiskPolicy.
const (
	policyOnlineAll       = 1
	policyOfflineShared   = 2
	policyOfflineAll      = 3
	policyOfflineInternal = 4
)

// diskState is what is kept of an attached disk.
type diskState struct {
	Number   uint32   `json:"number"`
	Spec     DiskSpec `json:"spec"`
	Origin   origin   `json:"origin,omitzero"`
	Offline  bool     `json:"offline"`
	ReadOnly bool     `json:"readOnly"`
	Reason   uint16   `json:"reason,omitempty"`
	// SizeBytes is the size the operating system knows; the medium may have grown.
	SizeBytes int64 `json:"sizeBytes"`
	System    bool  `json:"system,omitempty"`
}

// origin is the iSCSI target a disk comes from; zero for a disk of the machine.
type origin struct {
	IQN string `json:"iqn,omitempty"`
	LUN uint8  `json:"lun,omitempty"`
}

// seenDisk is what an installation remembers of a disk it has seen: the SAN
// policy is not applied to it again. Source: VDS_SAN_POLICY.
type seenDisk struct {
	Offline  bool   `json:"offline"`
	ReadOnly bool   `json:"readOnly"`
	Reason   uint16 `json:"reason,omitempty"`
}

// disk is an attached disk.
type disk struct {
	diskState
	img    *image.Image
	layout image.Layout
	parts  []*partition
	bus    uint16
	ids    []DeviceID
	page83 []byte
	place  diskPlace
	// pending counts the looks until the disk has arrived.
	pending int

	path, objectID, objectPath, uniqueID, location string
	idFormat                                       uint16
}

func (d *disk) arrived() bool { return d.pending <= 0 }

// readOnlyNow is the flag, or a medium that refuses writes.
func (d *disk) readOnlyNow() bool { return d.ReadOnly || d.Spec.WriteProtected }

// seenKey names a disk over reboots and moves: by its own identifiers, or else
// by its medium.
func (d *disk) seenKey() string {
	if len(d.page83) == 0 && d.Spec.Serial == "" {
		return "image " + d.Spec.Image
	}
	return fmt.Sprintf("id %x %s", d.page83, d.Spec.Serial)
}

func (n *Node) diskLocked(number uint32) *disk {
	for _, d := range n.disks {
		if d.Number == number && d.arrived() {
			return d
		}
	}
	return nil
}

// AttachDisk implements DiskController.
func (n *Node) AttachDisk(_ context.Context, spec DiskSpec) (uint32, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.off.Load() {
		return 0, errors.New("attach disk: node is switched off")
	}
	d, err := n.attachLocked(spec, origin{})
	if err != nil {
		return 0, fmt.Errorf("attach disk %q: %w", spec.Image, err)
	}
	return d.Number, n.saveLocked()
}

// attachLocked plugs a disk in: it gets the lowest free number and the state
// the SAN policy or an earlier meeting gives it.
func (n *Node) attachLocked(spec DiskSpec, from origin) (*disk, error) {
	if spec.Image == "" {
		return nil, errors.New("image: must not be empty: it is the path of the disk's file")
	}
	var err error
	if spec.Image, err = filepath.Abs(spec.Image); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(n.disks, func(d *disk) bool { return d.Spec.Image == spec.Image }) {
		return nil, errors.New("image is attached already")
	}
	d := &disk{diskState: diskState{Number: n.freeNumberLocked(), Spec: spec, Origin: from}}
	if err := n.openDiskLocked(d); err != nil {
		return nil, err
	}
	d.Spec.SizeBytes = 0 // made once; a medium that is lost later stays lost
	d.SizeBytes = d.img.SizeBytes()
	if seen, ok := n.state.Seen[d.seenKey()]; ok {
		d.Offline, d.ReadOnly, d.Reason = seen.Offline, seen.ReadOnly, seen.Reason
	} else {
		n.applyPolicyLocked(d)
	}
	if d.Offline && d.Reason == offlineCollision {
		d.Offline, d.Reason = false, 0 // judged anew, below
	}
	if !d.Offline && n.collidesLocked(d) {
		d.Offline, d.Reason = true, offlineCollision
	}
	if from.IQN != "" {
		d.pending = n.arriveLater()
	}
	n.disks = append(n.disks, d)
	slices.SortFunc(n.disks, func(a, b *disk) int { return int(a.Number) - int(b.Number) })
	n.rememberLocked(d)
	return d, n.refreshPartsLocked(d)
}

// openDiskLocked opens the medium and reads the disk's identifiers.
func (n *Node) openDiskLocked(d *disk) error {
	spec := &d.Spec
	var err error
	if d.bus, err = busNumber(spec.Bus); err != nil {
		return err
	}
	if spec.Manufacturer == "" && spec.Model == "" {
		spec.Manufacturer, spec.Model = "Msft    ", "Virtual Disk    "
	}
	if d.page83 = spec.Page83; d.page83 == nil {
		d.page83 = buildPage83(spec.IDs)
	}
	d.ids = parsePage83(d.page83)
	if d.img, err = openImage(spec); err != nil {
		return err
	}
	n.nameDiskLocked(d)
	return nil
}

// nameDiskLocked works out the names that depend on the disk's place. The parts
// of a SCSI address have 8 bits, so disks from number 256 on are on other paths.
func (n *Node) nameDiskLocked(d *disk) {
	d.place = diskPlace{port: uint8(d.bus), path: uint8(d.Number >> 8), lun: uint8(d.Number)}
	if d.Origin.IQN != "" {
		d.place = diskPlace{port: 9, path: uint8(d.Number >> 8), target: uint8(d.Number), lun: d.Origin.LUN}
	}
	d.path = devicePath(&d.Spec, d.bus, d.place)
	d.objectID = n.objectID("WSP_Disk", "DI:"+d.path)
	d.objectPath = objectPath("MSFT_Disk", d.objectID)
	d.uniqueID, d.idFormat = uniqueID(d.ids, d.path, n.state.HostName)
	d.location = d.place.location(d.bus)
	if d.Spec.Location != nil {
		d.location = *d.Spec.Location
	}
}

func openImage(spec *DiskSpec) (*image.Image, error) {
	img, err := image.Open(spec.Image)
	if errors.Is(err, fs.ErrNotExist) && spec.SizeBytes > 0 {
		return image.Create(spec.Image, spec.SizeBytes)
	}
	return img, err
}

// objectID is the form of every storage ObjectId: host name inside, quotes and all.
func (n *Node) objectID(class, id string) string {
	return `{1}\\` + n.state.HostName + `\root/Microsoft/Windows/Storage/Providers_v2\` + class +
		`.ObjectId="` + n.state.HostGUID + `:` + id + `"`
}

func (n *Node) freeNumberLocked() uint32 {
	number := uint32(0)
	for _, d := range n.disks { // sorted
		if d.Number == number {
			number++
		}
	}
	return number
}

// applyPolicyLocked treats a disk nobody has seen before. Under OfflineShared
// disks on shared buses arrive offline and read-only. Source: VDS_SAN_POLICY.
func (n *Node) applyPolicyLocked(d *disk) {
	shared := sharedBus(d.bus)
	switch n.state.SANPolicy {
	case policyOfflineShared:
		d.Offline = shared
	case policyOfflineAll:
		d.Offline = true
	case policyOfflineInternal:
		d.Offline = !shared
	}
	if d.Offline {
		d.ReadOnly, d.Reason = true, offlinePolicy
	}
}

// rememberLocked keeps what the installation knows of the disk.
func (n *Node) rememberLocked(d *disk) {
	n.state.Seen[d.seenKey()] = seenDisk{Offline: d.Offline, ReadOnly: d.ReadOnly, Reason: d.Reason}
}

// collidesLocked tells whether an online disk has the same signature or GUID.
// Source: MSFT_Disk.OfflineReason, Collision.
func (n *Node) collidesLocked(d *disk) bool {
	layout, err := d.img.Layout()
	if err != nil || layout.Style == image.StyleRAW {
		return false
	}
	return slices.ContainsFunc(n.disks, func(o *disk) bool {
		return o != d && !o.Offline && o.layout.Style == layout.Style &&
			o.layout.Signature == layout.Signature && o.layout.DiskGUID == layout.DiskGUID
	})
}

// newSignatureLocked gives a disk another signature or GUID. Source:
// MSFT_Disk.Online on a disk that is offline for collision.
func (n *Node) newSignatureLocked(d *disk) error {
	id := uuid.New()
	if d.layout.Style == image.StyleGPT {
		return d.img.SetDiskGUID(id.String())
	}
	return d.img.SetSignature(id.ID())
}

// DetachDisk implements DiskController.
func (n *Node) DetachDisk(_ context.Context, number uint32) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.diskLocked(number)
	if d == nil {
		return fmt.Errorf("detach disk %d: no such disk", number)
	}
	if d.System {
		return fmt.Errorf("detach disk %d: it is the system disk", number)
	}
	n.detachLocked(d, !d.Offline)
	return n.saveLocked()
}

// detachLocked takes a disk away. A pulled disk loses what was not flushed; one
// that was taken offline first has lost nothing.
func (n *Node) detachLocked(d *disk, pulled bool) {
	n.removeVolumesLocked(d, pulled)
	n.closeDeviceHandlesLocked(d)
	if pulled {
		d.img.PowerCut()
	}
	if err := d.img.Close(); err != nil {
		n.log.Error("disk image not closed", "disk", d.Number, "error", err)
	}
	n.disks = slices.DeleteFunc(n.disks, func(o *disk) bool { return o == d })
}

// GrowDisk implements DiskController.
func (n *Node) GrowDisk(_ context.Context, number uint32, sizeBytes int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.diskLocked(number)
	if d == nil {
		return fmt.Errorf("grow disk %d: no such disk", number)
	}
	info, err := os.Stat(d.Spec.Image)
	if err == nil && sizeBytes < info.Size() {
		err = errors.New("a disk does not shrink")
	}
	if err == nil {
		err = os.Truncate(d.Spec.Image, sizeBytes)
	}
	if err != nil {
		return fmt.Errorf("grow disk %d: %w", number, err)
	}
	return nil
}

// CorruptDisk implements DiskController.
func (n *Node) CorruptDisk(_ context.Context, number uint32, offsetBytes int64, data []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.diskLocked(number)
	if d == nil {
		return fmt.Errorf("corrupt disk %d: no such disk", number)
	}
	if _, err := d.img.WriteAt(data, offsetBytes); err != nil {
		return fmt.Errorf("corrupt disk %d: %w", number, err)
	}
	if err := d.img.Flush(); err != nil {
		return fmt.Errorf("corrupt disk %d: %w", number, err)
	}
	return n.refreshPartsLocked(d)
}

// Disks implements DiskController.
func (n *Node) Disks(context.Context) ([]DiskStatus, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	out := make([]DiskStatus, 0, len(n.disks))
	for _, d := range n.disks {
		s := DiskStatus{
			Number: d.Number, Spec: d.Spec, SizeBytes: d.SizeBytes, Offline: d.Offline, ReadOnly: d.readOnlyNow(),
			OfflineReason: d.Reason, Style: [...]string{"RAW", "MBR", "GPT"}[d.layout.Style],
			Partitions: len(d.layout.Entries), System: d.System,
		}
		for _, p := range d.parts {
			if p.vol != nil {
				s.Volumes = append(s.Volumes, p.vol.name)
			}
		}
		out = append(out, s)
	}
	return out, nil
}
