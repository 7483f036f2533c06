package attacher

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"
)

// The indices of VolumeAttachments.
const (
	byVolume = "attacher-volume"
	byNode   = "attacher-node"
)

// watch has the queues fed by what happens to attachments, volumes and the
// driver's registrations. The function it gives back ends that.
func (r *run) watch() (unwatch func(), synced []cache.InformerSynced, err error) {
	attachments := r.env.Informers.Kube().Storage().V1().VolumeAttachments()
	volumes := r.env.Informers.Kube().Core().V1().PersistentVolumes()
	csiNodes := r.env.Informers.Kube().Storage().V1().CSINodes()
	r.attachments, r.volumes, r.csiNodes = attachments.Lister(), volumes.Lister(), csiNodes.Lister()
	r.attachmentIndex = attachments.Informer().GetIndexer()

	var undo []func() error
	unwatch = func() {
		for _, one := range undo {
			if err := one(); err != nil {
				r.log.Error("Events are still delivered", "error", err)
			}
		}
	}
	handle := func(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
		registration, failure := informer.AddEventHandler(handler)
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("watch objects: %w", failure))
			return
		}
		undo = append(undo, func() error { return informer.RemoveEventHandler(registration) })
		synced = append(synced, registration.HasSynced)
	}
	if err = r.addIndices(attachments.Informer()); err != nil {
		return unwatch, nil, err
	}
	handle(attachments.Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: r.attachmentAdded, UpdateFunc: r.attachmentUpdated, DeleteFunc: r.attachmentDeleted,
	})
	handle(volumes.Informer(), cache.ResourceEventHandlerDetailedFuncs{AddFunc: r.volumeAdded, UpdateFunc: r.volumeUpdated})
	if r.can.publish {
		handle(csiNodes.Informer(), cache.ResourceEventHandlerDetailedFuncs{AddFunc: r.csiNodeAdded, UpdateFunc: r.csiNodeUpdated})
	}
	return unwatch, synced, err
}

// addIndices adds the indices that an earlier Run has not left there.
func (r *run) addIndices(informer cache.SharedIndexInformer) error {
	missing := cache.Indexers{}
	for name, index := range map[string]cache.IndexFunc{
		byVolume: func(object any) ([]string, error) {
			if name := volumeName(object.(*storagev1.VolumeAttachment)); name != "" {
				return []string{name}, nil
			}
			return nil, nil
		},
		byNode: func(object any) ([]string, error) {
			return []string{object.(*storagev1.VolumeAttachment).Spec.NodeName}, nil
		},
	} {
		if _, has := informer.GetIndexer().GetIndexers()[name]; !has {
			missing[name] = index
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := informer.AddIndexers(missing); err != nil {
		return fmt.Errorf("index VolumeAttachments: %w", err)
	}
	return nil
}

// volumeName is the name of the volume of an attachment; "" if it is inline.
func volumeName(va *storagev1.VolumeAttachment) string {
	if name := va.Spec.Source.PersistentVolumeName; name != nil {
		return *name
	}
	return ""
}

func (r *run) attachmentAdded(object any) {
	if va, ok := object.(*storagev1.VolumeAttachment); ok && va.Spec.Attacher == r.driver {
		r.attachmentQueue.Add(va.Name)
	}
}

// attachmentUpdated skips what the attacher writes itself: an error put into
// the status must not cut the wait short that follows it.
func (r *run) attachmentUpdated(before, after any) {
	was, _ := before.(*storagev1.VolumeAttachment)
	va, ok := after.(*storagev1.VolumeAttachment)
	if !ok || was == nil || va.Spec.Attacher != r.driver {
		return
	}
	switch {
	case was.UID != va.UID:
		r.memory.forget(was.Name, was.UID)
		r.attachmentQueue.Forget(va.Name)
		r.attachmentQueue.Add(va.Name)
	case was.DeletionTimestamp == nil && va.DeletionTimestamp != nil:
		// Failures to attach must not hold up that it is detached.
		r.attachmentQueue.Forget(va.Name)
		r.attachmentQueue.Add(va.Name)
	case was.Status.Attached && !va.Status.Attached, was.ResourceVersion == va.ResourceVersion:
		r.attachmentQueue.Add(va.Name)
	}
}

func (r *run) attachmentDeleted(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	va, ok := object.(*storagev1.VolumeAttachment)
	if !ok {
		return
	}
	if va.Spec.Attacher == r.driver {
		r.memory.forget(va.Name, va.UID)
		r.attachmentQueue.Forget(va.Name)
		r.attachmentQueue.Add(va.Name)
		r.volumeFreed(volumeName(va))
	}
	if pv, err := r.volumes.Get(volumeName(va)); err == nil && r.mayFree(pv) {
		r.volumeQueue.Add(pv.Name)
	}
}

func (r *run) volumeAdded(object any, isInitial bool) {
	pv, ok := object.(*v1.PersistentVolume)
	if !ok {
		return
	}
	if r.mayFree(pv) {
		r.volumeQueue.Add(pv.Name)
	}
	if !isInitial {
		r.wake(byVolume, pv.Name)
	}
}

func (r *run) volumeUpdated(before, after any) {
	was, _ := before.(*v1.PersistentVolume)
	pv, ok := after.(*v1.PersistentVolume)
	if !ok || was == nil {
		return
	}
	r.volumeAdded(pv, was.UID == pv.UID)
}

func (r *run) csiNodeAdded(object any, isInitial bool) {
	if node, ok := object.(*storagev1.CSINode); ok && !isInitial && nodeIDOf(node, r.driver) != "" {
		r.wake(byNode, node.Name)
	}
}

func (r *run) csiNodeUpdated(before, after any) {
	was, _ := before.(*storagev1.CSINode)
	node, ok := after.(*storagev1.CSINode)
	if !ok || was == nil {
		return
	}
	if id := nodeIDOf(node, r.driver); id != "" && (was.UID != node.UID || nodeIDOf(was, r.driver) != id) {
		r.wake(byNode, node.Name)
	}
}

// wake has attachments worked on at once that may have waited for what is
// there now.
func (r *run) wake(index, key string) {
	for _, va := range r.waiting(index, key) {
		r.memory.setLost(va.UID, false)
		r.attachmentQueue.Forget(va.Name)
		r.attachmentQueue.Add(va.Name)
	}
}

// volumeFreed has attachments of a volume worked on at once that the driver may
// have refused while the volume was attached to another node. A call that is
// under way is not repeated, but its failure is soon.
func (r *run) volumeFreed(name string) {
	for _, va := range r.waiting(byVolume, name) {
		r.attachmentQueue.Forget(va.Name)
		if va.Status.AttachError != nil {
			r.attachmentQueue.Add(va.Name)
		}
	}
}

// waiting are the attachments of a volume or node that are not attached yet. One
// that was given up is among them even while the cache still has it as attached.
func (r *run) waiting(index, key string) []*storagev1.VolumeAttachment {
	objects, err := r.attachmentIndex.ByIndex(index, key)
	if err != nil {
		r.log.Error("Attachments are not woken", "index", index, "key", key, "error", err)
		return nil
	}
	var all []*storagev1.VolumeAttachment
	for _, object := range objects {
		va, ok := object.(*storagev1.VolumeAttachment)
		if ok && va.Spec.Attacher == r.driver && va.DeletionTimestamp == nil && (!va.Status.Attached || r.memory.isLost(va.UID)) {
			all = append(all, va)
		}
	}
	return all
}
