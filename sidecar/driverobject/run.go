package driverobject

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/topology"
)

// DriverObject is the component.
type DriverObject struct {
	env      *sidecar.Env
	config   Config
	log      *slog.Logger
	findings *prometheus.GaugeVec

	// What one run tells the next; only one runs at a time.

	// wasThere says that the object was seen: where it is missing now, somebody
	// deleted it.
	wasThere bool
	// wasUpdated says that the object was changed: where it differs now,
	// somebody wanted it so.
	wasUpdated bool
	ledger     ledger
}

// Name implements sidecar.Component.
func (d *DriverObject) Name() string { return sidecar.DriverObject }

// Collectors are the component's metrics.
func (d *DriverObject) Collectors() []prometheus.Collector { return []prometheus.Collector{d.findings} }

// run is one Run of the component.
type run struct {
	*DriverObject
	driver string
	info   csiclient.Info
	events record.EventRecorder
	// object holds the one CSIDriver.
	object   cache.SharedIndexInformer
	csiNodes cache.SharedIndexInformer
	// nodes is nil for drivers without topology.
	nodes cache.SharedIndexInformer
	// dirty asks for a look; refused is why the object cannot be watched.
	dirty   chan struct{}
	refused chan error
}

// Run implements sidecar.Component. It fails when the API server does not let
// it see, or make, the object.
func (d *DriverObject) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	r, err := d.newRun()
	if err != nil {
		return err
	}
	remove, err := r.listen()
	defer remove()
	if err != nil {
		return err
	}
	running.Go(func() { r.object.RunWithContext(ctx) })
	if err := r.sync(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // the end was asked for
		}
		return err
	}
	r.markDirty()
	return r.watch(ctx)
}

func (d *DriverObject) newRun() (*run, error) {
	info := d.env.Driver.Info()
	kube := d.env.Informers.Kube()
	r := &run{
		DriverObject: d, driver: info.Name, info: info, events: d.env.Events("csi-sidecar"),
		csiNodes: kube.Storage().V1().CSINodes().Informer(),
		dirty:    make(chan struct{}, 1), refused: make(chan error, 1),
		object: storageinformers.NewFilteredCSIDriverInformer(d.env.Kube, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, info.Name).String()
		}),
	}
	if topology.Has(d.env) {
		r.nodes = kube.Core().V1().Nodes().Informer()
	}
	err := r.object.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			select {
			case r.refused <- fmt.Errorf("csidriver: the role must allow csidrivers (storage.k8s.io) list and watch: %w", err):
			default:
			}
			return
		}
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	})
	return r, err
}

// listen has the run hear of changes. What it gives back ends that, and is to
// be called whatever the error.
func (r *run) listen() (remove func(), err error) {
	informers := []cache.SharedIndexInformer{r.object}
	for _, informer := range []cache.SharedIndexInformer{r.csiNodes, r.nodes} {
		if informer != nil {
			informers = append(informers, informer)
		}
	}
	if remove, err = topology.Listen(r.driver, r.markDirty, informers...); err != nil {
		err = fmt.Errorf("csidriver: listen to changes: %w", err)
	}
	return remove, err
}

func (r *run) markDirty() {
	select {
	case r.dirty <- struct{}{}:
	default: // asked for already
	}
}

// sync waits for the caches, or for the API server's refusal.
func (r *run) sync(ctx context.Context) error {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer stop(nil)
	watcher.Go(func() {
		select {
		case err := <-r.refused:
			stop(err)
		case <-waiting.Done():
		}
	})
	synced := []cache.InformerSynced{r.object.HasSynced, r.csiNodes.HasSynced}
	if r.nodes != nil {
		synced = append(synced, r.nodes.HasSynced)
	}
	err := r.env.Informers.Sync(waiting, synced...)
	if err != nil && ctx.Err() == nil {
		return context.Cause(waiting)
	}
	return err
}

// watch looks at everything after each change, and when something that was
// found wrong is old enough to be reported.
func (r *run) watch(ctx context.Context) error {
	timer := r.env.Clock.NewTimer(settleTime)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.refused:
			return err
		case <-r.dirty:
		case <-timer.C():
		}
		again, err := r.look(ctx)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("csidriver: %w", err)
		}
		timer.Stop()
		if again > 0 {
			timer.Reset(again)
		}
	}
}

// look makes or changes the object if it is to, and reports what is wrong.
func (r *run) look(ctx context.Context) (again time.Duration, err error) {
	object := r.current()
	switch {
	case object == nil && r.config.Create && !r.wasThere:
		if err := r.create(ctx); err != nil {
			return 0, err
		}
		r.wasThere = true
		return 0, nil
	case object != nil && r.config.Update && !r.wasUpdated:
		changed, err := r.update(ctx, object, differences(&object.Spec, r.config))
		if err != nil {
			return 0, err
		}
		r.wasUpdated = true
		if changed {
			return 0, nil
		}
	}
	r.wasThere = r.wasThere || object != nil
	found := append(checkObject(object, r.info, r.config), checkNodes(r.registrations(), r.nodes != nil)...)
	r.count(found)
	report, again := r.ledger.enter(found, r.env.Clock.Now())
	r.report(ctx, object, report)
	return again, nil
}

func (r *run) current() *storagev1.CSIDriver {
	for _, one := range r.object.GetStore().List() {
		if object, ok := one.(*storagev1.CSIDriver); ok && object.Name == r.driver {
			return object
		}
	}
	return nil
}

func (r *run) registrations() []registration {
	kube := r.env.Informers.Kube()
	csiNodes, err := kube.Storage().V1().CSINodes().Lister().List(labels.Everything())
	if err != nil {
		return nil // a cache does not fail
	}
	if r.nodes == nil {
		return registrations(csiNodes, r.driver, nil)
	}
	lister := kube.Core().V1().Nodes().Lister()
	return registrations(csiNodes, r.driver, func(name string) (*v1.Node, bool) {
		node, err := lister.Get(name)
		return node, err == nil
	})
}
