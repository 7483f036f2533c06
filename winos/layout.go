package winos

import (
	"fmt"
	"strconv"

	"github.com/csi-windows/csi-windows/winos/layout"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// Where the members of the structures below lie is in package layout. Every
// decoder takes the bytes that came back, which may be fewer than the structure
// has; that is an error, never a panic.

// errLayout is an answer of the operating system that cannot be what its
// documentation says.
type errLayout struct {
	structure string
	problem   string
}

func (e *errLayout) Error() string { return e.structure + ": " + e.problem }

func layoutError(structure, format string, args ...any) error {
	return &errLayout{structure: structure, problem: fmt.Sprintf(format, args...)}
}

// atLeast fails when a buffer is shorter than the fixed part of its structure.
func atLeast(b []byte, structure string, sizeBytes int) error {
	if len(b) < sizeBytes {
		return layoutError(structure, "%d bytes where %d are needed", len(b), sizeBytes)
	}
	return nil
}

// encodePropertyQuery is STORAGE_PROPERTY_QUERY for a standard query.
func encodePropertyQuery(property uint32) []byte {
	b := make([]byte, layout.PropertyQueryBytes)
	layout.PropertyQueryPropertyID.Put(b, property)
	return b
}

// descriptorSize reads the Size of a STORAGE_DESCRIPTOR_HEADER: the bytes that
// the whole descriptor needs.
func descriptorSize(b []byte) (uint32, error) {
	if err := atLeast(b, "STORAGE_DESCRIPTOR_HEADER", layout.DescriptorHeaderBytes); err != nil {
		return 0, err
	}
	return layout.DescriptorHeaderSize.Get(b), nil
}

// deviceNumber is STORAGE_DEVICE_NUMBER.
type deviceNumber struct {
	deviceType uint32
	disk       uint32
	partition  uint32 // 0 for a whole disk
}

func decodeDeviceNumber(b []byte) (deviceNumber, error) {
	if err := atLeast(b, "STORAGE_DEVICE_NUMBER", layout.DeviceNumberBytes); err != nil {
		return deviceNumber{}, err
	}
	return deviceNumber{
		deviceType: layout.DeviceNumberDeviceType.Get(b),
		disk:       layout.DeviceNumberDeviceNumber.Get(b),
		partition:  layout.DeviceNumberPartitionNumber.Get(b),
	}, nil
}

// decodeLength is GET_LENGTH_INFORMATION: the size of a disk or volume in bytes.
func decodeLength(b []byte) (int64, error) {
	if err := atLeast(b, "GET_LENGTH_INFORMATION", layout.LengthInformationBytes); err != nil {
		return 0, err
	}
	length := int64(layout.LengthInformationLength.Get(b))
	if length < 0 {
		return 0, layoutError("GET_LENGTH_INFORMATION", "negative length")
	}
	return length, nil
}

// decodeDiskAttributes is GET_DISK_ATTRIBUTES: the flags of a disk.
func decodeDiskAttributes(b []byte) (uint64, error) {
	if err := atLeast(b, "GET_DISK_ATTRIBUTES", layout.GetDiskAttributesBytes); err != nil {
		return 0, err
	}
	return layout.GetDiskAttributesAttributes.Get(b), nil
}

// encodeDiskAttributes is SET_DISK_ATTRIBUTES that sets the attributes of the
// mask to the given ones, and keeps them over a restart.
func encodeDiskAttributes(attributes, mask uint64) []byte {
	b := make([]byte, layout.SetDiskAttributesBytes)
	layout.SetDiskAttributesVersion.Put(b, layout.SetDiskAttributesBytes)
	layout.SetDiskAttributesPersist.Put(b, 1)
	layout.SetDiskAttributesAttributes.Put(b, attributes)
	layout.SetDiskAttributesAttributesMask.Put(b, mask)
	return b
}

// extent is DISK_EXTENT: where a volume lies.
type extent struct {
	disk        uint32
	offsetBytes int64
	lengthBytes int64
}

// decodeExtents is VOLUME_DISK_EXTENTS. count is the number of extents that the
// volume has; fewer come back when the buffer was too small (ERROR_MORE_DATA).
func decodeExtents(b []byte) (extents []extent, count uint32, err error) {
	if err := atLeast(b, "VOLUME_DISK_EXTENTS", layout.VolumeDiskExtentsExtents); err != nil {
		return nil, 0, err
	}
	count = layout.VolumeDiskExtentsNumberOfDiskExtents.Get(b)
	rest := b[layout.VolumeDiskExtentsExtents:]
	for len(rest) >= layout.DiskExtentBytes && uint32(len(extents)) < count {
		extents = append(extents, extent{
			disk:        layout.DiskExtentDiskNumber.Get(rest),
			offsetBytes: int64(layout.DiskExtentStartingOffset.Get(rest)),
			lengthBytes: int64(layout.DiskExtentExtentLength.Get(rest)),
		})
		rest = rest[layout.DiskExtentBytes:]
	}
	return extents, count, nil
}

// diskPath is the device path of a disk.
func diskPath(number uint32) string {
	return `\\.\PhysicalDrive` + strconv.FormatUint(uint64(number), 10)
}

// query handles need no access right, and must not disturb others.
var queryOnly = win32.Open{Access: win32.AccessNone, Share: win32.ShareRead | win32.ShareWrite}
