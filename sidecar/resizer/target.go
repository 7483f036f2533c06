package resizer

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// wantsSize reports whether a bound claim asks for more than it has.
func wantsSize(claim *v1.PersistentVolumeClaim) bool {
	if claim.Status.Phase != v1.ClaimBound || claim.Spec.VolumeName == "" {
		return false
	}
	request, has := claim.Spec.Resources.Requests[v1.ResourceStorage], claim.Status.Capacity[v1.ResourceStorage]
	return request.Cmp(has) > 0
}

// resizeStatus is how far the expansion of a claim's volume has come.
func resizeStatus(claim *v1.PersistentVolumeClaim) v1.ClaimResourceStatus {
	return claim.Status.AllocatedResourceStatuses[v1.ResourceStorage]
}

// allocated is the size the last expansion was begun for, if there was one.
func allocated(claim *v1.PersistentVolumeClaim) (resource.Quantity, bool) {
	size, ok := claim.Status.AllocatedResources[v1.ResourceStorage]
	return size, ok
}

// expansionTarget is the size the volume of a claim that wants more is to be
// expanded to now, if the controller has anything to do for it. ended says
// that the last call for the allocated size has failed for sure; nodeOnly that
// the driver expands on the node alone.
//
// A call whose end is not known is repeated with its own size, though the
// claim may ask for another by now: it may be under way, and the claim's quota
// was charged for it. What a node is about to do is left alone.
//
// Source: KEP-1790, recovery from volume expansion failure.
func expansionTarget(claim *v1.PersistentVolumeClaim, volume *v1.PersistentVolume, ended, nodeOnly bool) (resource.Quantity, bool) {
	request, has := claim.Spec.Resources.Requests[v1.ResourceStorage], volume.Spec.Capacity[v1.ResourceStorage]
	begun, ok := allocated(claim)
	if !ok {
		begun = request
	}
	switch resizeStatus(claim) {
	case v1.PersistentVolumeClaimNodeResizePending, v1.PersistentVolumeClaimNodeResizeInProgress:
		// The volume has its size unless the status was written by someone else.
		return begun, has.Cmp(begun) < 0 && has.Cmp(request) < 0
	case v1.PersistentVolumeClaimNodeResizeInfeasible:
		// The node must not try again before the controller has looked. Where the
		// node alone expands, nothing has grown yet, and the claim may ask for less.
		if nodeOnly {
			return request, true
		}
		return begun, true
	case v1.PersistentVolumeClaimControllerResizeInProgress:
		if ended {
			return request, true
		}
		return begun, true
	case v1.PersistentVolumeClaimControllerResizeInfeasible:
		return request, true
	default:
		// Of an API server without statuses: the condition says that it is the
		// node's turn.
		if has.Cmp(request) >= 0 && hasCondition(claim, v1.PersistentVolumeClaimFileSystemResizePending) {
			return request, false
		}
		if begun.Cmp(request) > 0 {
			return begun, true
		}
		return request, true
	}
}

// resizeUnknown reports whether a call to expand may be under way: one was
// begun, and this process has not seen it end.
func resizeUnknown(claim *v1.PersistentVolumeClaim, last attempt) bool {
	if !wantsSize(claim) || resizeStatus(claim) != v1.PersistentVolumeClaimControllerResizeInProgress {
		return false
	}
	return !resizeEnded(claim, last)
}

// resizeEnded reports whether the last call for the allocated size is known to
// have failed for sure.
func resizeEnded(claim *v1.PersistentVolumeClaim, last attempt) bool {
	begun, ok := allocated(claim)
	return ok && last.ended && last.target == sizeKey(begun)
}

func sizeKey(size resource.Quantity) string {
	return resource.NewQuantity(size.Value(), resource.DecimalSI).String()
}

// class is the name of an attributes class; none and the empty name are one.
func class(name *string) string {
	if name == nil {
		return ""
	}
	return *name
}

// wantsClass reports whether the class of a bound claim's volume is not the one
// asked for, or is not settled.
func wantsClass(claim *v1.PersistentVolumeClaim) bool {
	if claim.Status.Phase != v1.ClaimBound || claim.Spec.VolumeName == "" {
		return false
	}
	return claim.Status.ModifyVolumeStatus != nil ||
		class(claim.Spec.VolumeAttributesClassName) != class(claim.Status.CurrentVolumeAttributesClassName)
}

// modifyStatus is how far the modification of a claim's volume has come, and
// the class it was begun for.
func modifyStatus(claim *v1.PersistentVolumeClaim) (v1.PersistentVolumeClaimModifyVolumeStatus, string) {
	if claim.Status.ModifyVolumeStatus == nil {
		return "", ""
	}
	return claim.Status.ModifyVolumeStatus.Status, claim.Status.ModifyVolumeStatus.TargetVolumeAttributesClassName
}

// modifyUnknown reports whether a call to modify may be under way.
func modifyUnknown(claim *v1.PersistentVolumeClaim, last attempt) bool {
	status, begun := modifyStatus(claim)
	return wantsClass(claim) && status == v1.PersistentVolumeClaimModifyVolumeInProgress && (!last.ended || last.target != begun)
}

// modification is what to do about a claim's attributes class.
type modification int

const (
	// settled is nothing.
	settled modification = iota
	// apply is to give the volume a class.
	apply
	// cancel is to stop: the claim takes the volume as it is.
	cancel
	// withdraw is to forget a class that was never applied.
	withdraw
)

// modificationTarget is what to do about a claim that wants a class, and the
// class. unknown says that the last call may be under way.
//
// Source: KEP-3751, volume attributes class, error handling.
func modificationTarget(claim *v1.PersistentVolumeClaim, unknown bool) (modification, string) {
	wanted, current := class(claim.Spec.VolumeAttributesClassName), class(claim.Status.CurrentVolumeAttributesClassName)
	status, begun := modifyStatus(claim)
	inProgress := status == v1.PersistentVolumeClaimModifyVolumeInProgress
	switch {
	case status == v1.PersistentVolumeClaimModifyVolumePending && begun == "" && wanted == current:
		return withdraw, ""
	case wanted == "" && !inProgress:
		// Nobody says which class the volume should have, and none is being
		// applied: it stays as it is.
		if hasCondition(claim, v1.PersistentVolumeClaimVolumeModifyingVolume) {
			return cancel, begun
		}
		return settled, ""
	case inProgress && (unknown || wanted == ""):
		return apply, begun
	default:
		return apply, wanted
	}
}
