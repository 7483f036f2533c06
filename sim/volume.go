package sim

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/sim/tree"
)

// volume is a volume device on a partition. Its files are a real folder, which
// the serial number in the file system's boot sector names.
type volume struct {
	part *partition
	name string // `\\?\Volume{guid}\`
	fs   image.FileSystem
	// pending counts the looks until the volume has arrived; see tickLocked.
	pending int
	// mounted is what the name space was told of the volume.
	mounted tree.Volume

	objectID, objectPath string
}

func (v *volume) arrived() bool { return v.pending <= 0 }

func (v *volume) disk() *disk { return v.part.disk }

func (v *volume) readOnly() bool {
	return v.disk().readOnlyNow() || v.part.GPTAttributes&gptReadOnly != 0
}

// arriveLater is the number of looks that a new device takes, and counts it.
func (n *Node) arriveLater() int {
	polls := max(n.config.ArrivalPolls, 0)
	if n.restoring {
		polls = 0
	}
	if polls > 0 {
		n.arriving.Add(1)
	}
	return polls
}

// tickLocked lets time pass for devices on their way: each look at the storage
// of the node is one tick. Plug and play is asynchronous on Windows too.
func (n *Node) tickLocked() {
	if n.arriving.Load() == 0 {
		return
	}
	waiting := int32(0)
	for _, d := range n.disks {
		if d.pending > 0 {
			d.pending--
		}
		if !d.arrived() {
			waiting++
			continue
		}
		for _, p := range d.parts {
			if p.vol == nil || p.vol.arrived() {
				continue
			}
			if p.vol.pending--; p.vol.arrived() {
				n.arriveLocked(p.vol)
			} else {
				waiting++
			}
		}
	}
	n.arriving.Store(waiting)
}

// look ticks, when something is on its way.
func (n *Node) look() {
	if n.arriving.Load() == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tickLocked()
}

// volumeName is the GUID path of a partition's volume: the partition's GUID, or
// on MBR disk signature and offset. A name that another disk's volume has
// already, as on a copy of a disk, is replaced by one of its own.
func (n *Node) volumeNameLocked(p *partition) string {
	guid := strings.Trim(p.GUID, "{}")
	if p.disk.layout.Style == image.StyleMBR {
		guid = mbrVolumeGUID(p.disk.layout.Signature, uint64(p.OffsetBytes))
	}
	name := `\\?\Volume{` + guid + `}\`
	for _, other := range n.disks {
		if other != p.disk && slices.ContainsFunc(other.parts, func(o *partition) bool { return o.vol != nil && o.vol.name == name }) {
			own := uuid.NewSHA1(uuid.NameSpaceOID, []byte(p.disk.path+p.disk.layout.DiskGUID+name))
			return `\\?\Volume{` + own.String() + `}\`
		}
	}
	return name
}

// newVolumeLocked starts the arrival of a volume.
func (n *Node) newVolumeLocked(p *partition, name string) *volume {
	v := &volume{part: p, name: name, pending: n.arriveLater()}
	if p.disk.System {
		v.pending = 0
	}
	v.objectID = n.objectID("WSP_Volume", "VO:"+name)
	v.objectPath = objectPath("MSFT_Volume", v.objectID)
	v.fs = image.Detect(p.disk.img, p.OffsetBytes, p.SizeBytes)
	if v.arrived() {
		n.arriveLocked(v)
	}
	return v
}

// arriveLocked makes a volume known that is new to the mount manager, which may
// give it a letter. Source: mount manager, NoAutoMount; MSFT_Partition.NoDefaultDriveLetter.
func (n *Node) arriveLocked(v *volume) {
	n.mountLocked(v)
	if !n.config.AutomountLetters || n.restoring || v.disk().System ||
		v.part.GPTAttributes&gptNoDriveLetter != 0 || n.letterLocked(v) != 0 {
		return
	}
	if letter := n.freeLetterLocked(); letter != 0 {
		n.files.SetDrive(letter, v.name)
	}
}

// refreshVolumeLocked looks again at a volume whose disk, partition or boot
// sector may have changed.
func (n *Node) refreshVolumeLocked(v *volume) {
	v.fs = image.Detect(v.disk().img, v.part.OffsetBytes, v.part.SizeBytes)
	if v.arrived() {
		n.mountLocked(v)
	}
}

// mountLocked tells the name space of a volume, when there is news.
func (n *Node) mountLocked(v *volume) {
	t := tree.Volume{
		ID: v.name, Folder: n.contentLocked(v), Serial: v.fs.Serial, ReadOnly: v.readOnly(),
		HostsMountPoints: v.fs.Name == image.NTFS, ShortNames: v.fs.Name == image.NTFS && v.disk().System,
	}
	if t == v.mounted {
		return
	}
	if err := n.prepareContent(v, t.Folder); err != nil {
		n.log.Error("volume content not ready", "volume", v.name, "error", err)
		t.Folder = ""
	}
	if err := n.files.AttachVolume(t); err != nil {
		n.log.Error("volume not mounted", "volume", v.name, "error", err)
		return
	}
	v.mounted = t
}

// contentLocked is the folder with a volume's files; empty without a file system.
func (n *Node) contentLocked(v *volume) string {
	if v.fs.Name == "" {
		return ""
	}
	if v.disk().System {
		for letter, name := range n.state.SystemVolumes {
			if name == v.name {
				return n.driveFolder(letter)
			}
		}
	}
	return filepath.Join(contentFolder(v), "live")
}

// contentFolder lies beside the image, so that it moves with the disk, and is
// named by the file system's serial number, so that a format starts empty.
func contentFolder(v *volume) string {
	return filepath.Join(v.disk().Spec.Image+contentSuffix, fmt.Sprintf("%016x", v.fs.Serial))
}

// removeVolumesLocked takes the volumes of a disk away: orderly, with a flush,
// or pulled.
func (n *Node) removeVolumesLocked(d *disk, pulled bool) {
	for _, p := range d.parts {
		if p.vol != nil {
			n.removeVolumeLocked(p.vol, pulled)
			p.vol = nil
		}
	}
}

func (n *Node) removeVolumeLocked(v *volume, pulled bool) {
	n.files.DetachVolume(v.name)
	v.mounted = tree.Volume{}
	n.closeVolumeHandlesLocked(v)
	if v.fs.Name == "" || v.disk().System {
		return
	}
	settle := checkpoint
	if pulled {
		settle = restore
	}
	if err := settle(contentFolder(v)); err != nil {
		n.log.Error("volume content not settled", "volume", v.name, "error", err)
	}
}

// flushLocked writes everything cached for the volume to its disk. Source:
// FlushFileBuffers on a volume handle, MSFT_Volume.Flush.
func (n *Node) flushLocked(v *volume) error {
	if v.fs.Name != "" && !v.disk().System {
		if err := checkpoint(contentFolder(v)); err != nil {
			return err
		}
	}
	return v.disk().img.Flush()
}

// volumesLocked lists the volumes that have arrived.
func (n *Node) volumesLocked() []*volume {
	var out []*volume
	for _, d := range n.disks {
		if !d.arrived() {
			continue
		}
		for _, p := range d.parts {
			if p.vol != nil && p.vol.arrived() {
				out = append(out, p.vol)
			}
		}
	}
	return out
}

// volumeLocked finds a volume by its name, with or without the final backslash.
func (n *Node) volumeLocked(name string) *volume {
	name = strings.TrimSuffix(name, `\`)
	for _, v := range n.volumesLocked() {
		if strings.EqualFold(strings.TrimSuffix(v.name, `\`), name) {
			return v
		}
	}
	return nil
}

// freeBytes is what the file system has left: its size without what NTFS keeps
// for itself and without the clusters of the files.
func (n *Node) freeBytesLocked(v *volume) int64 {
	if v.fs.Name == "" {
		return 0
	}
	if v.disk().System {
		return v.fs.TotalBytes / 10 * 6 // a real folder of any size stands for its files
	}
	own := min(8<<20+v.fs.TotalBytes/500, v.fs.TotalBytes/10)
	return max(v.fs.TotalBytes-own-usedBytes(v.mounted.Folder, int64(v.fs.ClusterBytes)), 0)
}
