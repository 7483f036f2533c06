package resizer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// work is a claim that is being handled, with its volume.
type work struct {
	*memory
	key    string
	claim  *v1.PersistentVolumeClaim
	volume *v1.PersistentVolume
}

// patchClaim writes what change does to a copy of the claim's status and
// annotations, in one request, or in none when it does nothing. guarded has
// the write refused when the claim was changed since it was read: for writes
// that begin something. Conditions are merged by their types, so that a write
// that ends something cannot undo what others wrote meanwhile.
func (c *controller) patchClaim(ctx context.Context, w *work, guarded bool, change func(*v1.PersistentVolumeClaim)) error {
	changed := w.claim.DeepCopy()
	change(changed)
	patch, err := patchOf(w.claim, changed, v1.PersistentVolumeClaim{}, guarded)
	if err != nil || patch == nil {
		return err
	}
	answer, err := c.env.Kube.CoreV1().PersistentVolumeClaims(w.claim.Namespace).
		Patch(ctx, w.claim.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("write the status of claim %s: %w", w.key, err)
	}
	answer.SetManagedFields(nil)
	w.claim, w.memory.claim = answer, answer
	return nil
}

// patchVolume writes what change does to a copy of the volume.
func (c *controller) patchVolume(ctx context.Context, w *work, change func(*v1.PersistentVolume)) error {
	changed := w.volume.DeepCopy()
	change(changed)
	patch, err := patchOf(w.volume, changed, v1.PersistentVolume{}, false)
	if err != nil || patch == nil {
		return err
	}
	answer, err := c.env.Kube.CoreV1().PersistentVolumes().
		Patch(ctx, w.volume.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("write volume %s of claim %s: %w", w.volume.Name, w.key, err)
	}
	answer.SetManagedFields(nil)
	w.volume, w.memory.volume = answer, answer
	return nil
}

// patchOf is the patch that makes changed of old, for the same object only, or
// nil when they are the same.
func patchOf(old, changed metav1.Object, kind any, guarded bool) ([]byte, error) {
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(changed)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, kind)
	if err != nil {
		return nil, fmt.Errorf("make a patch of %s: %w", old.GetName(), err)
	}
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, nil
	}
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	metadata["uid"] = old.GetUID()
	if version := old.GetResourceVersion(); guarded && version != "" {
		metadata["resourceVersion"] = version
	}
	return json.Marshal(fields)
}

func hasCondition(claim *v1.PersistentVolumeClaim, kind v1.PersistentVolumeClaimConditionType) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool {
		return c.Type == kind && c.Status == v1.ConditionTrue
	})
}

// setCondition has a condition hold, with the time at which it came to hold.
func setCondition(claim *v1.PersistentVolumeClaim, now time.Time, kind v1.PersistentVolumeClaimConditionType, reason, message string) {
	for i := range claim.Status.Conditions {
		if c := &claim.Status.Conditions[i]; c.Type == kind {
			if c.Status != v1.ConditionTrue {
				c.Status, c.LastTransitionTime = v1.ConditionTrue, metav1.NewTime(now)
			}
			c.Reason, c.Message = reason, message
			return
		}
	}
	claim.Status.Conditions = append(claim.Status.Conditions, v1.PersistentVolumeClaimCondition{
		Type: kind, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(now), Reason: reason, Message: message,
	})
}

// dropConditions takes conditions off a claim.
func dropConditions(claim *v1.PersistentVolumeClaim, kinds ...v1.PersistentVolumeClaimConditionType) {
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool {
		return slices.Contains(kinds, c.Type)
	})
}

// setResizeStatus says how far the expansion has come; "" is that there is none.
func setResizeStatus(claim *v1.PersistentVolumeClaim, status v1.ClaimResourceStatus) {
	if status == "" {
		delete(claim.Status.AllocatedResourceStatuses, v1.ResourceStorage)
		return
	}
	if claim.Status.AllocatedResourceStatuses == nil {
		claim.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{}
	}
	claim.Status.AllocatedResourceStatuses[v1.ResourceStorage] = status
}

func setSize[L ~map[v1.ResourceName]Q, Q any](list *L, size Q) {
	if *list == nil {
		*list = L{}
	}
	(*list)[v1.ResourceStorage] = size
}
