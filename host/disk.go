package host

import "context"

// DiskLocation is where a disk hangs, as Windows prints it: decimal texts,
// empty when the bus has no such coordinate.
type DiskLocation struct {
	Adapter string
	Bus     string
	Target  string
	LUNID   string
}

// DiskIDs are the names of a disk that survive a reboot and a move.
type DiskIDs struct {
	// Page83 is the device identifier of SCSI page 0x83: text as it is,
	// binary as lower-case hex. Empty when the disk has none.
	Page83 string
	// SerialNumber is the serial number without surrounding blanks; may be empty.
	SerialNumber string
}

// DiskStats are the sizes of a disk.
type DiskStats struct {
	TotalBytes int64
}

// PartitionStyle is the kind of partition table on a disk.
type PartitionStyle string

// The partition styles.
const (
	StyleRaw PartitionStyle = "RAW"
	StyleMBR PartitionStyle = "MBR"
	StyleGPT PartitionStyle = "GPT"
)

// DiskInfo is everything the node knows about one disk.
type DiskInfo struct {
	Number        uint32
	Location      DiskLocation
	IDs           DiskIDs
	FriendlyName  string
	BusType       string // "SCSI", "NVMe", "iSCSI" … as Windows names it
	Style         PartitionStyle
	SizeBytes     int64
	Offline       bool
	OfflineReason string // empty when online or unknown
	ReadOnly      bool
	System        bool // boot or system disk
}

// Disk is the disk group. A disk is named by its number, which is stable until
// the node restarts.
type Disk interface {
	// ListDiskLocations returns the location of every disk that has one.
	ListDiskLocations(ctx context.Context) (map[uint32]DiskLocation, error)
	// PartitionDisk makes sure that the disk has a partition table and one data
	// partition that fills it. A disk with a data partition is left as it is. A
	// disk whose bytes look like somebody's data is refused (KindPrecondition).
	PartitionDisk(ctx context.Context, diskNumber uint32) error
	// Rescan makes the node look for new, gone and grown disks.
	Rescan(ctx context.Context) error
	// ListDiskIDs returns the lasting names of every disk.
	ListDiskIDs(ctx context.Context) (map[uint32]DiskIDs, error)
	// GetDiskStats returns the size of a disk.
	GetDiskStats(ctx context.Context, diskNumber uint32) (DiskStats, error)
	// SetDiskState brings a disk online or takes it offline.
	SetDiskState(ctx context.Context, diskNumber uint32, online bool) error
	// GetDiskState reports whether the disk is online.
	GetDiskState(ctx context.Context, diskNumber uint32) (online bool, err error)
	// ListDisks returns every disk. Addition.
	ListDisks(ctx context.Context) ([]DiskInfo, error)
	// SetDiskReadOnly raises or clears the read-only flag of a disk. Addition.
	SetDiskReadOnly(ctx context.Context, diskNumber uint32, readOnly bool) error
}
