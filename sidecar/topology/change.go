package topology

import (
	"fmt"
	"maps"
	"reflect"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"
)

// OnChange has a function called, which must not wait, after anything that
// can change the segments: not for heartbeats. What is given back ends that,
// and is to be called whatever the error.
func (n *Nodes) OnChange(changed func()) (end func(), err error) {
	if end, err = Listen(n.driver, changed, n.informers...); err != nil {
		err = fmt.Errorf("listen to nodes: %w", err)
	}
	return end, err
}

// Listen has a function called, which must not wait, after what informers hold
// has changed, but for heartbeats of nodes and registrations of other drivers.
// What is given back ends that, and is to be called whatever the error.
func Listen(driver string, changed func(), informers ...cache.SharedIndexInformer) (end func(), err error) {
	var removals []func()
	end = func() {
		for _, one := range removals {
			one()
		}
	}
	for _, informer := range informers {
		handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			DeleteFunc: func(any) { changed() },
			UpdateFunc: func(before, after any) {
				if differ(driver, before, after) {
					changed()
				}
			},
		})
		if err != nil {
			return end, err
		}
		// A handler can only be missing if its informer has ended.
		removals = append(removals, func() { _ = informer.RemoveEventHandler(handle) })
	}
	return end, nil
}

// differ reports whether a node or a CSINode became another one for the driver.
func differ(driver string, before, after any) bool {
	switch now := after.(type) {
	case *v1.Node:
		then, ok := before.(*v1.Node)
		return !ok || !maps.Equal(then.Labels, now.Labels)
	case *storagev1.CSINode:
		then, ok := before.(*storagev1.CSINode)
		return !ok || !reflect.DeepEqual(DriverOf(then, driver), DriverOf(now, driver))
	}
	return true
}
