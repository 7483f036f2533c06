package resizer

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// step is what one kind of work on a claim came to.
type step struct {
	// again is when the work is to be looked at again; 0 for when an object changes.
	again time.Duration
	// unknown says that a call may be under way: no other may begin.
	unknown bool
}

// expand brings the expansion of a claim's volume as far as it goes now.
func (c *controller) expand(ctx context.Context, w *work) (step, error) {
	if !c.expands || !wantsSize(w.claim) {
		w.resize, w.inUse, w.waits = attempt{}, false, ""
		return step{}, nil
	}
	unknown := resizeUnknown(w.claim, w.resize)
	target, ok := expansionTarget(w.claim, w.volume, resizeEnded(w.claim, w.resize), c.nodeOnly)
	if !ok {
		w.resize = attempt{}
		return step{}, nil
	}
	if wait, err := c.waitsForPods(ctx, w, unknown); wait || err != nil {
		return step{}, err
	}
	if wait := c.resizeWait(w, target); wait > 0 {
		return step{wait, unknown}, nil
	}
	request, err := c.expandRequest(ctx, w, target)
	if err != nil {
		// Nothing was asked of the driver, and what is known of the last call holds.
		w.resize.aim(sizeKey(target))
		return c.resizeAgain(ctx, w, target, err, w.resize.ended, false), nil
	}
	if err := c.markResizing(ctx, w, target); err != nil {
		return step{}, err
	}
	w.resize.begin(sizeKey(target))
	stop := c.tellStart(ctx, w.claim, &w.resize, "Resizing", fmt.Sprintf("Volume %s is being expanded to %s", w.volume.Name, target.String()))
	answer, err := c.callExpand(ctx, request, target)
	stop()
	if err != nil {
		return c.expandFailed(ctx, w, target, err)
	}
	return step{}, c.expanded(ctx, w, answer)
}

// resizeWait is how long to wait before a volume is expanded to a size. A node
// that failed for good is given its next chance after the longest delay unless
// the claim asks for another size: it would fail again, as fast as it is asked.
func (c *controller) resizeWait(w *work, target resource.Quantity) time.Duration {
	now, key := c.env.Clock.Now(), sizeKey(target)
	begun, ok := allocated(w.claim)
	if resizeStatus(w.claim) == v1.PersistentVolumeClaimNodeResizeInfeasible && ok && begun.Cmp(target) == 0 && w.resize.target != key {
		w.resize = attempt{target: key, notBefore: now.Add(c.config.RetryMax)}
	}
	return w.resize.wait(key, now)
}

// markResizing writes what is about to be done into the claim's status. A
// repetition finds it there.
func (c *controller) markResizing(ctx context.Context, w *work, target resource.Quantity) error {
	return c.patchClaim(ctx, w, true, func(claim *v1.PersistentVolumeClaim) {
		delete(claim.Annotations, noNodeExpansion)
		if begun, ok := allocated(claim); !ok || begun.Cmp(target) != 0 || !repeats(resizeStatus(claim)) {
			setSize(&claim.Status.AllocatedResources, target)
			setResizeStatus(claim, v1.PersistentVolumeClaimControllerResizeInProgress)
			dropConditions(claim, v1.PersistentVolumeClaimControllerResizeError,
				v1.PersistentVolumeClaimNodeResizeError, v1.PersistentVolumeClaimFileSystemResizePending)
		}
		if !hasCondition(claim, v1.PersistentVolumeClaimResizing) {
			setCondition(claim, c.env.Clock.Now(), v1.PersistentVolumeClaimResizing, "", "")
		}
	})
}

// repeats reports whether a call for the allocated size is a repetition of one
// that left this status, which stays until the call has ended.
func repeats(status v1.ClaimResourceStatus) bool {
	switch status {
	case v1.PersistentVolumeClaimControllerResizeInProgress, v1.PersistentVolumeClaimControllerResizeInfeasible,
		v1.PersistentVolumeClaimNodeResizeInfeasible:
		return true
	default:
		return false
	}
}

// expanded writes what the driver answered: first into the volume, so that
// the claim never has more than its volume.
func (c *controller) expanded(ctx context.Context, w *work, answer expansion) error {
	has := w.volume.Spec.Capacity[v1.ResourceStorage]
	// Volumes do not shrink. One that only nodes expand has not grown yet.
	if !c.nodeOnly && has.Cmp(answer.size) > 0 {
		answer.size = has
	}
	before := w.claim.Status.Capacity[v1.ResourceStorage]
	if err := c.patchVolume(ctx, w, func(volume *v1.PersistentVolume) {
		setSize(&volume.Spec.Capacity, answer.size)
		if _, has := volume.Annotations[sizeBefore]; answer.node && !has && !c.config.NoResizeAnnotation {
			if volume.Annotations == nil {
				volume.Annotations = map[string]string{}
			}
			volume.Annotations[sizeBefore] = before.String()
		}
	}); err != nil {
		return err
	}
	if err := c.patchClaim(ctx, w, false, func(claim *v1.PersistentVolumeClaim) { c.writeExpanded(claim, answer) }); err != nil {
		return err
	}
	w.resize, w.inUse, w.waits = attempt{}, false, ""
	if answer.node {
		c.events.Eventf(w.claim, v1.EventTypeNormal, "FileSystemResizeRequired",
			"Volume %s has %s now; its file system is to grow on the node", w.volume.Name, answer.size.String())
	} else {
		c.events.Eventf(w.claim, v1.EventTypeNormal, "VolumeResizeSuccessful",
			"Volume %s has %s now", w.volume.Name, answer.size.String())
	}
	return nil
}

// writeExpanded sets the status of a claim whose volume was expanded.
func (c *controller) writeExpanded(claim *v1.PersistentVolumeClaim, answer expansion) {
	dropConditions(claim, v1.PersistentVolumeClaimControllerResizeError, v1.PersistentVolumeClaimNodeResizeError)
	if answer.node {
		delete(claim.Annotations, noNodeExpansion)
		setResizeStatus(claim, v1.PersistentVolumeClaimNodeResizePending)
		setCondition(claim, c.env.Clock.Now(), v1.PersistentVolumeClaimFileSystemResizePending, "",
			"The volume has grown. Its file system grows when a pod uses it on a node.")
		return
	}
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[noNodeExpansion] = "true"
	setSize(&claim.Status.Capacity, answer.size)
	setResizeStatus(claim, "")
	dropConditions(claim, v1.PersistentVolumeClaimResizing, v1.PersistentVolumeClaimFileSystemResizePending)
}

// expandFailed writes what is known after a call that failed.
func (c *controller) expandFailed(ctx context.Context, w *work, target resource.Quantity, cause error) (step, error) {
	if ctx.Err() != nil {
		return step{}, ctx.Err()
	}
	ended := csiclient.IsFinal(cause)
	infeasible := ended && isInfeasible(cause)
	message := failure(cause)
	if err := c.patchClaim(ctx, w, false, func(claim *v1.PersistentVolumeClaim) {
		switch {
		case infeasible:
			setResizeStatus(claim, v1.PersistentVolumeClaimControllerResizeInfeasible)
		case !ended && resizeStatus(claim) == v1.PersistentVolumeClaimControllerResizeInfeasible:
			// A repetition that nobody knows the end of.
			setResizeStatus(claim, v1.PersistentVolumeClaimControllerResizeInProgress)
		}
		if ended {
			setCondition(claim, c.env.Clock.Now(), v1.PersistentVolumeClaimControllerResizeError, "", message)
		}
	}); err != nil {
		return step{}, fmt.Errorf("expand volume %s to %s: %w; %w", w.volume.Name, target.String(), cause, err)
	}
	w.inUse = status.Code(cause) == codes.FailedPrecondition
	return c.resizeAgain(ctx, w, target, cause, ended, infeasible), nil
}

// resizeAgain reports a failure and says when the next attempt is.
func (c *controller) resizeAgain(ctx context.Context, w *work, target resource.Quantity, cause error, ended, infeasible bool) step {
	retryMin := c.config.RetryMin
	if infeasible {
		retryMin = c.config.RetryMax
	}
	delay := w.resize.fail(c.env.Clock.Now(), ended, retryMin, c.config.RetryMax)
	c.events.Eventf(w.claim, v1.EventTypeWarning, "VolumeResizeFailed", "Expand volume %s to %s: %s", w.volume.Name, target.String(), failure(cause))
	c.log.WarnContext(ctx, "Volume not expanded", "claim", w.key, "volume", w.volume.Name, "size", target.String(),
		"failures", w.resize.failures, "again", delay, "error", cause)
	return step{delay, resizeUnknown(w.claim, w.resize)}
}

// isInfeasible reports whether the driver will refuse the same size or class
// for as long as nothing else changes.
//
// Source: KEP-1790, infeasible errors.
func isInfeasible(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound:
		return true
	default:
		return false
	}
}

func isUnimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }

// failure is an error as people read it in events and conditions.
func failure(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Code().String() + ": " + s.Message()
	}
	return err.Error()
}
