package capacity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/queue"
	"github.com/csi-windows/csi-windows/sidecar/topology"
)

// Capacity is the component.
type Capacity struct {
	env    *sidecar.Env
	config Config
	log    *slog.Logger

	mu sync.Mutex
	// current is the run under way; nil between runs.
	current *run
}

// Name implements sidecar.Component.
func (c *Capacity) Name() string { return Name }

// Run implements sidecar.Component. It fails only when the driver cannot tell its
// capacity: whoever makes volumes in the same process is not to be stopped by less.
func (c *Capacity) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	r, err := c.begin(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer r.queue.Drop() // does nothing once it was run
	remove, err := r.listen()
	defer remove()
	if err != nil {
		return err
	}
	running.Go(func() { r.objects.RunWithContext(ctx) })
	synced := []cache.InformerSynced{r.objects.HasSynced, r.classInformer.HasSynced}
	if r.nodes != nil {
		synced = append(synced, r.nodes.Synced()...)
	}
	if err := c.env.Informers.Sync(ctx, synced...); err != nil {
		return unlessEnded(ctx, fmt.Errorf("capacity: %w", err))
	}
	c.setCurrent(r)
	defer c.setCurrent(nil)
	r.replan(ctx)
	running.Go(func() { r.keepPlanning(ctx) })
	r.queue.Run(ctx, r.handle)
	return nil
}

// unlessEnded drops an error that comes of the end that was asked for.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was to end
	}
	return err
}

func (c *Capacity) setCurrent(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = r
}

// Refresh tells that a volume of a class was made or deleted in any of some
// places, nil for unknown. The driver is soon asked again for these. It never
// waits, and does nothing while the component does not run.
func (c *Capacity) Refresh(class string, places []*csi.Topology) {
	c.mu.Lock()
	r := c.current
	c.mu.Unlock()
	if r != nil {
		r.refresh(class, places)
	}
}

// begin makes a run, and tries again while what it needs is not to be had: the
// owner of the objects, or the driver's word of where it is.
func (c *Capacity) begin(ctx context.Context) (*run, error) {
	for delay := c.config.RetryMin; ; delay = min(2*delay, c.config.RetryMax) {
		r, err := c.newRun(ctx)
		if err == nil || errors.Is(err, sidecar.ErrNothingToDo) || ctx.Err() != nil {
			return r, err
		}
		c.log.WarnContext(ctx, "No capacity is published yet; will be tried again", "error", err, "delay", delay)
		timer := c.env.Clock.NewTimer(delay)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// newRun asks what can be known before the caches are full.
func (c *Capacity) newRun(ctx context.Context) (*run, error) {
	info := c.env.Driver.Info()
	if !info.Controller[csi.ControllerServiceCapability_RPC_GET_CAPACITY] {
		return nil, fmt.Errorf("capacity: driver %s cannot tell its capacity: %w: no controller capability GET_CAPACITY", info.Name, sidecar.ErrNothingToDo)
	}
	owner, err := findOwner(ctx, c.env.Kube, c.env.Namespace, c.config.PodName, c.config.OwnerLevel)
	if err != nil {
		return nil, fmt.Errorf("capacity: %w", err)
	}
	nodes, err := c.nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("capacity: %w", err)
	}
	classes := c.env.Informers.Kube().Storage().V1().StorageClasses()
	r := &run{
		Capacity: c, driver: info.Name, manager: managedBy(c.config.NodeName), owner: owner, nodes: nodes,
		controller: csi.NewControllerClient(c.env.Driver.Conn()),
		classes:    classes.Lister(), classInformer: classes.Informer(),
		published: map[string]amounts{}, owned: map[string]bool{}, dirty: make(chan struct{}, 1),
		queue: queue.New(queue.Config{
			Name: "csistoragecapacity", Workers: c.config.Workers,
			RetryMin: c.config.RetryMin, RetryMax: c.config.RetryMax,
			Metrics: c.env.QueueMetrics, Clock: c.env.Clock, Log: c.log,
		}),
	}
	if r.objects, err = r.newObjects(); err != nil {
		r.queue.Drop()
		return nil, err
	}
	return r, nil
}

// nodes tells the segments; nil where the driver's storage is the same for the
// whole cluster.
func (c *Capacity) nodes(ctx context.Context) (*topology.Nodes, error) {
	node := c.config.NodeName
	switch {
	case !topology.Has(c.env) && node != "":
		return nil, fmt.Errorf("%w: a driver of node-local volumes must have the plugin capability VOLUME_ACCESSIBILITY_CONSTRAINTS", sidecar.ErrNothingToDo)
	case !topology.Has(c.env):
		return nil, nil // see above
	case node == "":
		return topology.Watch(c.env), nil
	}
	segment, err := topology.AskDriver(ctx, c.env, c.config.Timeout)
	if err != nil {
		return nil, err
	}
	if len(segment) == 0 {
		return nil, fmt.Errorf("topology of node %s: NodeGetInfo gave no segments", node)
	}
	return topology.Own(node, segment), nil
}

// listen has the run hear of changes. What it gives back ends that, and is to
// be called whatever the error.
func (r *run) listen() (remove func(), err error) {
	var removals []func()
	remove = func() {
		for _, one := range removals {
			one()
		}
	}
	changed := func(object any) {
		if class, ok := lastState[*storagev1.StorageClass](object); ok && class.Provisioner == r.driver {
			r.markDirty()
		}
	}
	handle, err := r.classInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }, DeleteFunc: changed,
	})
	if err != nil {
		return remove, fmt.Errorf("capacity: listen to storage classes: %w", err)
	}
	// A handler can only be missing if its informer has ended.
	removals = append(removals, func() { _ = r.classInformer.RemoveEventHandler(handle) })
	if r.nodes != nil {
		end, err := r.nodes.OnChange(r.markDirty)
		if err != nil {
			return remove, fmt.Errorf("capacity: %w", err)
		}
		removals = append(removals, end)
	}
	_, err = r.objects.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: r.seen, UpdateFunc: func(_, object any) { r.seen(object) }, DeleteFunc: r.gone,
	})
	if err != nil {
		return remove, fmt.Errorf("capacity: listen to capacity objects: %w", err)
	}
	return remove, nil
}

// lastState is the object of an event, the last known one of a lost deletion.
func lastState[T any](object any) (T, bool) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	typed, ok := object.(T)
	return typed, ok
}
