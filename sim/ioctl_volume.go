package sim

import (
	"encoding/binary"

	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// onVolume refuses a volume's code on a disk.
func onVolume(d *device) uint32 {
	if d.vol == nil {
		return win32.ErrInvalidFunction
	}
	return 0
}

// diskExtents is VOLUME_DISK_EXTENTS with the one extent of a basic volume.
func diskExtents(_ *Node, d *device, _, out []byte) (int, uint32) {
	if code := onVolume(d); code != 0 {
		return 0, code
	}
	b := make([]byte, 32)
	le := binary.LittleEndian
	le.PutUint32(b, 1)
	le.PutUint32(b[8:], d.disk.Number)
	le.PutUint64(b[16:], uint64(d.vol.part.OffsetBytes))
	le.PutUint64(b[24:], uint64(d.vol.part.SizeBytes))
	return whole(out, b)
}

// gptAttributes is VOLUME_GET_GPT_ATTRIBUTES_INFORMATION.
func gptAttributes(_ *Node, d *device, _, out []byte) (int, uint32) {
	if code := onVolume(d); code != 0 {
		return 0, code
	}
	return whole(out, binary.LittleEndian.AppendUint64(nil, d.vol.part.GPTAttributes))
}

// ntfsVolumeData is NTFS_VOLUME_DATA_BUFFER; other file systems do not know the code.
func ntfsVolumeData(n *Node, d *device, _, out []byte) (int, uint32) {
	if d.vol == nil || d.vol.fs.Name != image.NTFS {
		return 0, win32.ErrInvalidFunction
	}
	const recordBytes, mftCluster = 1024, 786432
	fs := d.vol.fs
	cluster := int64(fs.ClusterBytes)
	b := make([]byte, 96)
	le := binary.LittleEndian
	le.PutUint64(b, fs.Serial)
	le.PutUint64(b[8:], uint64(fs.TotalBytes/image.SectorBytes))
	le.PutUint64(b[16:], uint64(fs.TotalBytes/cluster))
	le.PutUint64(b[24:], uint64(n.freeBytesLocked(d.vol)/cluster))
	le.PutUint32(b[40:], image.SectorBytes)
	le.PutUint32(b[44:], fs.ClusterBytes)
	le.PutUint32(b[48:], recordBytes)
	le.PutUint64(b[64:], mftCluster)
	le.PutUint64(b[72:], 2)
	return whole(out, b)
}

// isVolumeMounted succeeds when a file system is mounted. Source: FSCTL_IS_VOLUME_MOUNTED.
func isVolumeMounted(_ *Node, d *device, _, _ []byte) (int, uint32) {
	switch {
	case d.vol == nil:
		return 0, win32.ErrInvalidFunction
	case d.vol.fs.Name == "":
		return 0, win32.ErrUnrecognizedVolume
	}
	return 0, 0
}

// lockVolume fails while any other handle is open. Source: FSCTL_LOCK_VOLUME.
func lockVolume(n *Node, d *device, _, _ []byte) (int, uint32) {
	if code := onVolume(d); code != 0 {
		return 0, code
	}
	for _, other := range n.devices {
		if other != d && other.vol == d.vol && !other.gone {
			return 0, win32.ErrAccessDenied
		}
	}
	if n.files.VolumeHandles(d.vol.name) > 0 {
		return 0, win32.ErrAccessDenied
	}
	return 0, 0
}

// dismountVolume writes what is cached; the next open mounts again. Source:
// FSCTL_DISMOUNT_VOLUME.
func dismountVolume(n *Node, d *device, _, _ []byte) (int, uint32) {
	if code := onVolume(d); code != 0 {
		return 0, code
	}
	if err := n.flushLocked(d.vol); err != nil {
		return 0, win32.ErrIODevice
	}
	return 0, 0
}
