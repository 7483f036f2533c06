package csikit

import "time"

// Snapshot is one snapshot.
type Snapshot struct {
	ID             string
	SourceVolumeID string
	SizeBytes      int64 // the least size of a volume made from it
	CreatedAt      time.Time
	Ready          bool
	GroupID        string // of the group snapshot it belongs to, or ""
	// Topology is from where volumes made of it can be reached, for a SnapshotPlacer;
	// nil is everywhere.
	Topology []Topology
}

// CreateSnapshotRequest asks for a snapshot.
type CreateSnapshotRequest struct {
	Name           string
	SourceVolumeID string
	Parameters     map[string]string
	Secrets        map[string]string
	// Requisite and Preferred are places as for CreateVolume, for a SnapshotPlacer.
	Requisite, Preferred []Topology
}

// SnapshotRequest names a snapshot.
type SnapshotRequest struct {
	SnapshotID string
	Secrets    map[string]string
}

// ListSnapshotsRequest asks for a part of the list of snapshots. Filters that are
// set must both fit; one that fits nothing gives an empty list.
type ListSnapshotsRequest struct {
	Page
	SourceVolumeID string
	SnapshotID     string
	Secrets        map[string]string
}

// SnapshotPage is a part of the list of snapshots.
type SnapshotPage struct {
	Snapshots []Snapshot
	NextToken string
}

// GroupSnapshot is several snapshots of one moment.
type GroupSnapshot struct {
	ID        string
	Snapshots []Snapshot
	CreatedAt time.Time
	Ready     bool
}

// CreateGroupSnapshotRequest asks for a group snapshot.
type CreateGroupSnapshotRequest struct {
	Name            string
	SourceVolumeIDs []string
	Parameters      map[string]string
	Secrets         map[string]string
}

// GroupSnapshotRequest names a group snapshot. SnapshotIDs, when set, are all of
// its snapshots; others are ErrInvalid.
type GroupSnapshotRequest struct {
	GroupSnapshotID string
	SnapshotIDs     []string
	Secrets         map[string]string
}

// AllocatedRequest asks which parts of a snapshot hold data.
type AllocatedRequest struct {
	SnapshotID          string
	StartingOffsetBytes int64
	Secrets             map[string]string
}

// ChangedRequest asks which parts differ between two snapshots of one volume.
type ChangedRequest struct {
	BaseSnapshotID      string
	TargetSnapshotID    string
	StartingOffsetBytes int64
	Secrets             map[string]string
}

// Blocks are some parts of a snapshot.
type Blocks struct {
	VolumeCapacityBytes int64
	Ranges              []BlockRange // in order, none overlaps another
}

// BlockRange is one part.
type BlockRange struct {
	OffsetBytes int64
	SizeBytes   int64
}
