package attacher

import (
	"context"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// detach detaches the volume of a VolumeAttachment that is being deleted, and
// lets the VolumeAttachment go.
func (r *run) detach(ctx context.Context, va *storagev1.VolumeAttachment) error {
	held, isHeld := r.memory.holding(va.Name)
	if !r.hasFinalizer(va) {
		if isHeld {
			// Someone else removed the finalizer.
			if err := r.releaseOrphan(ctx, va.Name, held); err != nil {
				return err
			}
		}
		return r.markDetached(ctx, va)
	}
	target, mayBeAttached, err := r.attachmentOf(ctx, va)
	if err == nil && mayBeAttached {
		err = r.unpublish(ctx, va.Name, target)
	}
	if err != nil {
		return r.detachFailed(ctx, va, err)
	}
	r.log.InfoContext(ctx, "Detached", "attachment", va.Name, "node", va.Spec.NodeName)
	return r.removeFinalizer(ctx, va)
}

// attachmentOf is where the volume of a VolumeAttachment may be attached. What
// the VolumeAttachment says of the node comes first: the node may be gone, or
// replaced by one of its name.
func (r *run) attachmentOf(ctx context.Context, va *storagev1.VolumeAttachment) (target attachment, mayBeAttached bool, err error) {
	v, err := r.volumeOf(va)
	missing := (*unmet)(nil)
	if errors.As(err, &missing) {
		if held, ok := r.memory.holding(va.Name); ok {
			return held, true, nil
		}
		if missing.isAbsent {
			v, err = r.missingVolume(ctx, volumeName(va))
		}
	}
	if errors.As(err, &missing) {
		r.log.WarnContext(ctx, "Nothing is known any more of what to detach; the VolumeAttachment goes without",
			"attachment", va.Name, "node", va.Spec.NodeName, "error", err)
		return attachment{}, false, nil
	}
	if err != nil {
		return attachment{}, false, err
	}
	nodeID := va.Annotations[nodeIDAnnotation]
	if nodeID == "" {
		if nodeID, err = r.registeredNodeID(va.Spec.NodeName); err != nil {
			return attachment{}, false, err
		}
	}
	return v.at(va, nodeID), true, nil
}

func (r *run) detachFailed(ctx context.Context, va *storagev1.VolumeAttachment, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if change := failure(va.Status.DetachError, err, metav1.NewTime(r.clock.Now())); change != nil {
		_, saved := r.patchAttachment(ctx, va, "report the failure of", object{"status": object{"detachError": change}}, "status")
		err = errors.Join(err, ignoreGone(saved))
	}
	return err
}

// unpublish has the driver detach a volume from a node, unless another
// VolumeAttachment has it there: that one detaches it when it goes.
func (r *run) unpublish(ctx context.Context, name string, target attachment) error {
	secrets, err := r.secrets(ctx, target.secret)
	if err != nil {
		return err
	}
	unlock, err := r.locks.lock(ctx, target)
	if err != nil {
		return err
	}
	defer unlock()
	if !r.memory.isShared(name, target) {
		call, cancel := r.callContext(ctx, target)
		defer cancel()
		request := &csi.ControllerUnpublishVolumeRequest{VolumeId: target.volumeID, NodeId: target.nodeID, Secrets: secrets}
		if _, err = r.controller.ControllerUnpublishVolume(call, request); err != nil {
			return callError("detach", "from", target, err)
		}
	}
	r.memory.release(name)
	return nil
}

// releaseOrphan detaches a volume whose VolumeAttachment is gone.
func (r *run) releaseOrphan(ctx context.Context, name string, held attachment) error {
	if err := r.unpublish(ctx, name, held); err != nil {
		return fmt.Errorf("the VolumeAttachment is gone: %w", err)
	}
	r.log.WarnContext(ctx, "Detached a volume whose VolumeAttachment went before it", "attachment", name, "node", held.nodeName)
	return nil
}

// removeFinalizer lets a VolumeAttachment go. Where nothing else holds it, that
// is the last of it, and its status need not be written any more.
func (r *run) removeFinalizer(ctx context.Context, va *storagev1.VolumeAttachment) error {
	metadata, isLast := r.withoutFinalizer(va)
	written, err := r.patchAttachment(ctx, va, "remove the finalizer of", object{"metadata": metadata})
	if err != nil || isLast {
		return ignoreGone(err)
	}
	return r.markDetached(ctx, written)
}

// markDetached writes that a volume is detached, for those that look at a
// VolumeAttachment held by others.
func (r *run) markDetached(ctx context.Context, va *storagev1.VolumeAttachment) error {
	if !va.Status.Attached && va.Status.DetachError == nil && len(va.Status.AttachmentMetadata) == 0 {
		return nil
	}
	change := object{"attached": false, "detachError": nil, "attachmentMetadata": nil}
	_, err := r.patchAttachment(ctx, va, "mark as detached", object{"status": change}, "status")
	return ignoreGone(err)
}
