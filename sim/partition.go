package sim

import (
	"strings"

	"github.com/csi-windows/csi-windows/sim/image"
)

// GPT attribute bits. Source: winioctl.h, GPT_BASIC_DATA_ATTRIBUTE_*.
const (
	gptReadOnly      = 1 << 60
	gptHidden        = 1 << 62
	gptNoDriveLetter = 1 << 63
)

// partition is one entry of a disk's table as the operating system knows it.
type partition struct {
	image.Entry
	disk *disk
	vol  *volume // nil without a volume device
	// offline is set while MSFT_Partition.Offline is in force.
	offline bool

	objectID, objectPath, uniqueID string
}

// hasVolume reports whether Windows makes a volume device for the entry: basic
// data on GPT, the FAT and NTFS types on MBR, unless hidden. Source:
// MSFT_Partition.GptType, MSFT_Disk.CreatePartition IsHidden.
func (p *partition) hasVolume() bool {
	if p.disk.layout.Style == image.StyleGPT {
		return p.GPTType == image.GPTTypeBasicData && p.GPTAttributes&gptHidden == 0
	}
	switch p.MBRType {
	case image.MBRTypeFAT12, image.MBRTypeFAT16, image.MBRTypeHuge, image.MBRTypeIFS, 0x0B, image.MBRTypeFAT32, 0x0E:
		return true
	}
	return false
}

// isData reports whether Clear needs RemoveData for it; metadata partitions do
// not. Source: MSFT_Disk.Clear.
func (p *partition) isData() bool {
	return !p.isReserved() && !p.isOEM()
}

func (p *partition) isReserved() bool { return p.GPTType == image.GPTTypeReserved }

func (p *partition) isOEM() bool {
	return p.GPTType == image.GPTTypeEFI || p.GPTType == image.GPTTypeRecovery
}

// refreshPartsLocked reads the partition table again and brings the volumes in
// line with it: new ones arrive, those that are gone go.
func (n *Node) refreshPartsLocked(d *disk) error {
	layout, err := d.img.Layout()
	if err != nil {
		return err
	}
	d.layout = layout
	old := map[int64]*volume{}
	for _, p := range d.parts {
		if p.vol != nil {
			old[p.OffsetBytes] = p.vol
		}
	}
	d.parts = nil
	for _, e := range layout.Entries {
		p := n.newPartition(d, e)
		if p.hasVolume() && !d.Offline {
			name := n.volumeNameLocked(p)
			p.offline = n.state.OfflinePartitions[name]
			if v := old[e.OffsetBytes]; v != nil && v.name == name && !p.offline {
				delete(old, e.OffsetBytes)
				p.vol, v.part = v, p
				n.refreshVolumeLocked(v)
			} else if !p.offline {
				p.vol = n.newVolumeLocked(p, name)
			}
		}
		d.parts = append(d.parts, p)
	}
	for _, v := range old {
		n.removeVolumeLocked(v, false)
	}
	return nil
}

func (n *Node) newPartition(d *disk, e image.Entry) *partition {
	p := &partition{Entry: e, disk: d}
	place := offsetGUID(uint64(e.OffsetBytes))
	p.objectID = n.objectID("WSP_Partition", "PR:"+place+d.path)
	p.objectPath = objectPath("MSFT_Partition", p.objectID)
	p.uniqueID = place + d.uniqueID
	return p
}

// partitionsLocked lists the partitions of every disk that has arrived.
func (n *Node) partitionsLocked() []*partition {
	var out []*partition
	for _, d := range n.disks {
		if d.arrived() {
			out = append(out, d.parts...)
		}
	}
	return out
}

// letter is the partition's drive letter, 0 for none.
func (n *Node) letterLocked(v *volume) byte {
	for _, path := range n.accessPathsLocked(v) {
		if len(path) == 3 && strings.HasSuffix(path, `:\`) {
			return path[0]
		}
	}
	return 0
}

// accessPaths are a partition's drive root, mounted folders and GUID path.
// Source: MSFT_Partition.AccessPaths.
func (n *Node) partitionPathsLocked(p *partition) []string {
	if p.vol == nil || !p.vol.arrived() {
		return nil
	}
	return append(n.accessPathsLocked(p.vol), p.vol.name)
}
