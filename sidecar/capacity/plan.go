package capacity

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/csi-windows/csi-windows/sidecar/queue"
	"github.com/csi-windows/csi-windows/sidecar/topology"
)

// run is one Run of the component.
type run struct {
	*Capacity
	driver  string
	manager string
	// owner is nil where objects are to have none.
	owner *metav1.OwnerReference
	// nodes is nil where there is one segment, the whole cluster.
	nodes         *topology.Nodes
	controller    csi.ControllerClient
	classes       storagelisters.StorageClassLister
	classInformer cache.SharedIndexInformer
	// objects are those with our labels.
	objects cache.SharedIndexInformer
	queue   *queue.Queue
	// dirty asks for a new plan.
	dirty chan struct{}

	lock sync.Mutex
	// wanted are the items there is to be an object for, by key; nil before the
	// first plan.
	wanted map[string]item
	// published is what this run wrote or found right, by key. It is newer than
	// the cache.
	published map[string]amounts
	// owned are the keys whose owner was seen to: each run does it once, lest
	// two pods of a node in an upgrade pull an object to and fro.
	owned map[string]bool
}

// byKey is the index of objects by the item they are about.
const byKey = "item"

// newObjects makes the cache of our objects. It is the component's own: others
// have no use for it, and upstream's role covers one namespace.
func (r *run) newObjects() (cache.SharedIndexInformer, error) {
	ours := labels.SelectorFromSet(r.labels()).String()
	informer := storageinformers.NewFilteredCSIStorageCapacityInformer(r.env.Kube, r.env.Namespace, 0,
		cache.Indexers{byKey: func(object any) ([]string, error) {
			if capacity, ok := object.(*storagev1.CSIStorageCapacity); ok && r.isOurs(capacity) {
				return []string{keyOf(capacity)}, nil
			}
			return nil, nil
		}},
		func(options *metav1.ListOptions) { options.LabelSelector = ours })
	err := informer.SetTransform(func(object any) (any, error) {
		if capacity, ok := object.(*storagev1.CSIStorageCapacity); ok {
			capacity.ManagedFields = nil
		}
		return object, nil
	})
	return informer, err
}

func (r *run) labels() map[string]string {
	return map[string]string{driverLabel: r.driver, managedByLabel: r.manager}
}

func (r *run) isOurs(object *storagev1.CSIStorageCapacity) bool {
	return object.Labels[driverLabel] == r.driver && object.Labels[managedByLabel] == r.manager
}

// objectsOf are the objects about an item, the one to keep first: that which
// was made first.
func (r *run) objectsOf(key string) []*storagev1.CSIStorageCapacity {
	found, err := r.objects.GetIndexer().ByIndex(byKey, key)
	if err != nil {
		return nil // the index is there: it was made with the cache
	}
	objects := make([]*storagev1.CSIStorageCapacity, 0, len(found))
	for _, one := range found {
		if object, ok := one.(*storagev1.CSIStorageCapacity); ok && object.DeletionTimestamp == nil {
			objects = append(objects, object)
		}
	}
	slices.SortFunc(objects, func(a, b *storagev1.CSIStorageCapacity) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return objects
}

func (r *run) markDirty() {
	select {
	case r.dirty <- struct{}{}:
	default: // asked for already
	}
}

// keepPlanning makes a new plan when something changed, and has the driver
// asked about everything in the poll interval.
func (r *run) keepPlanning(ctx context.Context) {
	ticker := r.env.Clock.NewTicker(r.config.PollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.dirty:
			r.replan(ctx)
		case <-ticker.C():
			r.lock.Lock()
			keys := slices.Sorted(maps.Keys(r.wanted))
			r.lock.Unlock()
			for _, key := range keys {
				r.queue.Add(key)
			}
		}
	}
}

// replan finds out which objects there are to be. New items are handled, and
// objects nobody wants.
func (r *run) replan(ctx context.Context) {
	wanted, err := r.plan()
	if err != nil {
		// Caches do not fail; should they, the plan of before stands.
		r.log.ErrorContext(ctx, "Capacity objects stay as planned before", "error", err)
		return
	}
	r.lock.Lock()
	before := r.wanted
	r.wanted = wanted
	for key := range r.published {
		if _, ok := wanted[key]; !ok {
			delete(r.published, key)
			delete(r.owned, key)
		}
	}
	r.lock.Unlock()
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if _, ok := before[key]; !ok {
			r.queue.Add(key)
		}
	}
	for _, key := range r.objects.GetIndexer().ListIndexFuncValues(byKey) {
		if _, ok := wanted[key]; !ok {
			r.queue.Add(key)
		}
	}
}

func (r *run) plan() (map[string]item, error) {
	segments := []topology.Segment{nil}
	if r.nodes != nil {
		census, err := r.nodes.Count()
		if err != nil {
			return nil, err
		}
		segments = census.Segments
	}
	classes, err := r.classes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	wanted := map[string]item{}
	for _, class := range classes {
		if class.Provisioner != r.driver || class.DeletionTimestamp != nil || !r.config.ImmediateBinding && !bindsLate(class) {
			continue
		}
		for _, segment := range segments {
			if one := (item{class.Name, segment}); mayUse(class, segment) {
				wanted[one.key()] = one
			}
		}
	}
	return wanted, nil
}

func bindsLate(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// mayUse reports whether the class allows volumes in a segment. The scheduler
// leaves nodes out by allowedTopologies before it looks at capacity, so that
// an object for such a segment would never be read.
func mayUse(class *storagev1.StorageClass, segment topology.Segment) bool {
	if len(class.AllowedTopologies) == 0 {
		return true
	}
	for _, term := range class.AllowedTopologies {
		fits := len(term.MatchLabelExpressions) > 0
		for _, expression := range term.MatchLabelExpressions {
			// A key that the segment says nothing of may have any value in it.
			if value, ok := segment.Value(expression.Key); ok && !slices.Contains(expression.Values, value) {
				fits = false
			}
		}
		if fits {
			return true
		}
	}
	return false
}

// refresh puts off the question a little, so that many volumes made at once
// cost one write.
func (r *run) refresh(class string, places []*csi.Topology) {
	segments := make([]topology.Segment, len(places))
	for i, place := range places {
		segments[i] = topology.NewSegment(place.GetSegments())
	}
	r.lock.Lock()
	var keys []string
	for key, one := range r.wanted {
		if one.class == class && isIn(one.segment, segments) {
			keys = append(keys, key)
		}
	}
	r.lock.Unlock()
	for _, key := range keys {
		r.queue.AddAfter(key, r.config.RefreshDelay)
	}
}

func isIn(segment topology.Segment, places []topology.Segment) bool {
	return len(places) == 0 || slices.ContainsFunc(places, segment.Overlaps)
}
