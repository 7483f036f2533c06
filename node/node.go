// Package node does what a CSI node service asks of a Windows node, one call for
// each CSI call: stage, unstage, publish, unpublish, expand, stats, health, info.
// It works over host.Host, so the same code runs inside csi-proxy, beside it in
// process, or in a driver over the primitives of any csi-proxy.
//
// No file says what is in use. It is read from the node: mount points, links,
// mappings, sessions, and for SMB one empty folder a stage (see hold.go).
//
// Every task may be repeated after a crash at any point, with the same request,
// until it succeeds; the end state is that of one clean run. Every error is a
// *host.Error.
package node

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// Node is the storage tasks of one node.
type Node interface {
	// Stage makes a source usable at a path of the node. A source that is staged
	// there is success without effect; another live one there is KindExists.
	Stage(ctx context.Context, request StageRequest) error
	// Unstage takes a source away from the path, writes what is cached, and lets go
	// of the disk, session or mapping under it if nothing else uses it.
	// Nothing staged is success.
	Unstage(ctx context.Context, request UnstageRequest) error
	// Publish makes what is staged at a path visible at another. A path at which
	// nothing is staged is KindPrecondition.
	Publish(ctx context.Context, request PublishRequest) error
	// Unpublish removes what Publish made. Nothing there is success; a folder
	// that holds files of its own is KindPrecondition.
	Unpublish(ctx context.Context, request UnpublishRequest) error
	// Expand grows a file system to the size of its disk.
	Expand(ctx context.Context, request ExpandRequest) (ExpandResult, error)
	// Stats returns the sizes of the volume at a path, never those of the drive
	// that holds the path: a plain folder is KindPrecondition.
	Stats(ctx context.Context, request StatsRequest) (Stats, error)
	// Health says what is wrong with a volume as this node sees it.
	Health(ctx context.Context, request HealthRequest) (Health, error)
	// Info says what this node is and can do.
	Info(ctx context.Context) (Info, error)
}

// Source is where a volume's data is. Exactly one field is set.
type Source struct {
	Disk  *DiskSource
	ISCSI *ISCSISource
	SMB   *SMBSource
}

// DiskSource is a disk that is attached to the node. Every field that is set must
// fit; a disk that fits in all of them and is the only one is taken. More than one
// is KindPrecondition and names them. At least one field is set.
type DiskSource struct {
	// Page83 is the device identifier of SCSI page 0x83, as host.DiskIDs has it.
	// Upper and lower case are the same.
	Page83 string
	// SerialNumber is the serial number of the disk; case and blanks around it
	// make no difference.
	SerialNumber string
	// Location is where the disk hangs; empty coordinates fit every disk.
	Location host.DiskLocation
}

// ISCSISource is one logical unit of an iSCSI target.
type ISCSISource struct {
	// Portals are the ways to the target, at least one. Stage logs in through
	// every portal that answers, and fails when none does.
	Portals []host.TargetPortal
	IQN     string
	LUN     uint32
	// CHAP are the credentials of this volume. Secret: never logged. Unstage
	// needs none. With Persistent in it the login lasts over restarts of the node, until
	// the last unit in use of the target is unstaged.
	CHAP host.ConnectOptions
	// MutualSecret is the initiator's own secret, set before a login with
	// host.AuthMutualCHAP; empty leaves the initiator's secret as it is.
	MutualSecret string
}

// SMBSource is a share or a folder in it.
type SMBSource struct {
	// Path is `\\server\share` or `\\server\share\folder`; forward slashes are
	// accepted. The folder must exist.
	Path string
	// Username may be `user`, `domain\user` or `user@domain.tld`.
	Username string
	// Domain is put before a Username that has none. A Username with another
	// domain is KindInvalid.
	Domain string
	// Password is passed on byte for byte. Never logged. Unstage needs none.
	Password string
}

// Access is what a CSI access mode and its read-only forms come to.
type Access struct {
	// ReadOnly is set when nobody may write: a reader-only access mode or the
	// mount flag "ro". The disk's read-only flag is then left as it is found, and
	// nothing is partitioned, formatted or grown.
	ReadOnly bool
	// SingleWriter is CSI's SINGLE_NODE_SINGLE_WRITER: the volume is published at
	// one path of the node at a time; a second is KindPrecondition.
	SingleWriter bool
}

// StageRequest asks for a source at a path.
type StageRequest struct {
	VolumeID    string // for logs, errors and locks; not empty
	StagingPath string
	Source      Source
	// Format is used on a disk that is empty.
	Format host.FormatOptions
	Access Access
	// Grow lets a file system that is smaller than its disk grow, as after a
	// restore to a larger volume.
	Grow bool
}

// UnstageRequest asks to take a volume away from a path.
type UnstageRequest struct {
	VolumeID    string
	StagingPath string
	// Source may be given, without secrets, by who can tell it from the volume's
	// id. With it, what an interrupted Unstage left attached is let go of even when
	// the path says nothing any more. An empty Source is allowed.
	Source Source
}

// PublishRequest asks to make a staged volume visible at a path.
type PublishRequest struct {
	VolumeID    string
	StagingPath string
	TargetPath  string
	// ReadOnly is the field of the CSI call. Windows cannot make one link to a
	// writable volume read-only: the kubelet mounts it read-only into
	// the container. It is checked against Access and passed for the log.
	ReadOnly bool
	Access   Access
}

// UnpublishRequest asks to remove what Publish made.
type UnpublishRequest struct {
	VolumeID   string
	TargetPath string
}

// ExpandRequest asks to grow the file system of a volume.
type ExpandRequest struct {
	VolumeID string
	// Path is where the volume is staged or published.
	Path string
	// RequiredBytes is the least size of the volume, 0 when it does not matter.
	// A disk that is smaller, after a rescan, is KindPrecondition: it has not
	// grown yet.
	RequiredBytes int64
	// LimitBytes is the largest size, 0 when there is none. A disk that is larger
	// already is not shrunk: KindInvalid.
	LimitBytes int64
}

// ExpandResult is the volume after Expand.
type ExpandResult struct {
	// CapacityBytes is the size of the disk; 0 for a share.
	CapacityBytes int64
}

// StatsRequest asks for the sizes of a volume.
type StatsRequest struct {
	VolumeID string
	Path     string // where the volume is staged or published
}

// Stats are the sizes of a volume. Windows does not count files, so there are no
// inodes.
type Stats struct {
	TotalBytes     int64
	UsedBytes      int64
	AvailableBytes int64
}

// HealthRequest asks for the health of a volume. At least one path is set.
type HealthRequest struct {
	VolumeID    string
	StagingPath string
	TargetPath  string
}

// HealthStatus is how bad a condition is; the words are those of CSI.
type HealthStatus string

// The states of CSI's VolumeHealthErrorType.
const (
	HealthDegraded     HealthStatus = "DEGRADED"
	HealthInaccessible HealthStatus = "INACCESSIBLE"
	HealthDataLoss     HealthStatus = "DATA_LOSS"
)

// HealthCondition is one thing that is wrong.
type HealthCondition struct {
	Status  HealthStatus
	Reason  string // one CamelCase word, for machines
	Message string // for people
}

// Health is what is wrong with a volume; no conditions means nothing known.
type Health struct {
	Conditions []HealthCondition
}

// Info is what a node says of itself.
type Info struct {
	// BIOSSerialNumber is the serial number of the machine; empty when the node's
	// csi-proxy has no system group.
	BIOSSerialNumber string
	// Lacks are the contract's additions that the node's csi-proxy cannot do, by
	// method name of host.Host; empty with our own.
	Lacks []string
}
