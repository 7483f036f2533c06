package resizer

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// modify brings the change of a volume's attributes class as far as it goes now.
func (c *controller) modify(ctx context.Context, w *work) (step, error) {
	if !c.modifies || w.volume.Spec.CSI == nil || !wantsClass(w.claim) {
		w.modify = attempt{}
		return step{}, nil
	}
	unknown := modifyUnknown(w.claim, w.modify)
	what, name := modificationTarget(w.claim, unknown)
	switch what {
	case apply:
		return c.applyClass(ctx, w, name, unknown)
	case cancel:
		return step{}, c.cancelModify(ctx, w, name)
	case withdraw:
		w.modify = attempt{}
		return step{}, c.patchClaim(ctx, w, true, func(claim *v1.PersistentVolumeClaim) { claim.Status.ModifyVolumeStatus = nil })
	default:
		w.modify = attempt{}
		return step{}, nil
	}
}

// applyClass gives the volume a class.
func (c *controller) applyClass(ctx context.Context, w *work, name string, unknown bool) (step, error) {
	if wait := w.modify.wait(name, c.env.Clock.Now()); wait > 0 {
		return step{wait, unknown}, nil
	}
	found, err := c.classes.Get(name)
	if apierrors.IsNotFound(err) {
		return step{unknown: unknown}, c.waitForClass(ctx, w, name, unknown, "does not exist")
	}
	if err != nil {
		return step{}, fmt.Errorf("find attributes class %s: %w", name, err)
	}
	if found.DriverName != c.name {
		return step{unknown: unknown}, c.waitForClass(ctx, w, name, unknown, "is of driver "+found.DriverName)
	}
	last := &w.modify
	request, err := c.modifyRequest(ctx, w, found.Parameters)
	if err != nil {
		last.aim(name)
		return c.modifyAgain(ctx, w, name, err, last.ended, false), nil
	}
	if err := c.markModifying(ctx, w, name); err != nil {
		return step{}, err
	}
	last.begin(name)
	stop := c.tellStart(ctx, w.claim, last, "VolumeModify", fmt.Sprintf("Volume %s is being modified to class %s", w.volume.Name, name))
	err = c.callModify(ctx, request)
	stop()
	if err != nil {
		return c.modifyFailed(ctx, w, name, err)
	}
	return step{}, c.modified(ctx, w, name)
}

// waitForClass says why the class cannot be applied. A class that is made goes on.
func (c *controller) waitForClass(ctx context.Context, w *work, name string, unknown bool, why string) error {
	// A class that is being applied is named in the status already.
	if !unknown {
		if err := c.patchClaim(ctx, w, true, func(claim *v1.PersistentVolumeClaim) {
			if claim.Status.ModifyVolumeStatus == nil {
				claim.Status.ModifyVolumeStatus = &v1.ModifyVolumeStatus{}
			}
			claim.Status.ModifyVolumeStatus.Status = v1.PersistentVolumeClaimModifyVolumePending
		}); err != nil {
			return err
		}
	}
	if last := &w.modify; last.target != missing+name {
		*last = attempt{target: missing + name}
		c.events.Eventf(w.claim, v1.EventTypeWarning, "VolumeModifyFailed", "Attributes class %s %s", name, why)
	}
	return nil
}

// missing begins the target of an attempt whose class is not there. It is no
// character of a class' name.
const missing = "?"

// markModifying writes what is about to be done into the claim's status.
func (c *controller) markModifying(ctx context.Context, w *work, name string) error {
	return c.patchClaim(ctx, w, true, func(claim *v1.PersistentVolumeClaim) {
		const pending = v1.PersistentVolumeClaimModifyVolumePending
		if last, begun := modifyStatus(claim); last == "" || last == pending || begun != name {
			claim.Status.ModifyVolumeStatus = &v1.ModifyVolumeStatus{
				TargetVolumeAttributesClassName: name, Status: v1.PersistentVolumeClaimModifyVolumeInProgress,
			}
			dropConditions(claim, v1.PersistentVolumeClaimVolumeModifyVolumeError, v1.PersistentVolumeClaimVolumeModifyingVolume)
		}
		if !hasCondition(claim, v1.PersistentVolumeClaimVolumeModifyingVolume) {
			setCondition(claim, c.env.Clock.Now(), v1.PersistentVolumeClaimVolumeModifyingVolume, "", "The volume is being modified to class "+name)
		}
	})
}

// modified writes that the volume has its class: first into the volume.
func (c *controller) modified(ctx context.Context, w *work, name string) error {
	if err := c.patchVolume(ctx, w, func(volume *v1.PersistentVolume) { volume.Spec.VolumeAttributesClassName = &name }); err != nil {
		return err
	}
	if err := c.patchClaim(ctx, w, false, func(claim *v1.PersistentVolumeClaim) {
		claim.Status.ModifyVolumeStatus = nil
		claim.Status.CurrentVolumeAttributesClassName = &name
		dropConditions(claim, v1.PersistentVolumeClaimVolumeModifyVolumeError, v1.PersistentVolumeClaimVolumeModifyingVolume)
	}); err != nil {
		return err
	}
	w.modify = attempt{}
	c.events.Eventf(w.claim, v1.EventTypeNormal, "VolumeModifySuccessful", "Volume %s has class %s now", w.volume.Name, name)
	return nil
}

// cancelModify ends the attempts to give the volume a class the claim does not
// ask for any more. What is recorded of the last one stays: nobody knows what
// the volume has of it.
func (c *controller) cancelModify(ctx context.Context, w *work, name string) error {
	if err := c.patchClaim(ctx, w, true, func(claim *v1.PersistentVolumeClaim) {
		dropConditions(claim, v1.PersistentVolumeClaimVolumeModifyingVolume)
	}); err != nil {
		return err
	}
	w.modify = attempt{}
	c.events.Eventf(w.claim, v1.EventTypeNormal, "VolumeModifyCanceled", "Volume %s is no longer to be modified to class %s", w.volume.Name, name)
	return nil
}

// modifyFailed writes what is known after a call that failed.
func (c *controller) modifyFailed(ctx context.Context, w *work, name string, cause error) (step, error) {
	if ctx.Err() != nil {
		return step{}, ctx.Err()
	}
	ended := csiclient.IsFinal(cause)
	// Source: KEP-3751: only an invalid argument makes a class infeasible.
	infeasible := status.Code(cause) == codes.InvalidArgument
	if err := c.patchClaim(ctx, w, false, func(claim *v1.PersistentVolumeClaim) {
		progress := "The volume is still being modified to class " + name
		if ended {
			progress = "The modification of the volume to class " + name + " failed and will be tried again"
		}
		if claim.Status.ModifyVolumeStatus != nil {
			switch {
			case infeasible:
				claim.Status.ModifyVolumeStatus.Status = v1.PersistentVolumeClaimModifyVolumeInfeasible
			case !ended:
				claim.Status.ModifyVolumeStatus.Status = v1.PersistentVolumeClaimModifyVolumeInProgress
			}
		}
		now := c.env.Clock.Now()
		setCondition(claim, now, v1.PersistentVolumeClaimVolumeModifyingVolume, "", progress)
		setCondition(claim, now, v1.PersistentVolumeClaimVolumeModifyVolumeError, status.Code(cause).String(), status.Convert(cause).Message())
	}); err != nil {
		return step{}, fmt.Errorf("modify volume %s to class %s: %w; %w", w.volume.Name, name, cause, err)
	}
	return c.modifyAgain(ctx, w, name, cause, ended, infeasible), nil
}

// modifyAgain reports a failure and says when the next attempt is.
func (c *controller) modifyAgain(ctx context.Context, w *work, name string, cause error, ended, infeasible bool) step {
	retryMin := c.config.RetryMin
	if infeasible {
		retryMin = c.config.RetryMax
	}
	delay := w.modify.fail(c.env.Clock.Now(), ended, retryMin, c.config.RetryMax)
	c.events.Eventf(w.claim, v1.EventTypeWarning, "VolumeModifyFailed", "Modify volume %s to class %s: %s", w.volume.Name, name, failure(cause))
	c.log.WarnContext(ctx, "Volume not modified", "claim", w.key, "volume", w.volume.Name, "class", name,
		"failures", w.modify.failures, "again", delay, "error", cause)
	return step{delay, modifyUnknown(w.claim, w.modify)}
}
