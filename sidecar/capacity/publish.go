package capacity

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storageclient "k8s.io/client-go/kubernetes/typed/storage/v1"

	"github.com/csi-windows/csi-windows/sidecar/queue"
)

// amounts are what an object says; -1 for nothing.
type amounts struct {
	capacityBytes  int64
	volumeMaxBytes int64
}

const unknown = -1

func amountsOf(object *storagev1.CSIStorageCapacity) amounts {
	return amounts{bytesOf(object.Capacity), bytesOf(object.MaximumVolumeSize)}
}

func bytesOf(quantity *resource.Quantity) int64 {
	if quantity == nil {
		return unknown
	}
	return quantity.Value()
}

// quantity is an amount as the API has it; nil for unknown.
func quantity(sizeBytes int64) *resource.Quantity {
	if sizeBytes == unknown {
		return nil
	}
	return resource.NewQuantity(sizeBytes, resource.BinarySI)
}

// seen is called for each object that is new in the cache or has changed.
func (r *run) seen(changed any) {
	object, ok := changed.(*storagev1.CSIStorageCapacity)
	if !ok || !r.isOurs(object) {
		return
	}
	key := keyOf(object)
	r.lock.Lock()
	_, isWanted := r.wanted[key]
	published, isPublished := r.published[key]
	// What we wrote comes back as an event, and asks for nothing.
	isOther := r.wanted != nil && (!isWanted || isPublished && published != amountsOf(object))
	if isOther {
		delete(r.published, key)
	}
	r.lock.Unlock()
	if isOther || isWanted && len(r.objectsOf(key)) > 1 {
		r.queue.Add(key)
	}
}

// gone is called for each object that left the cache.
func (r *run) gone(removed any) {
	object, ok := lastState[*storagev1.CSIStorageCapacity](removed)
	if !ok || !r.isOurs(object) {
		return
	}
	key := keyOf(object)
	r.lock.Lock()
	_, isWanted := r.wanted[key]
	delete(r.published, key)
	delete(r.owned, key)
	r.lock.Unlock()
	if isWanted {
		r.queue.Add(key)
	}
}

// handle makes the objects about one item what they are to be.
func (r *run) handle(ctx context.Context, key string) error {
	r.lock.Lock()
	one, isWanted := r.wanted[key]
	r.lock.Unlock()
	if !isWanted {
		return r.remove(ctx, r.objectsOf(key))
	}
	class, err := r.classes.Get(one.class)
	if apierrors.IsNotFound(err) {
		return nil // a new plan is on its way
	} else if err != nil {
		return err
	}
	current, err := r.ask(ctx, class, one)
	if err != nil {
		return err
	}
	if err := r.publish(ctx, one, current); err != nil {
		return err
	}
	r.lock.Lock()
	if _, isWanted = r.wanted[key]; isWanted {
		r.published[key], r.owned[key] = current, true
	}
	r.lock.Unlock()
	if objects := r.objectsOf(key); len(objects) > 1 {
		return r.remove(ctx, objects[1:])
	}
	return nil
}

// publish makes the item's object, or changes it, if need be.
func (r *run) publish(ctx context.Context, one item, current amounts) error {
	r.lock.Lock()
	last, isPublished := r.published[one.key()]
	isOwned := r.owned[one.key()]
	r.lock.Unlock()
	objects := r.objectsOf(one.key())
	switch {
	case isPublished && last == current:
		return nil // the cache may not know yet
	case len(objects) == 0:
		return r.create(ctx, one, current)
	default:
		return r.change(ctx, objects[0], current, !isOwned)
	}
}

// ask asks the driver.
func (r *run) ask(ctx context.Context, class *storagev1.StorageClass, one item) (amounts, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	request := &csi.GetCapacityRequest{Parameters: driverParameters(class.Parameters)}
	if len(one.segment) > 0 {
		request.AccessibleTopology = one.segment.CSI()
	}
	answer, err := r.controller.GetCapacity(ctx, request)
	if err != nil {
		return amounts{}, fmt.Errorf("GetCapacity for storage class %s in %q: %w", one.class, one.segment, err)
	}
	got := amounts{answer.GetAvailableCapacity(), unknown}
	if answer.GetMaximumVolumeSize() != nil {
		got.volumeMaxBytes = answer.GetMaximumVolumeSize().GetValue()
	}
	if got.capacityBytes < 0 || got.volumeMaxBytes < unknown {
		return amounts{}, fmt.Errorf("GetCapacity for storage class %s in %q: the driver answered a negative number of bytes: %d free, largest volume %d",
			one.class, one.segment, got.capacityBytes, got.volumeMaxBytes)
	}
	return got, nil
}

// driverParameters are those parameters of a class that CreateVolume gets too:
// others are for the provisioner, and a driver may refuse what it does not know.
func driverParameters(all map[string]string) map[string]string {
	parameters := maps.Clone(all)
	maps.DeleteFunc(parameters, func(name, _ string) bool { return strings.HasPrefix(name, "csi.storage.k8s.io/") })
	return parameters
}

func (r *run) client() storageclient.CSIStorageCapacityInterface {
	return r.env.Kube.StorageV1().CSIStorageCapacities(r.env.Namespace)
}

func (r *run) create(ctx context.Context, one item, current amounts) error {
	object := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{
			Name: objectName(r.driver, r.manager, one), Namespace: r.env.Namespace, Labels: r.labels(),
		},
		StorageClassName: one.class, NodeTopology: selector(one.segment),
		Capacity: quantity(current.capacityBytes), MaximumVolumeSize: quantity(current.volumeMaxBytes),
	}
	if r.owner != nil {
		object.OwnerReferences = []metav1.OwnerReference{*r.owner}
	}
	_, err := r.client().Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return r.adopt(ctx, object.Name, one, current)
	} else if err != nil {
		return fmt.Errorf("create CSIStorageCapacity for %s: %w", one.key(), err)
	}
	return nil
}

// adopt takes over an object that is there but not in the cache yet: another
// process made it a moment ago.
func (r *run) adopt(ctx context.Context, name string, one item, current amounts) error {
	object, err := r.client().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("get CSIStorageCapacity %s, which is there already: %w", name, err)
	case !r.isOurs(object) || keyOf(object) != one.key():
		return fmt.Errorf("CSIStorageCapacity %s is there, but is not about %s or not managed by %s", name, one.key(), r.manager)
	case object.DeletionTimestamp != nil:
		return queue.After(r.config.RetryMin)
	}
	return r.change(ctx, object, current, true)
}

// change writes what differs, and nothing else.
func (r *run) change(ctx context.Context, object *storagev1.CSIStorageCapacity, current amounts, withOwner bool) error {
	patch := map[string]any{}
	stored := amountsOf(object)
	if stored.capacityBytes != current.capacityBytes {
		patch["capacity"] = quantity(current.capacityBytes)
	}
	if stored.volumeMaxBytes != current.volumeMaxBytes {
		patch["maximumVolumeSize"] = quantity(current.volumeMaxBytes)
	}
	if withOwner && r.owner != nil && !isOnlyOwner(object, r.owner) {
		patch["metadata"] = map[string]any{"ownerReferences": []metav1.OwnerReference{*r.owner}}
	}
	if len(patch) == 0 {
		return nil
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("patch CSIStorageCapacity %s: %w", object.Name, err)
	}
	_, err = r.client().Patch(ctx, object.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return queue.After(r.config.RetryMin) // the cache will know by then
	} else if err != nil {
		return fmt.Errorf("patch CSIStorageCapacity %s: %w", object.Name, err)
	}
	return nil
}

func isOnlyOwner(object *storagev1.CSIStorageCapacity, owner *metav1.OwnerReference) bool {
	owners := object.OwnerReferences
	return len(owners) == 1 && owners[0].UID == owner.UID && owners[0].Kind == owner.Kind && owners[0].Name == owner.Name
}

func (r *run) remove(ctx context.Context, objects []*storagev1.CSIStorageCapacity) error {
	for _, object := range objects {
		err := r.client().Delete(ctx, object.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &object.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete CSIStorageCapacity %s: %w", object.Name, err)
		}
	}
	return nil
}
