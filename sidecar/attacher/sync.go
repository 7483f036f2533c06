package attacher

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
)

// syncAttachment does what a VolumeAttachment asks for.
func (r *run) syncAttachment(ctx context.Context, name string) error {
	va, err := r.attachments.Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read VolumeAttachment %s: %w", name, err)
	}
	isOurs := err == nil && va.Spec.Attacher == r.driver
	if held, ok := r.memory.holding(name); ok && (!isOurs || held.uid != va.UID && !held.isOf(va)) {
		// The VolumeAttachment went without its finalizer being minded.
		if err := r.releaseOrphan(ctx, name, held); err != nil {
			return err
		}
	}
	switch {
	case !isOurs:
		return nil
	case !r.can.publish:
		return r.syncTrivial(ctx, va)
	case va.DeletionTimestamp != nil:
		return r.detach(ctx, va)
	case r.memory.isPast(va):
		return nil // the status written since comes, and wakes this one where more is to be done
	}
	verdict, isMissing := r.memory.takeVerdict(name, va.UID)
	switch {
	case va.Status.Attached && isMissing:
		return r.repair(ctx, va, verdict)
	case va.Status.Attached, r.memory.isLost(va.UID):
		return nil
	default:
		return r.attach(ctx, va)
	}
}

// syncTrivial is for a driver whose volumes are never attached: it is enough to
// say that they are.
func (r *run) syncTrivial(ctx context.Context, va *storagev1.VolumeAttachment) error {
	if va.DeletionTimestamp != nil {
		if !r.hasFinalizer(va) {
			return nil
		}
		// From when the driver still attached volumes.
		return r.removeFinalizer(ctx, va)
	}
	if va.Status.Attached {
		return nil
	}
	_, err := r.patchAttachment(ctx, va, "mark as attached", object{"status": attachedStatus(va, nil)}, "status")
	return ignoreGone(err)
}

// ignoreGone takes it as success that an object to be changed is gone.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// remember keeps what a former run may have attached, before any work begins.
func (r *run) remember() error {
	all, err := r.attachments.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("read VolumeAttachments: %w", err)
	}
	for _, va := range all {
		nodeID := va.Annotations[nodeIDAnnotation]
		if va.Spec.Attacher != r.driver || nodeID == "" || !r.hasFinalizer(va) {
			continue
		}
		if v, err := r.volumeOf(va); err == nil {
			r.memory.hold(va.Name, v.at(va, nodeID))
		}
	}
	return nil
}
