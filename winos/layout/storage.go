package layout

// What storage devices say of themselves. Source: winioctl.h.
const (
	PropertyQueryBytes          = 12 // sizeof(STORAGE_PROPERTY_QUERY)
	PropertyQueryPropertyID U32 = 0  // STORAGE_PROPERTY_QUERY.PropertyId

	DescriptorHeaderBytes     = 8 // sizeof(STORAGE_DESCRIPTOR_HEADER)
	DescriptorHeaderSize  U32 = 4 // STORAGE_DESCRIPTOR_HEADER.Size

	// The members of a device descriptor that the product needs end before the
	// data; its size by the header counts the first byte of that, and padding.
	DeviceDescriptorData                   = 36 // STORAGE_DEVICE_DESCRIPTOR.RawDeviceProperties
	DeviceDescriptorSerialNumberOffset U32 = 24 // STORAGE_DEVICE_DESCRIPTOR.SerialNumberOffset

	// The identifiers begin inside of what the header takes for the size.
	DeviceIDDescriptorSize                U32 = 4  // STORAGE_DEVICE_ID_DESCRIPTOR.Size
	DeviceIDDescriptorNumberOfIdentifiers U32 = 8  // STORAGE_DEVICE_ID_DESCRIPTOR.NumberOfIdentifiers
	DeviceIDDescriptorIdentifiers             = 12 // STORAGE_DEVICE_ID_DESCRIPTOR.Identifiers

	IdentifierCodeSet        U32 = 0  // STORAGE_IDENTIFIER.CodeSet
	IdentifierType           U32 = 4  // STORAGE_IDENTIFIER.Type
	IdentifierIdentifierSize U16 = 8  // STORAGE_IDENTIFIER.IdentifierSize
	IdentifierNextOffset     U16 = 10 // STORAGE_IDENTIFIER.NextOffset
	IdentifierAssociation    U32 = 12 // STORAGE_IDENTIFIER.Association
	IdentifierIdentifier         = 16 // STORAGE_IDENTIFIER.Identifier

	DeviceNumberBytes               = 12 // sizeof(STORAGE_DEVICE_NUMBER)
	DeviceNumberDeviceType      U32 = 0  // STORAGE_DEVICE_NUMBER.DeviceType
	DeviceNumberDeviceNumber    U32 = 4  // STORAGE_DEVICE_NUMBER.DeviceNumber
	DeviceNumberPartitionNumber U32 = 8  // STORAGE_DEVICE_NUMBER.PartitionNumber
)

// Disks and where volumes lie on them. Source: winioctl.h; the disk attributes
// ntdddisk.h of the Windows SDK.
const (
	LengthInformationBytes      = 8 // sizeof(GET_LENGTH_INFORMATION)
	LengthInformationLength U64 = 0 // GET_LENGTH_INFORMATION.Length

	GetDiskAttributesBytes          = 16 // sizeof(GET_DISK_ATTRIBUTES)
	GetDiskAttributesAttributes U64 = 8  // GET_DISK_ATTRIBUTES.Attributes

	SetDiskAttributesBytes              = 40 // sizeof(SET_DISK_ATTRIBUTES)
	SetDiskAttributesVersion        U32 = 0  // SET_DISK_ATTRIBUTES.Version
	SetDiskAttributesPersist        U8  = 4  // SET_DISK_ATTRIBUTES.Persist
	SetDiskAttributesAttributes     U64 = 8  // SET_DISK_ATTRIBUTES.Attributes
	SetDiskAttributesAttributesMask U64 = 16 // SET_DISK_ATTRIBUTES.AttributesMask

	VolumeDiskExtentsBytes                   = 32 // sizeof(VOLUME_DISK_EXTENTS)
	VolumeDiskExtentsNumberOfDiskExtents U32 = 0  // VOLUME_DISK_EXTENTS.NumberOfDiskExtents
	VolumeDiskExtentsExtents                 = 8  // VOLUME_DISK_EXTENTS.Extents

	DiskExtentBytes              = 24 // sizeof(DISK_EXTENT)
	DiskExtentDiskNumber     U32 = 0  // DISK_EXTENT.DiskNumber
	DiskExtentStartingOffset U64 = 8  // DISK_EXTENT.StartingOffset
	DiskExtentExtentLength   U64 = 16 // DISK_EXTENT.ExtentLength

	DriveLayoutPartitionStyle U32 = 0  // DRIVE_LAYOUT_INFORMATION_EX.PartitionStyle
	DriveLayoutPartitionCount U32 = 4  // DRIVE_LAYOUT_INFORMATION_EX.PartitionCount
	DriveLayoutPartitionEntry     = 48 // DRIVE_LAYOUT_INFORMATION_EX.PartitionEntry

	PartitionBytes                = 144 // sizeof(PARTITION_INFORMATION_EX)
	PartitionStartingOffset  U64  = 8   // PARTITION_INFORMATION_EX.StartingOffset
	PartitionPartitionLength U64  = 16  // PARTITION_INFORMATION_EX.PartitionLength
	PartitionPartitionNumber U32  = 24  // PARTITION_INFORMATION_EX.PartitionNumber
	PartitionMBRType         U8   = 32  // PARTITION_INFORMATION_EX.Mbr.PartitionType
	PartitionGPTType         GUID = 32  // PARTITION_INFORMATION_EX.Gpt.PartitionType

	GUIDData1 U32 = 0 // GUID.Data1
	GUIDData2 U16 = 4 // GUID.Data2
	GUIDData3 U16 = 6 // GUID.Data3
	GUIDData4     = 8 // GUID.Data4
)
