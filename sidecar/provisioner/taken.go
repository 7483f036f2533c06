package provisioner

import (
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// takenNames knows the claims that wait for the name of their volume, which the
// object of another volume has. Names of few characters are the usual cause.
type takenNames struct {
	mu      sync.Mutex
	waiting map[string][]types.UID
}

func (t *takenNames) wait(name string, claim types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.waiting[name], claim) {
		t.waiting[name] = append(t.waiting[name], claim)
	}
}

func (t *takenNames) free(name string) []types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	claims := t.waiting[name]
	delete(t.waiting, name)
	return claims
}

// nameIsTaken reports whether the object of another volume has the name that the
// claim's volume is to have. The library would pass over such a claim for ever,
// without a word.
func (r *run) nameIsTaken(claim *v1.PersistentVolumeClaim) bool {
	name := r.volumeName(claim)
	if !r.heldByAnother(name, claim) {
		return false
	}
	r.taken.wait(name, claim.UID)
	if !r.heldByAnother(name, claim) {
		return false // it went before we waited
	}
	r.events.warn(refTo(claim), reasonFailed, fmt.Sprintf("Volume object %s, whose name the claim's volume is to have, belongs to another volume or claim", name))
	return true
}

func (r *run) heldByAnother(name string, claim *v1.PersistentVolumeClaim) bool {
	object, exists, err := r.volumes.GetStore().GetByKey(name)
	if err != nil || !exists {
		return false
	}
	of := object.(*v1.PersistentVolume).Spec.ClaimRef
	isOwn := of != nil && (of.UID == claim.UID || of.UID == "" && of.Namespace == claim.Namespace && of.Name == claim.Name)
	return !isOwn // its own is about to be bound
}

// nameIsFree takes up the claims that a volume object, which is gone, kept from
// having one: others of its name, and its own if it was never bound.
func (r *run) nameIsFree(gone *v1.PersistentVolume) {
	claims := r.taken.free(gone.Name)
	if of := gone.Spec.ClaimRef; of != nil && of.UID != "" {
		claims = append(claims, of.UID)
	} else if of != nil {
		if object, exists, err := r.claims.GetStore().GetByKey(of.Namespace + "/" + of.Name); err == nil && exists {
			claims = append(claims, object.(*v1.PersistentVolumeClaim).UID)
		}
	}
	for _, uid := range claims {
		if claim := r.claimByUID(uid); claim != nil && claim.Spec.VolumeName == "" {
			r.claims.seeAgain(claim)
		}
	}
}
