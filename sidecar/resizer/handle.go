package resizer

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/csi-windows/csi-windows/sidecar/queue"
)

// patience is how long a call lasts before an event tells of it.
const patience = 2 * time.Second

// handle does for one claim what there is to do. Its volume is expanded and
// modified one after the other, the call that may be under way first.
func (c *controller) handle(ctx context.Context, key string) error {
	// A queue that ends hands out what is left in it.
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w, err := c.load(key)
	if w == nil || err != nil {
		return err
	}
	jobs := []func(context.Context, *work) (step, error){c.expand, c.modify}
	if modifyUnknown(w.claim, w.modify) && (!c.expands || !resizeUnknown(w.claim, w.resize)) {
		jobs[0], jobs[1] = jobs[1], jobs[0]
	}
	var again time.Duration
	for _, job := range jobs {
		next, err := job(ctx, w)
		if err != nil {
			return err
		}
		if next.again > 0 && (again == 0 || next.again < again) {
			again = next.again
		}
		if next.unknown {
			break
		}
	}
	if err := c.tidy(ctx, w); err != nil {
		return err
	}
	if w.idle() {
		c.memories.forget(key)
	}
	if again > 0 {
		return queue.After(again)
	}
	return nil
}

// load finds a claim and its volume in the state known last; nil when the
// claim is gone or none of the driver's.
func (c *controller) load(key string) (*work, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, nil //nolint:nilerr // no key of an object
	}
	claim, err := c.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		c.memories.forget(key)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find claim %s: %w", key, err)
	}
	volume, err := c.volumes.Get(claim.Spec.VolumeName)
	if apierrors.IsNotFound(err) {
		// It comes, and its coming is an event, or it is gone for good.
		c.memories.forget(key)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find volume %s of claim %s: %w", claim.Spec.VolumeName, key, err)
	}
	if !c.ours(claim, volume) {
		c.memories.forget(key)
		return nil, nil
	}
	known := c.memories.of(key, claim.UID)
	if known.claim != nil && newer(known.claim, claim) {
		claim = known.claim
	} else {
		known.claim = nil
	}
	if known.volume != nil && newer(known.volume, volume) {
		volume = known.volume
	} else {
		known.volume = nil
	}
	return &work{memory: known, key: key, claim: claim, volume: volume}, nil
}

// tidy takes the size before the expansion off a volume whose file system has
// grown.
func (c *controller) tidy(ctx context.Context, w *work) error {
	if _, ok := w.volume.Annotations[sizeBefore]; !ok || c.config.NoResizeAnnotation {
		return nil
	}
	claimed, has := w.claim.Status.Capacity[v1.ResourceStorage], w.volume.Spec.Capacity[v1.ResourceStorage]
	if w.claim.Status.Phase != v1.ClaimBound || claimed.Cmp(has) < 0 {
		return nil
	}
	return c.patchVolume(ctx, w, func(volume *v1.PersistentVolume) { delete(volume.Annotations, sizeBefore) })
}

// tellStart tells of a call by an event, unless it ends soon or was told of
// before. What it gives back is called at the call's end.
func (c *controller) tellStart(ctx context.Context, claim *v1.PersistentVolumeClaim, last *attempt, reason, message string) (stop func()) {
	tell := func() {
		c.events.Event(claim, v1.EventTypeNormal, reason, message)
		last.told = true
	}
	if c.config.StartEvents {
		tell()
		return func() {}
	}
	if last.told {
		return func() {}
	}
	ended := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		timer := c.env.Clock.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-timer.C():
			tell()
		case <-ended:
		case <-ctx.Done():
		}
	})
	return func() { close(ended); waiting.Wait() }
}

// wanted reports whether there is something to do for a claim, its volume's
// driver aside.
func (c *controller) wanted(claim *v1.PersistentVolumeClaim) bool {
	return c.expands && wantsSize(claim) || c.modifies && wantsClass(claim)
}

func (c *controller) claimHandler() cache.ResourceEventHandler {
	look := func(claim *v1.PersistentVolumeClaim) {
		if key := claim.Namespace + "/" + claim.Name; c.wanted(claim) || c.memories.has(key) {
			c.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { look(object.(*v1.PersistentVolumeClaim)) },
		UpdateFunc: func(before, after any) {
			old, claim := before.(*v1.PersistentVolumeClaim), after.(*v1.PersistentVolumeClaim)
			had, has := old.Status.Capacity[v1.ResourceStorage], claim.Status.Capacity[v1.ResourceStorage]
			if had.Cmp(has) != 0 {
				// The node is done, maybe.
				c.queue.AddObject(claim)
				return
			}
			look(claim)
		},
		DeleteFunc: c.queue.AddObject,
	}
}

// volumeHandler has claims looked at whose volumes came late, or have an
// annotation that may be due to go.
func (c *controller) volumeHandler() cache.ResourceEventHandler {
	look := func(object any) {
		volume := object.(*v1.PersistentVolume)
		bound := volume.Spec.ClaimRef
		if bound == nil || volume.Spec.CSI != nil && volume.Spec.CSI.Driver != c.name {
			return
		}
		claim, err := c.claims.PersistentVolumeClaims(bound.Namespace).Get(bound.Name)
		if _, annotated := volume.Annotations[sizeBefore]; annotated || err == nil && c.wanted(claim) {
			c.queue.Add(bound.Namespace + "/" + bound.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, after any) { look(after) }}
}

// classHandler has claims looked at that may wait for a class.
func (c *controller) classHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		name := object.(*storagev1.VolumeAttributesClass).Name
		claims, err := c.claims.List(labels.Everything())
		if err != nil {
			return // a cache's list does not fail
		}
		for _, claim := range claims {
			if _, begun := modifyStatus(claim); wantsClass(claim) && (class(claim.Spec.VolumeAttributesClassName) == name || begun == name) {
				c.queue.AddObject(claim)
			}
		}
	}}
}
