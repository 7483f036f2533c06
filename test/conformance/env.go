package conformance

import (
	"context"
	"errors"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// Env is the node a run works with.
type Env struct {
	// Host is what is tested.
	Host host.Host
	// Files reaches the files of the node beside the host.
	Files Files
	// Scratch makes disks; without it cases that need one are not run.
	Scratch Scratch
	// WorkingDir is a working folder of the host, such as `C:\var\lib\kubelet`. The
	// run makes a folder of its own in it.
	WorkingDir string
	// OutsideDir is a folder outside every working folder; empty is the root of the
	// working folder's drive. The run makes a folder of its own there too.
	OutsideDir string
	// SMB is a share for tests; without it cases that need one are not run.
	SMB *SMBShare
	// ISCSI is a target for tests; without it cases that need one are not run.
	ISCSI *ISCSITarget
	// BIOSSerial is the serial number of the machine when it is known.
	BIOSSerial string
}

// SMBShare is a share that nothing else uses while the suite runs.
type SMBShare struct {
	Path     string // `\\server\share`
	Username string
	Password string
}

// ISCSITarget is a target that nothing else uses while the suite runs. Its disks
// are counted and never written to.
type ISCSITarget struct {
	Portal host.TargetPortal
	// IQN names the target; empty is the only one of the portal.
	IQN     string
	Options host.ConnectOptions
}

// Files reaches the files of the node by its own paths, following links and mount
// points as a program on the node does. sim.FileController is one.
type Files interface {
	// WriteFile writes a file and makes the folders above it.
	WriteFile(ctx context.Context, path string, data []byte) error
	// ReadFile reads a whole file.
	ReadFile(ctx context.Context, path string) ([]byte, error)
	// ListDir returns the names in a folder.
	ListDir(ctx context.Context, path string) ([]string, error)
	// MakeDir makes a folder and the folders above it.
	MakeDir(ctx context.Context, path string) error
	// MakeLink makes a directory symbolic link at path that leads to target.
	MakeLink(ctx context.Context, path, target string) error
	// RemoveFile removes a file, a link or an empty folder, and follows no link.
	RemoveFile(ctx context.Context, path string) error
}

// Scratch makes disks that belong to the suite alone.
type Scratch interface {
	// Create plugs a new disk of zeros into the node.
	Create(ctx context.Context, sizeBytes int64) (Disk, error)
}

// Disk is a scratch disk. Its methods ask the node itself, not the host under test.
type Disk interface {
	// Number is the disk's number now; it may change with Grow and Replug.
	Number() uint32
	// Known is what the maker knows of the disk's names.
	Known() Known
	// Look returns the disk as it is. It fails when the disk is not the one that
	// was made here any more.
	Look(ctx context.Context) (DiskState, error)
	// Holds reports whether a volume lies on the disk.
	Holds(ctx context.Context, volumeID string) (bool, error)
	// WriteRaw overwrites bytes of the disk.
	WriteRaw(ctx context.Context, offsetBytes int64, data []byte) error
	// Grow makes the disk larger.
	Grow(ctx context.Context, sizeBytes int64) error
	// Replug pulls the disk without a word to the node and plugs it in again.
	Replug(ctx context.Context) error
	// Remove takes the disk away for good. A second Remove does nothing.
	Remove(ctx context.Context) error
}

// Known are the names of a disk as its maker gave them; nil where it cannot tell.
type Known struct {
	IDs      *host.DiskIDs
	Location *host.DiskLocation
}

// DiskState is a disk as the node has it.
type DiskState struct {
	Number    uint32
	SizeBytes int64
	Offline   bool
	ReadOnly  bool
	Style     host.PartitionStyle
	// Partitions are those for data, in the order of the table.
	Partitions []Partition
}

// Partition is one data partition.
type Partition struct {
	ID          string // its GUID
	OffsetBytes int64
	SizeBytes   int64
}

// check says what the environment lacks, and fills in what follows from the rest.
func (e *Env) check() error {
	switch {
	case e.Host == nil:
		return errors.New("conformance: no host given")
	case e.Files == nil:
		return errors.New("conformance: no way to the node's files given")
	case len(e.WorkingDir) < len(`C:\x`) || e.WorkingDir[1:3] != `:\`:
		return errors.New(`conformance: the working folder must be a folder on a drive, such as C:\var\lib\kubelet`)
	}
	e.WorkingDir = strings.TrimRight(e.WorkingDir, `\`)
	if e.OutsideDir == "" {
		e.OutsideDir = e.WorkingDir[:len(`C:\`)]
	}
	e.OutsideDir = strings.TrimRight(e.OutsideDir, `\`)
	return nil
}
