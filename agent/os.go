package agent

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// OS is what the agent needs of a node's operating system, in domain words. It
// has no policy: it does what it is told, on the object it is told, and says
// how that ended. Every error is a *host.Error whose cause keeps the code of
// the operating system.
//
// Implementations are safe for concurrent use. A call must return when its
// context ends if the operating system lets it; the agent copes when it does not.
type OS interface {
	DiskOS
	VolumeOS
	FileOS
	SMBOS
	ISCSIOS
	SystemOS
}

// OSDisk is one disk as the operating system describes it.
type OSDisk struct {
	Number        uint32
	HasLocation   bool
	Location      host.DiskLocation
	FriendlyName  string
	BusType       string
	Style         host.PartitionStyle
	SizeBytes     int64
	Offline       bool
	OfflineReason string
	ReadOnly      bool
	System        bool // boot, system or otherwise critical disk
}

// PartitionRole says what a partition is for.
type PartitionRole uint8

// The roles of a partition.
const (
	// RoleData may hold somebody's data: basic data, IFS, FAT, and every type
	// nobody here knows (a Linux file system, LVM …).
	RoleData PartitionRole = iota
	// RoleReserved is the Microsoft reserved partition, which holds nothing.
	RoleReserved
)

// Partition is one entry of a disk's partition table.
type Partition struct {
	Number      uint32
	OffsetBytes int64
	SizeBytes   int64
	Type        string // GPT type GUID in lower case with braces, or MBR type as "0x07"
	Role        PartitionRole
}

// DiskOS is the disk part of OS.
type DiskOS interface {
	// Disks returns every disk.
	Disks(ctx context.Context) ([]OSDisk, error)
	// Disk returns one disk; KindNotFound when there is none of that number.
	Disk(ctx context.Context, number uint32) (OSDisk, error)
	// DiskState returns the two flags of a disk without describing the rest of
	// it: it is asked far more often than anything else.
	DiskState(ctx context.Context, number uint32) (offline, readOnly bool, err error)
	// DiskSizeBytes returns the size of a disk.
	DiskSizeBytes(ctx context.Context, number uint32) (int64, error)
	// DiskIDs returns the page 0x83 identifier and serial number of a disk.
	DiskIDs(ctx context.Context, number uint32) (host.DiskIDs, error)
	// Partitions returns the entries of the partition table; none on a raw disk.
	Partitions(ctx context.Context, number uint32) ([]Partition, error)
	// InitializeDisk writes an empty GPT (with the reserved partition) on a raw disk.
	InitializeDisk(ctx context.Context, number uint32) error
	// CreateDataPartition makes one basic data partition in the largest free extent.
	CreateDataPartition(ctx context.Context, number uint32) error
	// SetDiskOnline brings a disk online or takes it offline. One that is there
	// already is left alone.
	SetDiskOnline(ctx context.Context, number uint32, online bool) error
	// SetDiskReadOnly raises or clears the read-only flag, unless it stands so.
	SetDiskReadOnly(ctx context.Context, number uint32, readOnly bool) error
	// ReadDisk reads raw bytes of a disk. Offset and length are multiples of
	// 4096. Fewer bytes than asked for come back only at the end of the disk.
	ReadDisk(ctx context.Context, number uint32, offsetBytes int64, buffer []byte) (int, error)
	// Rescan looks for new, gone and grown disks.
	Rescan(ctx context.Context) error
}

// OSVolume is one volume as the operating system describes it.
type OSVolume struct {
	ID                 string // `\\?\Volume{guid}\`
	DiskNumber         uint32
	PartitionNumber    uint32
	PartitionSizeBytes int64
	FileSystem         string // as the OS names it; "" and "RAW" mean none, "Unknown" anything
	Label              string
	SizeBytes          int64
	FreeBytes          int64
	ClusterBytes       uint32
	Health             host.VolumeHealth
	HealthDetail       string
}

// VolumeOS is the volume part of OS. Volume ids have their final backslash.
type VolumeOS interface {
	// VolumeIDs returns the volumes on a disk; partition 0 means all.
	VolumeIDs(ctx context.Context, diskNumber, partitionNumber uint32) ([]string, error)
	// Volumes returns every volume that lies on a disk.
	Volumes(ctx context.Context) ([]OSVolume, error)
	// Volume returns one volume; KindNotFound when there is none of that id.
	Volume(ctx context.Context, id string) (OSVolume, error)
	// VolumeFileSystem returns the file system that the OS has recognised on a
	// volume, "" for none.
	VolumeFileSystem(ctx context.Context, id string) (string, error)
	// VolumeDisk returns the disk of a volume; KindPrecondition when it spans several.
	VolumeDisk(ctx context.Context, id string) (uint32, error)
	// VolumeStats returns size and free bytes of a formatted volume.
	VolumeStats(ctx context.Context, id string) (totalBytes, freeBytes int64, err error)
	// FormatVolume makes a new file system. It does not look at what is there.
	FormatVolume(ctx context.Context, id string, options host.FormatOptions) error
	// FlushVolume writes everything cached for the volume to its disk.
	FlushVolume(ctx context.Context, id string) error
	// ReadVolume reads raw bytes, under the rules of ReadDisk.
	ReadVolume(ctx context.Context, id string, offsetBytes int64, buffer []byte) (int, error)
	// SupportedSizes returns the smallest and largest size of the volume's partition.
	SupportedSizes(ctx context.Context, id string) (minBytes, maxBytes int64, err error)
	// ResizeVolume changes partition and file system to sizeBytes of partition.
	ResizeVolume(ctx context.Context, id string, sizeBytes int64) error
	// MountPaths returns where the volume is mounted, drive roots included.
	MountPaths(ctx context.Context, id string) ([]string, error)
	// Mount mounts the volume at an open, empty folder.
	Mount(ctx context.Context, id string, folder File) error
	// Unmount removes the mount point that is open; the folder stays.
	Unmount(ctx context.Context, mountPoint File) error
}

// FileKind says what an open File is.
type FileKind uint8

// The kinds of files.
const (
	FileRegular FileKind = iota
	FileFolder
	FileSymlink    // symbolic link, to a folder or a file
	FileJunction   // mount-point reparse tag that leads to a path
	FileMountPoint // mount-point reparse tag that leads to a volume
	FileReparse    // any other reparse point that stands for another place or content
)

// FileInfo describes an open File.
type FileInfo struct {
	Kind FileKind
	// Target is where a link leads: an absolute Win32 path (`C:\x`, `\\srv\sh\x`),
	// a path relative to the link's own folder (symbolic links only), or for
	// FileMountPoint the volume id with its final backslash.
	Target string
	// FolderLink is set on a symbolic link that stands for a folder.
	FolderLink bool
	// Identity is equal for two handles of one object, and only then. It joins
	// volume serial and file id.
	Identity FileIdentity
}

// FileIdentity names a file or folder whatever path led to it.
type FileIdentity struct {
	VolumeSerial uint64
	FileID       [16]byte
}

// File is an open file, folder or link: the object itself, never what it leads
// to. While it is open it cannot be renamed, and nor can the folders above it,
// so what was checked stays true until Close. Names given to its methods are
// single components without separators.
type File interface {
	// Info describes the object, read from the handle.
	Info(ctx context.Context) (FileInfo, error)
	// Open opens a child; KindNotFound when there is none. The child may be a link.
	Open(ctx context.Context, name string) (File, error)
	// Mkdir makes a child folder and opens it; KindExists when the name is taken.
	Mkdir(ctx context.Context, name string) (File, error)
	// Symlink makes a child symbolic link that stands for a folder when
	// folder is set; KindExists when the name is taken. The target is stored as it is.
	Symlink(ctx context.Context, name, target string, folder bool) error
	// Names returns the names of the children, long names, without "." and "..".
	Names(ctx context.Context) ([]string, error)
	// Remove deletes the object itself: a file, an empty folder
	// (KindPrecondition when it is not empty), or a link, whatever that leads
	// to. Close must still be called. For a mount point the mount is removed too.
	Remove(ctx context.Context) error
	// Path returns the path of the object as the OS sees it now, with long names.
	Path(ctx context.Context) (string, error)
	// Close releases the handle. A second Close does nothing.
	Close() error
}

// FileOS is the file part of OS.
type FileOS interface {
	// OpenDrive opens the root folder of a drive ('C'); KindNotFound when there is none.
	OpenDrive(ctx context.Context, letter byte) (File, error)
	// OpenVolume opens the root folder of a volume.
	OpenVolume(ctx context.Context, id string) (File, error)
	// SystemDrive returns the letter of the drive that holds the operating system.
	SystemDrive() byte
}

// SMBRequest asks for one global mapping.
type SMBRequest struct {
	Share          string // `\\server\share`
	Username       string
	Password       string
	RequirePrivacy bool
}

// SMBOS is the smb part of OS.
type SMBOS interface {
	// SMBMappings returns every global mapping.
	SMBMappings(ctx context.Context) ([]host.SmbMapping, error)
	// CreateSMBMapping makes a mapping that does not outlive a restart of the node.
	// Failures: wrong user or password KindUnauthenticated; no such share
	// KindNotFound; server out of reach or without encryption KindUnavailable or
	// KindPrecondition; other credentials in use (1219) KindExists.
	CreateSMBMapping(ctx context.Context, request SMBRequest) error
	// RemoveSMBMapping removes a mapping, open files or not; KindNotFound when there is none.
	RemoveSMBMapping(ctx context.Context, share string) error
	// ProbeRemote checks that a remote path can be reached with the rights the node has.
	ProbeRemote(ctx context.Context, remotePath string) error
	// RemoteStats returns size and free bytes of what holds a remote path.
	RemoteStats(ctx context.Context, remotePath string) (totalBytes, freeBytes int64, err error)
}

// ISCSISession is one login session of the initiator.
type ISCSISession struct {
	ID         string
	IQN        string
	Portals    []host.TargetPortal // the portals of its connections
	Persistent bool
}

// ISCSIOS is the iscsi part of OS.
type ISCSIOS interface {
	TargetPortals(ctx context.Context) ([]host.TargetPortal, error)
	// AddTargetPortal fails with KindExists when the portal is known.
	AddTargetPortal(ctx context.Context, portal host.TargetPortal) error
	// RefreshTargetPortal runs discovery again; KindNotFound when the portal is unknown.
	RefreshTargetPortal(ctx context.Context, portal host.TargetPortal) error
	// RemoveTargetPortal fails with KindNotFound when the portal is unknown.
	RemoveTargetPortal(ctx context.Context, portal host.TargetPortal) error
	// Targets returns the names of the targets discovered through a portal; the
	// zero portal means all.
	Targets(ctx context.Context, portal host.TargetPortal) ([]string, error)
	// Sessions returns every session.
	Sessions(ctx context.Context) ([]ISCSISession, error)
	// Connect logs in, not persistently unless asked to. Failures: wrong credentials
	// KindUnauthenticated, logged in already KindExists, no such target
	// KindNotFound, no answer KindUnavailable.
	Connect(ctx context.Context, portal host.TargetPortal, iqn string, options host.ConnectOptions) error
	// RegisterSession makes a session persistent, with the credentials of options.
	RegisterSession(ctx context.Context, id string, options host.ConnectOptions) error
	// UnregisterSession removes the persistent entry of a session.
	UnregisterSession(ctx context.Context, id string) error
	// Disconnect logs out of one session; KindBusy when a disk of it is in use.
	Disconnect(ctx context.Context, id string) error
	// SessionDisks returns the disks of one session.
	SessionDisks(ctx context.Context, id string) ([]uint32, error)
	// SetInitiatorSecret sets the initiator's own CHAP secret.
	SetInitiatorSecret(ctx context.Context, secret string) error
}

// SystemOS is the system part of OS.
type SystemOS interface {
	BIOSSerialNumber(ctx context.Context) (string, error)
	// Service describes a service; KindNotFound when there is none of that name.
	Service(ctx context.Context, name string) (host.ServiceInfo, error)
	// StartService asks a service to start and does not wait. Running already is
	// KindExists, disabled KindPrecondition.
	StartService(ctx context.Context, name string) error
	// StopService asks a service to stop and does not wait. Stopped already is
	// KindExists, running dependents KindPrecondition.
	StopService(ctx context.Context, name string) error
	// RunningDependents returns the services that run and need this one, in the
	// order in which they have to be stopped.
	RunningDependents(ctx context.Context, name string) ([]string, error)
}
