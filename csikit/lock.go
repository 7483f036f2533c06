package csikit

import (
	"fmt"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// objectKind keeps ids of different things apart. A node's volumes are other
// objects than the controller's: a driver that runs as both may attach a volume to
// one node while this node stages it.
type objectKind uint8

const (
	volumeObject objectKind = iota
	volumeName
	snapshotObject
	snapshotName
	groupObject
	groupName
	nodeVolume
)

func (k objectKind) String() string {
	switch k {
	case volumeObject, nodeVolume:
		return "volume"
	case volumeName:
		return "volume of name"
	case snapshotObject:
		return "snapshot"
	case snapshotName:
		return "snapshot of name"
	case groupObject:
		return "group snapshot"
	default:
		return "group snapshot of name"
	}
}

// object is one thing that calls are about.
type object struct {
	kind objectKind
	id   string
}

// hold is an object that a call needs. Sources are shared: any number of calls may
// copy a volume, but none may delete it meanwhile.
type hold struct {
	object
	shared bool
}

// exclusive is the count of an object that one call has for itself.
const exclusive = -1

// locks are the objects in use. Nobody waits for one: a second call is refused, as
// CSI has it, and its caller comes again.
//
// Source: CSI spec.md, Error Scheme, ABORTED: operation pending for volume.
type locks struct {
	mu   sync.Mutex
	held map[object]int // exclusive, or how many share it
}

func newLocks() *locks { return &locks{held: map[object]int{}} }

// acquire takes all objects or none.
func (l *locks) acquire(holds []hold) error {
	if len(holds) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, h := range holds {
		if count := l.held[h.object]; count == exclusive || count > 0 && !h.shared {
			l.releaseLocked(holds[:i])
			return fmt.Errorf("%w: another call on %s %s is not finished", ErrBusy, h.kind, h.id)
		}
		if h.shared {
			l.held[h.object]++
		} else {
			l.held[h.object] = exclusive
		}
	}
	return nil
}

func (l *locks) release(holds []hold) {
	if len(holds) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releaseLocked(holds)
}

func (l *locks) releaseLocked(holds []hold) {
	for _, h := range holds {
		if h.shared && l.held[h.object] > 1 {
			l.held[h.object]--
		} else {
			delete(l.held, h.object)
		}
	}
}

// holdsOf returns what a request needs, each object once. Calls that only read
// need nothing.
func holdsOf(request any) []hold {
	switch r := request.(type) {
	case *csi.CreateVolumeRequest:
		return createHolds(r)
	case *csi.DeleteVolumeRequest:
		return one(volumeObject, r.GetVolumeId())
	case *csi.ControllerPublishVolumeRequest:
		return one(volumeObject, r.GetVolumeId())
	case *csi.ControllerUnpublishVolumeRequest:
		return one(volumeObject, r.GetVolumeId())
	case *csi.ControllerExpandVolumeRequest:
		return one(volumeObject, r.GetVolumeId())
	case *csi.ControllerModifyVolumeRequest:
		return one(volumeObject, r.GetVolumeId())
	case *csi.CreateSnapshotRequest:
		return append(one(snapshotName, r.GetName()), hold{object{volumeObject, r.GetSourceVolumeId()}, true})
	case *csi.DeleteSnapshotRequest:
		return one(snapshotObject, r.GetSnapshotId())
	case *csi.CreateVolumeGroupSnapshotRequest:
		return several(one(groupName, r.GetName()), volumeObject, r.GetSourceVolumeIds(), true)
	case *csi.DeleteVolumeGroupSnapshotRequest:
		return several(one(groupObject, r.GetGroupSnapshotId()), snapshotObject, r.GetSnapshotIds(), false)
	case *csi.NodeStageVolumeRequest:
		return one(nodeVolume, r.GetVolumeId())
	case *csi.NodeUnstageVolumeRequest:
		return one(nodeVolume, r.GetVolumeId())
	case *csi.NodePublishVolumeRequest:
		return one(nodeVolume, r.GetVolumeId())
	case *csi.NodeUnpublishVolumeRequest:
		return one(nodeVolume, r.GetVolumeId())
	case *csi.NodeExpandVolumeRequest:
		return one(nodeVolume, r.GetVolumeId())
	}
	return nil
}

func one(kind objectKind, id string) []hold { return []hold{{object: object{kind, id}}} }

// several adds ids, each once: a call does not wait for itself.
func several(holds []hold, kind objectKind, ids []string, shared bool) []hold {
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			holds = append(holds, hold{object{kind, id}, shared})
		}
	}
	return holds
}

func createHolds(r *csi.CreateVolumeRequest) []hold {
	holds := one(volumeName, r.GetName())
	if id := r.GetVolumeContentSource().GetVolume().GetVolumeId(); id != "" {
		holds = append(holds, hold{object{volumeObject, id}, true})
	}
	if id := r.GetVolumeContentSource().GetSnapshot().GetSnapshotId(); id != "" {
		holds = append(holds, hold{object{snapshotObject, id}, true})
	}
	return holds
}

// subjectOf is what a request is about, for the log and for calls that hang.
func subjectOf(request any) string {
	switch r := request.(type) {
	case interface{ GetVolumeId() string }:
		return r.GetVolumeId()
	case *csi.CreateVolumeRequest, *csi.CreateSnapshotRequest, *csi.CreateVolumeGroupSnapshotRequest:
		return r.(interface{ GetName() string }).GetName()
	case interface{ GetSnapshotId() string }:
		return r.GetSnapshotId()
	case interface{ GetGroupSnapshotId() string }:
		return r.GetGroupSnapshotId()
	case interface{ GetTargetSnapshotId() string }:
		return r.GetTargetSnapshotId()
	}
	return ""
}
