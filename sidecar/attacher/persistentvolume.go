package attacher

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/csi-windows/csi-windows/sidecar"
)

// mayFree reports whether a volume is to lose the finalizer as soon as nothing
// attaches it.
func (r *run) mayFree(pv *v1.PersistentVolume) bool {
	if !r.hasFinalizer(pv) {
		return false
	}
	if pv.DeletionTimestamp != nil {
		return true
	}
	// A volume of an in-tree plugin that was given back to it.
	return pv.Spec.CSI == nil && pv.Annotations[migratedToAnnotation] != r.driver && r.translator.IsPVMigratable(pv)
}

// syncVolume removes the finalizer of a volume that is being deleted.
func (r *run) syncVolume(ctx context.Context, name string) error {
	pv, err := r.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read PersistentVolume %s: %w", name, err)
	}
	if !r.mayFree(pv) || r.leavesToProvisioner(pv) {
		return nil
	}
	users, err := r.attachmentIndex.ByIndex(byVolume, name)
	if err != nil {
		return fmt.Errorf("look for what attaches PersistentVolume %s: %w", name, err)
	}
	if len(users) > 0 {
		return nil // its end brings the volume back
	}
	metadata, _ := r.withoutFinalizer(pv)
	return ignoreGone(r.patchVolume(ctx, pv, "remove the finalizer of", object{"metadata": metadata}))
}

// leavesToProvisioner reports whether the provisioner of this process removes
// the finalizer together with its own, when it has deleted the volume: one
// request for both.
func (r *run) leavesToProvisioner(pv *v1.PersistentVolume) bool {
	return pv.DeletionTimestamp != nil && slices.Contains(r.env.Running, sidecar.Provisioner) &&
		slices.Contains(pv.Finalizers, provisionerFinalizer) &&
		pv.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete
}
