package csikit

import (
	"context"

	"github.com/csi-windows/csi-windows/node"
)

// Backend is the least a controller needs: volumes are made, deleted and looked
// up. What else a backend can do is said by the further interfaces of this file
// that it implements; the driver's capabilities follow from them.
//
// A backend need not think of locks, repeats, time limits, limits of fields or
// what may be logged: the kit sees to that. Two calls on one id, or two that make
// something of one name, never meet. What a request holds is the backend's own.
// Errors are made with the Err… values (fmt.Errorf("disk %s: %w", id, ErrNotFound)),
// or are *host.Error, or carry a gRPC status.
type Backend interface {
	// CreateVolume makes a volume. The name is the key: when there is a volume of
	// this name, it is returned as it is, whatever else the request says; the
	// kit compares the two and answers AlreadyExists if they do not fit.
	// Source is nil; see SnapshotRestorer and Cloner.
	CreateVolume(ctx context.Context, request CreateVolumeRequest) (Volume, error)
	// DeleteVolume deletes a volume. One that does not exist is success; one in use
	// is ErrInUse.
	DeleteVolume(ctx context.Context, request VolumeRequest) error
	// GetVolume returns one volume, or ErrNotFound.
	GetVolume(ctx context.Context, request VolumeRequest) (Volume, error)
}

// NodeBackend tells a node where the data of a volume is. The kit does the rest
// with the tasks of package node.
type NodeBackend interface {
	// NodeSource returns where a volume is found on a node. For the end of a
	// stage it is asked again with the id alone: it then returns what it can
	// tell from that, without secrets, and an empty Source when it can tell
	// nothing. It must not ask anybody over a network then.
	NodeSource(ctx context.Context, request NodeSourceRequest) (node.Source, error)
}

// Further interfaces of a Backend, one for each capability.
type (
	// Attacher gives PUBLISH_UNPUBLISH_VOLUME and PUBLISH_READONLY.
	Attacher interface {
		// AttachVolume attaches a volume to a node and returns what the node needs to
		// find it. Attached there already is success, and ErrExists when it is
		// attached read-only and wanted writable, or the other way round. On another
		// node, in a mode for one node, it is ErrInUse; an unknown node is ErrNotFound.
		AttachVolume(ctx context.Context, request AttachRequest) (publishContext map[string]string, err error)
		// DetachVolume takes a volume from a node, from all nodes when NodeID is
		// empty. Not attached is success, and so is an unknown volume or node.
		DetachVolume(ctx context.Context, request DetachRequest) error
	}
	// VolumeLister gives LIST_VOLUMES and, when the backend is an Attacher,
	// LIST_VOLUMES_PUBLISHED_NODES.
	VolumeLister interface {
		// ListVolumes returns one page of all volumes in a stable order. A token
		// it does not know is ErrBadToken.
		ListVolumes(ctx context.Context, page Page) (VolumePage, error)
	}
	// CapacityReporter gives GET_CAPACITY.
	CapacityReporter interface {
		GetCapacity(ctx context.Context, request CapacityRequest) (Capacity, error)
	}
	// Expander gives EXPAND_VOLUME. Volumes may be in use (ONLINE).
	Expander interface {
		// ExpandVolume makes a volume at least Capacity.RequiredBytes large and
		// returns it. One that is large enough is success.
		ExpandVolume(ctx context.Context, request ExpandRequest) (Volume, error)
	}
	// Modifier gives MODIFY_VOLUME.
	Modifier interface {
		// CheckMutableParameters says which parameter cannot be set: ErrInvalid.
		CheckMutableParameters(parameters map[string]string) error
		ModifyVolume(ctx context.Context, request ModifyRequest) error
	}
	// Snapshotter gives CREATE_DELETE_SNAPSHOT and GET_SNAPSHOT.
	Snapshotter interface {
		// CreateSnapshot follows the rule of CreateVolume: a snapshot of this name is
		// returned as it is.
		CreateSnapshot(ctx context.Context, request CreateSnapshotRequest) (Snapshot, error)
		// DeleteSnapshot deletes a snapshot. One that does not exist is success; one in
		// use is ErrInUse; one of a group that cannot go alone is ErrInvalid.
		DeleteSnapshot(ctx context.Context, request SnapshotRequest) error
		GetSnapshot(ctx context.Context, request SnapshotRequest) (Snapshot, error)
	}
	// SnapshotPlacer gives SNAPSHOT_ACCESSIBILITY_CONSTRAINTS: snapshots can be used
	// from some places only, which their Topology says.
	SnapshotPlacer interface {
		// PlaceSnapshot is CreateSnapshot for a request with Requisite or Preferred. A
		// snapshot that cannot be made usable there is ErrExhausted.
		PlaceSnapshot(ctx context.Context, request CreateSnapshotRequest) (Snapshot, error)
	}
	// SnapshotLister gives LIST_SNAPSHOTS.
	SnapshotLister interface {
		ListSnapshots(ctx context.Context, request ListSnapshotsRequest) (SnapshotPage, error)
	}
	// SnapshotRestorer makes volumes from snapshots; request.Source.SnapshotID is set.
	SnapshotRestorer interface {
		RestoreSnapshot(ctx context.Context, request CreateVolumeRequest) (Volume, error)
	}
	// Cloner gives CLONE_VOLUME; request.Source.VolumeID is set.
	Cloner interface {
		CloneVolume(ctx context.Context, request CreateVolumeRequest) (Volume, error)
	}
	// GroupSnapshotter gives the GroupController service with
	// CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT.
	GroupSnapshotter interface {
		// CreateGroupSnapshot snapshots several volumes at one moment, all or none. A
		// group snapshot of this name is returned as it is. Volumes that cannot be
		// snapshotted together are ErrPrecondition.
		CreateGroupSnapshot(ctx context.Context, request CreateGroupSnapshotRequest) (GroupSnapshot, error)
		// DeleteGroupSnapshot deletes the group and its snapshots.
		DeleteGroupSnapshot(ctx context.Context, request GroupSnapshotRequest) error
		GetGroupSnapshot(ctx context.Context, request GroupSnapshotRequest) (GroupSnapshot, error)
	}
	// HealthReporter gives GET_VOLUME_HEALTH and LIST_VOLUME_HEALTH of the controller.
	HealthReporter interface {
		VolumeHealth(ctx context.Context, request VolumeRequest) (VolumeHealth, error)
		// ListVolumeHealth returns the volumes with a condition only.
		ListVolumeHealth(ctx context.Context, page Page) (HealthPage, error)
	}
	// SnapshotDiffer gives the SnapshotMetadata service.
	SnapshotDiffer interface {
		// AllocatedBlocks calls emit with the parts of a snapshot that hold data, in
		// order, from StartingOffsetBytes on, until all are told or emit fails. An
		// offset beyond the end is ErrOutOfRange, also when there is no part to emit.
		AllocatedBlocks(ctx context.Context, request AllocatedRequest, emit func(Blocks) error) error
		// ChangedBlocks does so for the parts that differ between two snapshots
		// of one volume. Changes that are not recorded are ErrPrecondition.
		ChangedBlocks(ctx context.Context, request ChangedRequest, emit func(Blocks) error) error
	}
	// CapabilityChecker says which of the ways to use a volume a backend cannot do:
	// ErrInvalid, or nil. Without it every mode for one node is taken, and no
	// other. Raw block access is always refused: Windows cannot give a container a
	// raw device.
	CapabilityChecker interface {
		CheckCapability(capability Capability) error
	}
	// ParameterChecker says which parameter of a storage class cannot be used: ErrInvalid,
	// or nil. CreateVolume asks it first, and ValidateVolumeCapabilities confirms
	// parameters only with it.
	ParameterChecker interface {
		CheckParameters(parameters map[string]string) error
	}
	// Prober says whether the backend can be reached; any error means not now. One that
	// takes its time is not taken for an answer. A NodeBackend may be one, too.
	Prober interface {
		Probe(ctx context.Context) error
	}
)

// Further interfaces of a NodeBackend.
type (
	// NodeTopology gives VOLUME_ACCESSIBILITY_CONSTRAINTS. A Backend whose volumes
	// have a Topology and that is another value than the NodeBackend implements it
	// as well, since controller and node have to say the same capabilities; it is
	// not asked there.
	NodeTopology interface {
		NodeTopology(ctx context.Context) (Topology, error)
	}
	// NodeLimiter limits the volumes of one node.
	NodeLimiter interface {
		MaxVolumesPerNode(ctx context.Context) (int64, error)
	}
	// NodeStorageHealth gives GET_STORAGE_HEALTH: whether the node reaches the backend.
	NodeStorageHealth interface {
		StorageHealth(ctx context.Context, secrets map[string]string) ([]StorageCondition, error)
	}
	// StatsChecker takes GET_VOLUME_STATS away where the node's csi-proxy cannot tell
	// the sizes of such a volume. Without it, it is always said.
	StatsChecker interface {
		// CanStat looks at the node's Info and asks nobody.
		CanStat(info node.Info) bool
	}
	// NodeHealth adds what the backend knows to the health the node sees.
	NodeHealth interface {
		NodeVolumeHealth(ctx context.Context, volumeID string) ([]node.HealthCondition, error)
	}
)

// Volume is one volume of a backend.
type Volume struct {
	ID            string
	CapacityBytes int64             // 0 when unknown
	Context       map[string]string // what nodes need to know; not secret
	Source        *ContentSource    // what it was made from, nil when empty
	Topology      []Topology        // from where it can be reached; nil is everywhere
	// NodeIDs are the nodes it is attached to, for an Attacher.
	NodeIDs []string
	// NodeExpansionNeeded is set by ExpandVolume when the file system has to
	// grow as well.
	NodeExpansionNeeded bool
}

// ContentSource is what a volume is made from. One field is set.
type ContentSource struct {
	VolumeID   string
	SnapshotID string
}

// Topology is one place: keys and values, as CSI has them.
type Topology map[string]string

// CapacityRange is the size that is asked for. Zero values mean no limit.
type CapacityRange struct {
	RequiredBytes int64
	LimitBytes    int64
}

// AccessMode is how many nodes may use a volume, and how.
type AccessMode int32

// The access modes, with the numbers of CSI.
const (
	SingleNodeWriter       AccessMode = 1
	SingleNodeReaderOnly   AccessMode = 2
	MultiNodeReaderOnly    AccessMode = 3
	MultiNodeSingleWriter  AccessMode = 4
	MultiNodeMultiWriter   AccessMode = 5
	SingleNodeSingleWriter AccessMode = 6
	SingleNodeMultiWriter  AccessMode = 7
)

// Capability is one way to use a volume.
type Capability struct {
	AccessMode AccessMode
	FileSystem string   // as asked for, "" is the default
	MountFlags []string // may hold secrets of careless people; never logged
	// VolumeMountGroup is a Linux group id; it has no meaning on Windows.
	VolumeMountGroup string
}

// CreateVolumeRequest asks for a volume.
type CreateVolumeRequest struct {
	Name              string
	Capacity          CapacityRange
	Capabilities      []Capability
	Parameters        map[string]string
	MutableParameters map[string]string
	Secrets           map[string]string
	Source            *ContentSource
	// Requisite are the places of which one must reach the volume; Preferred are
	// some of them, best first.
	Requisite, Preferred []Topology
}

// VolumeRequest names a volume.
type VolumeRequest struct {
	VolumeID string
	Secrets  map[string]string
}

// AttachRequest asks for a volume on a node.
type AttachRequest struct {
	VolumeID   string
	NodeID     string
	Capability Capability
	ReadOnly   bool
	Context    map[string]string
	Secrets    map[string]string
}

// DetachRequest asks to take a volume from a node.
type DetachRequest struct {
	VolumeID string
	NodeID   string
	Secrets  map[string]string
}

// ExpandRequest asks for a larger volume.
type ExpandRequest struct {
	VolumeID   string
	Capacity   CapacityRange
	Capability *Capability
	Secrets    map[string]string
}

// ModifyRequest asks for other properties of a volume.
type ModifyRequest struct {
	VolumeID          string
	MutableParameters map[string]string
	Secrets           map[string]string
}

// CapacityRequest asks how much can be made.
type CapacityRequest struct {
	Capabilities []Capability
	Parameters   map[string]string
	Topology     Topology
}

// Capacity is how much can be made. Zero maximum and minimum are unknown.
type Capacity struct {
	AvailableBytes int64
	MaximumBytes   int64 // of one volume
	MinimumBytes   int64 // of one volume
}

// Page asks for a part of a list.
type Page struct {
	Token      string // "" is the beginning
	MaxEntries int    // 0 is all
}

// VolumePage is a part of the list of volumes. NextToken is empty at the end.
type VolumePage struct {
	Volumes   []Volume
	NextToken string
}

// VolumeHealth is what is wrong with a volume.
type VolumeHealth struct {
	VolumeID   string
	Conditions []node.HealthCondition
}

// HealthPage is a part of the list of volumes that are not well.
type HealthPage struct {
	Volumes   []VolumeHealth
	NextToken string
}

// StorageCondition is one thing that is wrong between a node and the backend.
type StorageCondition struct {
	Unreachable bool // otherwise degraded
	Reason      string
	Message     string
}

// NodeSourceRequest asks where a volume is found on a node.
type NodeSourceRequest struct {
	VolumeID       string
	VolumeContext  map[string]string
	PublishContext map[string]string
	Secrets        map[string]string
	// Ending is set when the stage ends and only VolumeID is known.
	Ending bool
}
