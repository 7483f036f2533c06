package image

import "errors"

// Errors of the package. They are matched with errors.Is; each names the
// storage management return code that Windows gives in the same case.
// Source: "Storage Management API common return codes" and the method pages of
// MSFT_Disk, MSFT_Partition and MSFT_Volume.
var (
	// ErrNotInitialized is a disk without a partition table (41000).
	ErrNotInitialized = errors.New("disk has no partition table")
	// ErrAlreadyInitialized is a disk that has a partition table (41001).
	ErrAlreadyInitialized = errors.New("disk has a partition table already")
	// ErrPartitionLimit is a table without a free entry (41004).
	ErrPartitionLimit = errors.New("partition table is full")
	// ErrBadAlignment is an alignment that is no multiple of a sector (41005).
	ErrBadAlignment = errors.New("bad alignment")
	// ErrWrongStyle is a parameter that the style of the table does not know (41006).
	ErrWrongStyle = errors.New("parameter does not fit the partition style")
	// ErrBadType is a partition type that cannot be used (41010).
	ErrBadType = errors.New("bad partition type")
	// ErrBeyond2TiB is a place that an MBR entry cannot express (41011).
	ErrBeyond2TiB = errors.New("beyond the 2 TiB that an MBR can address")
	// ErrBadOffset is an offset that is taken, unaligned or outside (41012).
	ErrBadOffset = errors.New("bad partition offset")
	// ErrTooSmallForGPT is a disk below MinGPTBytes (41014).
	ErrTooSmallForGPT = errors.New("disk is too small for a GPT")
	// ErrNoSpace is a size that no free extent holds (40000).
	ErrNoSpace = errors.New("not enough free space")
	// ErrSizeChoice is a request with both or none of size and maximum size (40005).
	ErrSizeChoice = errors.New("exactly one of size and maximum size is needed")
	// ErrSize is a size that is not supported for this object (4097).
	ErrSize = errors.New("size not supported")
	// ErrNotFound is a partition number that the table does not hold (8).
	ErrNotFound = errors.New("no such partition")
	// ErrUnsupported is an operation this kind of object does not know (1).
	ErrUnsupported = errors.New("not supported")
	// ErrInvalid is a parameter that cannot be read, such as a malformed GUID (5).
	ErrInvalid = errors.New("invalid parameter")
	// ErrClusterSize is a cluster size the file system does not know (43000).
	ErrClusterSize = errors.New("bad cluster size")
	// ErrFileSystem is a file system nobody knows, or one that does not fit a
	// volume of this size (43001).
	ErrFileSystem = errors.New("file system not supported")
	// ErrTooManyClusters is a volume of more than 2^32-1 clusters (43003).
	ErrTooManyClusters = errors.New("too many clusters")
	// ErrLabel is a label that is too long or holds a forbidden character (5).
	ErrLabel = errors.New("bad volume label")
	// ErrOutOfRange is an access beyond the end of the disk.
	ErrOutOfRange = errors.New("beyond the end of the disk")
)
