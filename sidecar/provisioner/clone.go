package provisioner

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/csi-windows/csi-windows/sidecar/queue"
)

// watchSource looks whether a change of a claim lets a source of clones go:
// the source itself is being deleted, or one of its clones is made or gone.
func (r *run) watchSource(claim *v1.PersistentVolumeClaim) {
	if waitsAsSource(claim) {
		r.cloning.Add(claim.Namespace + "/" + claim.Name)
	}
	from, ok := fillingOf(claim)
	if !ok || !from.isClaim() {
		return
	}
	key := from.namespace + "/" + from.name
	if object, exists, err := r.claims.GetStore().GetByKey(key); err == nil && exists && waitsAsSource(object.(*v1.PersistentVolumeClaim)) {
		r.cloning.Add(key)
	}
}

func waitsAsSource(claim *v1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp != nil && slices.Contains(claim.Finalizers, cloneFinalizer)
}

// freeSource removes the finalizer from a source that is being deleted when no
// clone of it is waited for. A source that is not being deleted keeps it: that
// costs nothing, and the next clone needs it again.
func (r *run) freeSource(ctx context.Context, key string) error {
	object, exists, err := r.claims.GetStore().GetByKey(key)
	if err != nil || !exists {
		return err
	}
	source := object.(*v1.PersistentVolumeClaim)
	if !waitsAsSource(source) || !r.ownClaim(source) {
		return nil
	}
	claims, err := corelisters.NewPersistentVolumeClaimLister(r.claims.GetIndexer()).PersistentVolumeClaims(source.Namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("clones of claim %s: %w", key, err)
	}
	for _, claim := range claims {
		from, ok := fillingOf(claim)
		if ok && from.isClaim() && from.name == source.Name && from.namespace == source.Namespace && claim.Status.Phase == v1.ClaimPending {
			return nil // its next change brings the key again
		}
	}
	if handle := r.handleByName(ctx, source.Spec.VolumeName); handle != "" && r.attempts.fillFrom(handle) {
		return queue.After(settleLater) // the claim of a clone is gone, the clone may be in the making
	}
	source = source.DeepCopy()
	source.Finalizers = slices.DeleteFunc(source.Finalizers, func(name string) bool { return name == cloneFinalizer })
	_, err = r.env.Kube.CoreV1().PersistentVolumeClaims(source.Namespace).Update(ctx, source, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("free claim %s from being a source: %w", key, err)
	}
	return nil
}

// handleByName is the id of a volume at the back-end, "" where it cannot be told.
func (r *run) handleByName(ctx context.Context, name string) string {
	object, exists, err := r.volumes.GetStore().GetByKey(name)
	if err != nil || !exists {
		return ""
	}
	pv, _, err := r.asCSI(ctx, object.(*v1.PersistentVolume))
	if err != nil {
		return ""
	}
	return handleOf(pv)
}

// ownClaim reports whether a bound claim's volume is of this driver. The
// provisioners of other drivers free theirs.
func (r *run) ownClaim(claim *v1.PersistentVolumeClaim) bool {
	object, exists, err := r.volumes.GetStore().GetByKey(claim.Spec.VolumeName)
	if err != nil || !exists {
		return true // nobody else can tell either
	}
	pv := object.(*v1.PersistentVolume)
	return pv.Spec.CSI == nil || pv.Spec.CSI.Driver == r.driver
}

func indexByUID(object any) ([]string, error) {
	accessor, ok := last(object).(metav1.Object)
	if !ok {
		return nil, nil
	}
	return []string{string(accessor.GetUID())}, nil
}
