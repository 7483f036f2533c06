package provisioner

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/util"
)

// volumeIndex finds attachments by the name of their volume.
const volumeIndex = "provisioner/volume"

func attachedVolume(object any) ([]string, error) {
	if a, ok := object.(*storagev1.VolumeAttachment); ok && a.Spec.Source.PersistentVolumeName != nil {
		return []string{*a.Spec.Source.PersistentVolumeName}, nil
	}
	return nil, nil
}

// A deletionStage is how far the deletion of one volume is.
type deletionStage int

const (
	// deletedThere: the volume is gone at the back-end.
	deletedThere deletionStage = iota + 1
	// freed: and its object has none of our finalizers.
	freed
	// deletedHere: and the object is deleted, though a cache may show it still.
	deletedHere
)

type deletion struct {
	stage     deletionStage
	postponed int
}

// deletions know what this run has done with volumes whose objects are still
// in the cache, so that an old object there causes no second deletion.
type deletions struct {
	mu  sync.Mutex
	all map[types.UID]deletion
}

func (d *deletions) is(uid types.UID, at deletionStage) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[uid].stage >= at
}

func (d *deletions) reach(uid types.UID, stage deletionStage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all[uid] = deletion{stage: stage}
}

// postpone counts how often a deletion found the volume in use.
func (d *deletions) postpone(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.all[uid]
	one.postponed++
	d.all[uid] = one
}

func (d *deletions) postponed(uid types.UID) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[uid].postponed
}

func (d *deletions) forget(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, uid)
}

// ShouldDelete implements controller.DeletionGuard.
func (r *run) ShouldDelete(_ context.Context, volume *v1.PersistentVolume) bool {
	return !r.deletions.is(volume.UID, deletedHere)
}

// Delete implements controller.Provisioner.
func (r *run) Delete(ctx context.Context, pv *v1.PersistentVolume) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			r.log.ErrorContext(ctx, "Panic while a volume is deleted", "volume", pv.Name, "cause", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("delete volume %s: panic: %v", pv.Name, cause)
		}
	}()
	if r.deletions.is(pv.UID, deletedThere) {
		return nil
	}
	if attachment := r.attachmentOf(pv.Name); attachment != nil {
		r.deletions.postpone(pv.UID)
		return &controller.VolumeInUseError{Reason: fmt.Sprintf("volume %s is still attached to node %s", pv.Name, attachment.Spec.NodeName)}
	}
	what, migrated, err := r.asCSI(ctx, pv)
	if err != nil {
		return err
	}
	if !r.onOwnNode(what) {
		return &controller.IgnoredError{Reason: "it is on another node"}
	}
	if err := r.canProvision(); err != nil {
		return err
	}
	secrets, err := r.deletionSecrets(ctx, what, migrated)
	if err != nil {
		return err
	}
	if err := r.deleteVolume(ctx, handleOf(what), secrets); err != nil {
		r.log.WarnContext(ctx, "Volume is not deleted, will be tried again", "volume", pv.Name, "error", err)
		return err
	}
	r.deletions.reach(pv.UID, deletedThere)
	r.capacityChanged(util.GetPersistentVolumeClass(pv), nil)
	r.log.InfoContext(ctx, "Volume is deleted", "volume", pv.Name, "handle", handleOf(what))
	return nil
}

// asCSI gives the volume as a CSI volume, which one of an old plugin is not.
func (r *run) asCSI(ctx context.Context, pv *v1.PersistentVolume) (what *v1.PersistentVolume, migrated bool, err error) {
	if r.translator.IsPVMigratable(pv) {
		pv, err = r.translator.TranslateInTreePVToCSI(logr.FromContextOrDiscard(ctx), pv)
		if err != nil {
			return nil, true, fmt.Errorf("delete volume: %w", err)
		}
		migrated = true
	}
	if pv.Spec.CSI == nil {
		return nil, migrated, fmt.Errorf("delete volume %s: it is no CSI volume", pv.Name)
	}
	return pv, migrated, nil
}

func (r *run) attachmentOf(volumeName string) *storagev1.VolumeAttachment {
	if r.attachments == nil {
		return nil
	}
	found, err := r.attachments.GetIndexer().ByIndex(volumeIndex, volumeName)
	if err != nil || len(found) == 0 {
		return nil
	}
	attachment, _ := found[0].(*storagev1.VolumeAttachment)
	return attachment
}

// attachmentGone takes up a deletion that waited for the volume's detachment.
func (r *run) attachmentGone(object any) {
	names, _ := attachedVolume(last(object)) // it never fails
	for _, name := range names {
		found, exists, err := r.volumes.GetStore().GetByKey(name)
		if err != nil || !exists || r.attachmentOf(name) != nil {
			continue
		}
		if pv, ok := found.(*v1.PersistentVolume); ok && r.deletions.postponed(pv.UID) > 0 {
			r.volumes.seeAgain(pv)
		}
	}
}

// deletionSecrets are what the driver needs to delete the volume. That they
// cannot be had any more, because their namespace is being deleted for
// instance, does not stop the deletion: the driver may do without. That they cannot
// be read at the moment does: without them a driver may find no volume to delete.
func (r *run) deletionSecrets(ctx context.Context, pv *v1.PersistentVolume, migrated bool) (map[string]string, error) {
	ref, err := r.deletionSecret(ctx, pv, migrated)
	if err == nil {
		var secrets map[string]string
		secrets, err = r.credentials(ctx, ref)
		if err == nil || (!apierrors.IsNotFound(err) && !apierrors.IsForbidden(err)) {
			return secrets, err
		}
	}
	r.log.WarnContext(ctx, "Volume is deleted without secrets", "volume", pv.Name, "error", err)
	return nil, nil // there is nothing to have
}

func (r *run) deletionSecret(ctx context.Context, pv *v1.PersistentVolume, migrated bool) (*v1.SecretReference, error) {
	if metav1.HasAnnotation(pv.ObjectMeta, annDeletionSecretName) && metav1.HasAnnotation(pv.ObjectMeta, annDeletionSecretSpace) {
		return &v1.SecretReference{Name: pv.Annotations[annDeletionSecretName], Namespace: pv.Annotations[annDeletionSecretSpace]}, nil
	}
	// A volume of a provisioner from before the annotations, or one that was
	// made by hand: its class, if it is still there, says which.
	class := r.classes.class(util.GetPersistentVolumeClass(pv))
	if class == nil || pv.Spec.ClaimRef == nil {
		return nil, nil
	}
	if migrated && class.Provisioner == r.inTree {
		var err error
		if class, err = r.translator.TranslateInTreeStorageClassToCSI(logr.FromContextOrDiscard(ctx), r.inTree, class); err != nil {
			return nil, fmt.Errorf("class %s: %w", class.Name, err)
		}
	}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: pv.Spec.ClaimRef.Name, Namespace: pv.Spec.ClaimRef.Namespace}}
	return secretProvisioner.reference(class.Parameters, pv.Name, claim)
}

// deleteVolume asks the driver once.
func (r *run) deleteVolume(ctx context.Context, id string, secrets map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	if _, err := r.csi.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id, Secrets: secrets}); err != nil {
		return fmt.Errorf("delete volume %s: %w", id, err)
	}
	return nil
}

// onOwnNode reports whether this provisioner is the one for the volume. With
// one on each node, that is the one on the only node that reaches it.
func (r *run) onOwnNode(pv *v1.PersistentVolume) bool {
	return r.node == nil || volume.CheckNodeAffinity(pv, r.node.segments) == nil
}

func (r *run) capacityChanged(class string, where []*csi.Topology) {
	if r.config.CapacityChanged != nil {
		r.config.CapacityChanged(class, where)
	}
}
