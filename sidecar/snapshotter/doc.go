// Package snapshotter takes and removes snapshots for Kubernetes: it turns
// VolumeSnapshotContent and VolumeGroupSnapshotContent objects into calls of
// the CSI driver, and the driver's answers into their status. The objects are
// made and bound by the cluster's snapshot-controller.
//
// The life of a content is a walk through states that are all kept in the
// object, so that a process that starts anew goes on where the last one was:
//
//	marked        the annotation "being-created" is there: a call to take the
//	              snapshot may be under way and how it ends is not known
//	with handle   the status names the snapshot
//	ready         the status says that volumes can be made of it
//	released      it is being deleted and its snapshot object wants that too
//
// A content is marked before the first call and unmarked when the outcome is
// known. One that is released while it is marked is not let go before the same
// call has told what became of the snapshot: taken, so that it is removed, or
// not taken for sure.
//
// Caches lag behind what this process wrote itself. For that reason the newest
// state of every content is remembered, and a cached one that is older is
// never acted on.
package snapshotter
