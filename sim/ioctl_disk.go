package sim

import (
	"encoding/binary"
	"unicode/utf16"

	"github.com/google/uuid"

	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// Win32 PARTITION_STYLE, which is not that of MSFT_Disk. Source: winioctl.h.
const (
	win32StyleMBR = 0
	win32StyleGPT = 1
	win32StyleRAW = 2
)

// queryProperty is IOCTL_STORAGE_QUERY_PROPERTY: the descriptor is cut at the
// end of the buffer, which must hold its header at least.
func queryProperty(_ *Node, d *device, in, out []byte) (int, uint32) {
	if len(in) < 8 {
		return 0, win32.ErrInvalidParameter
	}
	var data []byte
	switch binary.LittleEndian.Uint32(in) {
	case win32.StorageDeviceProperty:
		data = deviceDescriptor(d.disk)
	case win32.StorageAdapterProperty:
		data = adapterDescriptor(d.disk)
	case win32.StorageDeviceIDProperty:
		if data = d.disk.page83; len(data) == 0 {
			return 0, win32.ErrInvalidFunction
		}
	default:
		return 0, win32.ErrNotSupported
	}
	const existsQuery = 1
	switch kind := binary.LittleEndian.Uint32(in[4:]); {
	case kind == existsQuery:
		return 0, 0
	case kind != 0:
		return 0, win32.ErrNotSupported
	case len(out) < 8:
		return 0, win32.ErrInsufficientBuffer
	}
	return copy(out, data), 0
}

// deviceDescriptor is STORAGE_DEVICE_DESCRIPTOR: 40 bytes, then the texts.
func deviceDescriptor(d *disk) []byte {
	var fixed [40]byte
	b := append([]byte(nil), fixed[:]...)
	le := binary.LittleEndian
	text := func(at int, s string) {
		if s == "" {
			return // offset 0: absent
		}
		le.PutUint32(b[at:], uint32(len(b)))
		b = append(append(b, s...), 0)
	}
	text(12, d.Spec.Manufacturer)
	text(16, d.Spec.Model)
	text(20, "1.0 ")
	text(24, d.Spec.Serial)
	le.PutUint32(b, 40)
	le.PutUint32(b[4:], uint32(len(b)))
	le.PutUint32(b[28:], uint32(d.bus))
	return b
}

// adapterDescriptor is STORAGE_ADAPTER_DESCRIPTOR.
func adapterDescriptor(d *disk) []byte {
	b := make([]byte, 32)
	le := binary.LittleEndian
	le.PutUint32(b, 32)
	le.PutUint32(b[4:], 32)
	le.PutUint32(b[8:], 1<<20)
	le.PutUint32(b[12:], 257)
	b[24] = byte(d.bus)
	return b
}

// driveGeometry is DISK_GEOMETRY_EX.
func driveGeometry(_ *Node, d *device, _, out []byte) (int, uint32) {
	const heads, sectors, fixedMedia = 255, 63, 12
	b := make([]byte, 40)
	le := binary.LittleEndian
	le.PutUint64(b, uint64(d.disk.SizeBytes/image.SectorBytes/heads/sectors))
	le.PutUint32(b[8:], fixedMedia)
	le.PutUint32(b[12:], heads)
	le.PutUint32(b[16:], sectors)
	le.PutUint32(b[20:], image.SectorBytes)
	le.PutUint64(b[24:], uint64(d.disk.SizeBytes))
	return whole(out, b)
}

// driveLayout is DRIVE_LAYOUT_INFORMATION_EX: 48 bytes and 144 for each
// partition. MBR entries come in fours, empty ones included. There is no way to
// ask for the size.
func driveLayout(_ *Node, d *device, _, out []byte) (int, uint32) {
	layout := d.disk.layout
	var header [48]byte
	b := append([]byte(nil), header[:]...)
	le := binary.LittleEndian
	entries := len(layout.Entries)
	switch layout.Style {
	case image.StyleGPT:
		le.PutUint32(b, win32StyleGPT)
		copy(b[8:], guidBytes(layout.DiskGUID))
		le.PutUint64(b[24:], uint64(layout.FirstUsableBytes))
		le.PutUint64(b[32:], uint64(layout.EndUsableBytes-layout.FirstUsableBytes))
		le.PutUint32(b[40:], 128)
	case image.StyleMBR:
		le.PutUint32(b, win32StyleMBR)
		le.PutUint32(b[8:], layout.Signature)
		entries = (entries + 3) / 4 * 4
	default:
		le.PutUint32(b, win32StyleRAW)
	}
	le.PutUint32(b[4:], uint32(entries))
	for i := range entries {
		entry := make([]byte, 144)
		le.PutUint32(entry, le.Uint32(b))
		if i < len(layout.Entries) {
			putPartition(entry, layout.Style, layout.Entries[i])
		}
		b = append(b, entry...)
	}
	return whole(out, b)
}

// putPartition lays out PARTITION_INFORMATION_EX.
func putPartition(b []byte, style image.Style, e image.Entry) {
	le := binary.LittleEndian
	le.PutUint64(b[8:], uint64(e.OffsetBytes))
	le.PutUint64(b[16:], uint64(e.SizeBytes))
	le.PutUint32(b[24:], e.Number)
	if style == image.StyleMBR {
		b[32] = e.MBRType
		b[33] = boolByte(e.Active)
		b[34] = 1
		le.PutUint32(b[36:], uint32(e.OffsetBytes/image.SectorBytes))
		return
	}
	copy(b[32:], guidBytes(e.GPTType))
	copy(b[48:], guidBytes(e.GUID))
	le.PutUint64(b[64:], e.GPTAttributes)
	for i, unit := range utf16.Encode([]rune(e.Name)) {
		if i < 36 {
			le.PutUint16(b[72+2*i:], unit)
		}
	}
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// guidBytes is a GUID as Windows lays it out in memory.
func guidBytes(text string) []byte {
	u, err := uuid.Parse(text)
	if err != nil {
		return make([]byte, 16)
	}
	b := make([]byte, 0, 16)
	b = binary.LittleEndian.AppendUint32(b, binary.BigEndian.Uint32(u[:]))
	b = binary.LittleEndian.AppendUint16(b, binary.BigEndian.Uint16(u[4:]))
	b = binary.LittleEndian.AppendUint16(b, binary.BigEndian.Uint16(u[6:]))
	return append(b, u[8:]...)
}

// getDiskAttributes is GET_DISK_ATTRIBUTES.
func getDiskAttributes(_ *Node, d *device, _, out []byte) (int, uint32) {
	b := make([]byte, 16)
	binary.LittleEndian.PutUint32(b, 16)
	attributes := uint64(0)
	if d.disk.Offline {
		attributes |= win32.DiskAttributeOffline
	}
	if d.disk.readOnlyNow() {
		attributes |= win32.DiskAttributeReadOnly
	}
	binary.LittleEndian.PutUint64(b[8:], attributes)
	return whole(out, b)
}

// setDiskAttributesIoctl is SET_DISK_ATTRIBUTES: only the bits in the mask
// change; Persist keeps them over a restart. It works on a RAW disk too.
func setDiskAttributesIoctl(n *Node, d *device, in, _ []byte) (int, uint32) {
	le := binary.LittleEndian
	const size, known = 40, win32.DiskAttributeOffline | win32.DiskAttributeReadOnly
	if d.vol != nil || len(in) < size || le.Uint32(in) != size || le.Uint64(in[16:])&^known != 0 {
		return 0, win32.ErrInvalidParameter
	}
	persist, bits, mask := in[4] != 0, le.Uint64(in[8:]), le.Uint64(in[16:])
	if d.disk.System && bits&mask != 0 {
		return 0, win32.ErrAccessDenied
	}
	var err error
	if mask&win32.DiskAttributeReadOnly != 0 {
		err = n.setReadOnlyLocked(d.disk, bits&win32.DiskAttributeReadOnly != 0, persist)
	}
	if err == nil && mask&win32.DiskAttributeOffline != 0 {
		err = n.setOnlineLocked(d.disk, bits&win32.DiskAttributeOffline == 0, persist)
	}
	if err == nil {
		err = n.saveLocked()
	}
	if err != nil {
		n.log.Error("disk attributes not set", "disk", d.disk.Number, "error", err)
		return 0, win32.ErrIODevice
	}
	return 0, 0
}
