package provisioner

import (
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"
)

// lentInformer is a shared informer lent to the library for one run: what the
// library registers at it is taken back at the run's end.
type lentInformer struct {
	cache.SharedIndexInformer
	mended cache.Store

	mu       sync.Mutex
	lent     []cache.ResourceEventHandlerRegistration
	handlers []cache.ResourceEventHandler
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer. There is no
// resync: what failed comes back by itself.
func (i *lentInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// AddEventHandler implements cache.SharedInformer.
func (i *lentInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	registration, err := i.SharedIndexInformer.AddEventHandler(handler)
	if err == nil {
		i.mu.Lock()
		i.lent = append(i.lent, registration)
		i.handlers = append(i.handlers, handler)
		i.mu.Unlock()
	}
	return registration, err
}

// AddIndexers implements cache.SharedIndexInformer. An index that an earlier
// run added is the same one.
func (i *lentInformer) AddIndexers(indexers cache.Indexers) error {
	have, missing := i.GetIndexer().GetIndexers(), cache.Indexers{}
	for name, index := range indexers {
		if have[name] == nil {
			missing[name] = index
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return i.SharedIndexInformer.AddIndexers(missing)
}

// GetStore implements cache.SharedInformer.
func (i *lentInformer) GetStore() cache.Store {
	if i.mended != nil {
		return i.mended
	}
	return i.SharedIndexInformer.GetStore()
}

// seeAgain shows the handlers an object as if it had changed: something else
// has that they wait for. The cost is a look at the object.
func (i *lentInformer) seeAgain(object any) {
	i.mu.Lock()
	handlers := i.handlers
	i.mu.Unlock()
	for _, handler := range handlers {
		handler.OnUpdate(object, object)
	}
}

// takeBack removes the handlers.
func (i *lentInformer) takeBack() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, registration := range i.lent {
		_ = i.RemoveEventHandler(registration) // it fails for an informer that ended, which has no handlers
	}
	i.lent, i.handlers = nil, nil
}

// classStore is the cache of storage classes in which a class remains as long
// as a volume of it is being made. Without it the library would forget a
// volume under way when its class is deleted.
type classStore struct {
	cache.Store
	attempts *attempts
}

// GetByKey implements cache.Store.
func (s *classStore) GetByKey(name string) (any, bool, error) {
	object, exists, err := s.Store.GetByKey(name)
	if err == nil && !exists {
		if class := s.attempts.classInUse(name); class != nil {
			return class, true, nil
		}
	}
	return object, exists, err
}

// class gives a class as the API server has it now.
func (s *classStore) class(name string) *storagev1.StorageClass {
	object, exists, err := s.Store.GetByKey(name)
	if err != nil || !exists {
		return nil
	}
	class, _ := object.(*storagev1.StorageClass)
	return class
}
