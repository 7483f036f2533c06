package host

import "context"

// VolumeStats are the sizes of a formatted volume.
type VolumeStats struct {
	TotalBytes int64
	UsedBytes  int64
}

// VolumeHealth is what the file system says of itself.
type VolumeHealth string

// The states of health.
const (
	HealthUnknown VolumeHealth = "Unknown"
	HealthOK      VolumeHealth = "Healthy"
	HealthWarning VolumeHealth = "Warning"
	HealthBad     VolumeHealth = "Unhealthy"
)

// VolumeInfo is everything the node knows about one volume.
type VolumeInfo struct {
	ID              string // `\\?\Volume{guid}\`
	DiskNumber      uint32
	PartitionNumber uint32
	FileSystem      string // "NTFS", "ReFS" …; empty when the volume is raw
	Label           string
	SizeBytes       int64
	FreeBytes       int64
	ClusterBytes    uint32
	Health          VolumeHealth
	HealthDetail    string   // the operational status in words, empty when healthy
	MountPaths      []string // drive roots and mounted folders, without the volume path itself
}

// FormatOptions are the choices of FormatVolumeWith. The zero value is NTFS with
// the default cluster size and no label.
type FormatOptions struct {
	FileSystem   string // "NTFS" (also when empty), "ReFS", "exFAT", "FAT32", in any case
	ClusterBytes uint32 // 0 is the file system's default; otherwise a power of two
	Label        string // at most 32 characters
}

// Mount is one path at which a volume is mounted.
type Mount struct {
	VolumeID string
	Path     string
}

// Volume is the volume group. A volume is named by its id, `\\?\Volume{guid}\`,
// accepted with or without the final backslash.
type Volume interface {
	// ListVolumesOnDisk returns the ids of the volumes of a disk; partition 0
	// means all partitions.
	ListVolumesOnDisk(ctx context.Context, diskNumber, partitionNumber uint32) ([]string, error)
	// MountVolume mounts a volume at a folder, which is made when missing. A
	// volume already mounted there is success. A mount point of a volume that is not
	// on the node any more is replaced.
	MountVolume(ctx context.Context, volumeID, targetPath string) error
	// UnmountVolume flushes the volume and removes the mount point. Nothing
	// mounted there is success; another volume mounted there is KindPrecondition.
	UnmountVolume(ctx context.Context, volumeID, targetPath string) error
	// IsVolumeFormatted reports whether the volume holds a Windows file system.
	IsVolumeFormatted(ctx context.Context, volumeID string) (bool, error)
	// FormatVolume makes an NTFS file system on an empty volume. A volume with a
	// Windows file system is left as it is (success); one whose bytes look like
	// anything else is refused (KindPrecondition).
	FormatVolume(ctx context.Context, volumeID string) error
	// ResizeVolume grows a volume to sizeBytes, or to the maximum when 0. A gain
	// under 100 MiB, and a smaller size, are success without effect.
	ResizeVolume(ctx context.Context, volumeID string, sizeBytes int64) error
	// GetVolumeStats returns the sizes of a volume.
	GetVolumeStats(ctx context.Context, volumeID string) (VolumeStats, error)
	// GetDiskNumberFromVolumeID returns the disk a volume lies on.
	GetDiskNumberFromVolumeID(ctx context.Context, volumeID string) (uint32, error)
	// GetVolumeIDFromTargetPath returns the volume mounted exactly at the path,
	// or at what the link at the path leads to.
	GetVolumeIDFromTargetPath(ctx context.Context, targetPath string) (string, error)
	// GetClosestVolumeIDFromTargetPath returns the volume that holds the path.
	GetClosestVolumeIDFromTargetPath(ctx context.Context, targetPath string) (string, error)
	// WriteVolumeCache flushes everything written to the volume to its disk.
	WriteVolumeCache(ctx context.Context, volumeID string) error
	// ListVolumes returns every volume that lies on a disk. Addition.
	ListVolumes(ctx context.Context) ([]VolumeInfo, error)
	// GetVolume returns one volume, its health included. Addition.
	GetVolume(ctx context.Context, volumeID string) (VolumeInfo, error)
	// FormatVolumeWith is FormatVolume with choices. A volume that is already
	// formatted with another file system than the one asked for is
	// KindPrecondition. Addition.
	FormatVolumeWith(ctx context.Context, volumeID string, options FormatOptions) error
	// ListMounts returns every mounted folder and drive root. Addition.
	ListMounts(ctx context.Context) ([]Mount, error)
}
