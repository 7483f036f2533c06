package attacher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/queue"
)

const (
	// cacheLag is how long an object that others name may take to come into the
	// cache, before it is reported as missing.
	cacheLag = 2 * time.Second
	// conflictDelay is the wait for the cache after another one wrote an object.
	conflictDelay = 250 * time.Millisecond
)

// attach attaches a volume, or says in the status why it is not attached.
func (r *run) attach(ctx context.Context, va *storagev1.VolumeAttachment) error {
	err := r.publish(ctx, va)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if !r.isWanted(va) {
		// Its deletion brings it back, and then it is detached.
		return nil
	}
	var missing *unmet
	isUnmet := errors.As(err, &missing)
	if isUnmet && missing.isAbsent {
		if age := r.clock.Since(va.CreationTimestamp.Time); age >= 0 && age < cacheLag {
			return queue.After(cacheLag - age)
		}
	}
	if write := (*writeError)(nil); errors.As(err, &write) && (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) {
		return queue.After(conflictDelay)
	}
	if change := failure(va.Status.AttachError, err, metav1.NewTime(r.clock.Now())); change != nil {
		if isUnmet {
			r.log.WarnContext(ctx, "Not attached; waiting for a change", "attachment", va.Name, "error", err)
		}
		_, saved := r.patchAttachment(ctx, va, "report the failure of", object{"status": object{"attachError": change}}, "status")
		if isUnmet {
			return ignoreGone(saved)
		}
		err = errors.Join(err, ignoreGone(saved))
	}
	if isUnmet {
		return nil
	}
	return err
}

// publish has the driver attach a volume and puts its answer into the status.
func (r *run) publish(ctx context.Context, va *storagev1.VolumeAttachment) error {
	v, err := r.volumeOf(va)
	if err != nil {
		return err
	}
	nodeID, err := r.registeredNodeID(va.Spec.NodeName)
	if err != nil {
		return err
	}
	if v.pv != nil && v.pv.DeletionTimestamp != nil {
		return unmetf("PersistentVolume %s is being deleted", v.pv.Name)
	}
	request, err := r.publishRequest(v, nodeID)
	if err != nil {
		return err
	}
	if request.Secrets, err = r.secrets(ctx, v.source.ControllerPublishSecretRef); err != nil {
		return err
	}
	if err = r.guard(ctx, v.pv); err != nil {
		return err
	}
	target := v.at(va, nodeID)
	if err = r.leaveFormerNode(ctx, va, target); err != nil {
		return err
	}
	unlock, err := r.locks.lock(ctx, target)
	if err != nil {
		return err
	}
	defer unlock()
	cached := va.ResourceVersion
	if va, err = r.announce(ctx, va, nodeID); err != nil {
		return err
	}
	r.memory.hold(va.Name, target)
	call, cancel := r.callContext(ctx, target)
	defer cancel()
	response, err := r.controller.ControllerPublishVolume(call, request)
	if err != nil {
		return callError("attach", "to", target, err)
	}
	return r.published(ctx, va, cached, response.GetPublishContext())
}

// published says in the status that a volume is attached. The version is the one that
// the cache had.
func (r *run) published(ctx context.Context, va *storagev1.VolumeAttachment, cached string, publishContext map[string]string) error {
	change := attachedStatus(va, publishContext)
	if change == nil || !r.isWanted(va) {
		return nil
	}
	written, err := r.patchAttachment(ctx, va, "mark as attached", object{"status": change}, "status")
	if err == nil {
		r.memory.outdate(written, cached, va.ResourceVersion)
		r.memory.written(va.Name, va.UID)
		r.log.InfoContext(ctx, "Attached", "attachment", va.Name, "node", va.Spec.NodeName)
	}
	return err
}

// isWanted reports whether the VolumeAttachment is there and not deleted.
func (r *run) isWanted(va *storagev1.VolumeAttachment) bool {
	now, err := r.attachments.Get(va.Name)
	return err == nil && now.UID == va.UID && now.DeletionTimestamp == nil
}

// guard puts the finalizer on a volume, so that it stays as long as it may be
// attached.
func (r *run) guard(ctx context.Context, pv *v1.PersistentVolume) error {
	if pv == nil || r.hasFinalizer(pv) {
		return nil
	}
	return r.patchVolume(ctx, pv, "put the finalizer on", object{"metadata": r.withFinalizer(pv)})
}

// announce writes that the volume may be attached from now on, and where.
func (r *run) announce(ctx context.Context, va *storagev1.VolumeAttachment, nodeID string) (*storagev1.VolumeAttachment, error) {
	metadata := object{}
	if !r.hasFinalizer(va) {
		metadata = r.withFinalizer(va)
	}
	if va.Annotations[nodeIDAnnotation] != nodeID {
		metadata["annotations"] = object{nodeIDAnnotation: nodeID}
	}
	if len(metadata) == 0 {
		return va, nil
	}
	return r.patchAttachment(ctx, va, "put the finalizer on", object{"metadata": metadata})
}

// leaveFormerNode detaches the volume from where it was published before under
// another id: the node was replaced by one of the same name.
func (r *run) leaveFormerNode(ctx context.Context, va *storagev1.VolumeAttachment, target attachment) error {
	former, ok := r.memory.holding(va.Name)
	if !ok {
		former = target
		former.nodeID = va.Annotations[nodeIDAnnotation]
		ok = former.nodeID != "" && r.hasFinalizer(va)
	}
	if !ok || former.isAt(target) {
		return nil
	}
	err := r.unpublish(ctx, va.Name, former)
	switch status.Code(err) {
	case codes.NotFound, codes.InvalidArgument:
		// The driver knows no such node, or no longer any id of that form, and it
		// is the one to say whether the volume can be attached all the same.
		return nil
	}
	if err != nil {
		return fmt.Errorf("leave the former node: %w", err)
	}
	return nil
}

// callContext bounds a CSI call, and says in the metrics whose volume it is for.
func (r *run) callContext(ctx context.Context, a attachment) (context.Context, context.CancelFunc) {
	migrated := connection.AdditionalInfo{Migrated: fmt.Sprint(a.isMigrated)}
	return context.WithTimeout(context.WithValue(ctx, connection.AdditionalInfoKey, migrated), r.config.Timeout)
}

// callError says what a failed call was for, and whether it may have its
// effect after all: people read it in the events of a pod.
func callError(what, preposition string, a attachment, err error) error {
	note := ""
	if !csiclient.IsFinal(err) {
		note = " (the driver may be at it still, and is asked again)"
	}
	return fmt.Errorf("%s volume %q %s node %q: %w%s", what, a.volumeID, preposition, a.nodeID, err, note)
}
