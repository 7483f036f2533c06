package resizer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/container-storage-interface/spec/lib/go/csi"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	csitranslation "k8s.io/csi-translation-lib"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/queue"
)

// controller is one run of the resizer.
type controller struct {
	env    *sidecar.Env
	config Config
	name   string
	log    *slog.Logger
	events record.EventRecorder
	driver csi.ControllerClient

	// expands and modifies are what the driver can do; nodeOnly says that it
	// expands on nodes alone, offline that it does only while a volume is not
	// in use.
	expands, nodeOnly, offline, modifies bool
	migration                            csitranslation.CSITranslator

	queue    *queue.Queue
	memories *memories
	claims   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
	classes  storagelisters.VolumeAttributesClassLister
	pods     *pods
}

// Run handles claims until ctx ends.
func (r *Resizer) Run(ctx context.Context) error {
	c, err := r.newController(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	c.queue = queue.New(queue.Config{
		Name: c.name + "-pvc", Workers: r.config.Workers, RetryMin: r.config.RetryMin, RetryMax: r.config.RetryMax,
		Metrics: r.env.QueueMetrics, Clock: r.env.Clock, Log: c.log,
	})
	stop, err := c.watch(ctx)
	defer stop()
	if err != nil {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		c.queue.Run(ended, c.handle) // ends the queue
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	c.log.InfoContext(ctx, "Resizer runs", "expands", c.expands, "on_nodes_only", c.nodeOnly, "offline_only", c.offline, "modifies", c.modifies)
	c.queue.Run(ctx, c.handle)
	return nil
}

func (r *Resizer) newController(ctx context.Context) (*controller, error) {
	info := r.env.Driver.Info()
	conn := r.env.Driver.Conn()
	c := &controller{
		env: r.env, config: r.config, name: info.Name,
		log:       r.env.Log.With("component", sidecar.Resizer),
		events:    r.env.Events("external-resizer " + info.Name),
		driver:    csi.NewControllerClient(conn),
		migration: csitranslation.New(),
		memories:  newMemories(),
	}
	c.pods = newPods(c)
	if !info.Plugin[csi.PluginCapability_Service_CONTROLLER_SERVICE] {
		return nil, fmt.Errorf("resize volumes of driver %s: %w: it has no controller service", info.Name, sidecar.ErrNothingToDo)
	}
	var err error
	c.expands = info.Controller[csi.ControllerServiceCapability_RPC_EXPAND_VOLUME]
	if !c.expands {
		if c.nodeOnly, err = expandsOnNode(ctx, csi.NewNodeClient(conn), r.config.Timeout); err != nil {
			return nil, err
		}
		c.expands = c.nodeOnly
	}
	c.offline = info.Expansion[csi.PluginCapability_VolumeExpansion_OFFLINE] && !info.Expansion[csi.PluginCapability_VolumeExpansion_ONLINE]
	if c.modifies, err = c.mayModify(ctx); err != nil {
		return nil, err
	}
	if !c.expands && !info.Controller[csi.ControllerServiceCapability_RPC_MODIFY_VOLUME] {
		return nil, fmt.Errorf("resize volumes of driver %s: %w: it can neither expand nor modify volumes", info.Name, sidecar.ErrNothingToDo)
	}
	return c, nil
}

// mayModify reports whether volumes are to be modified. API servers before
// Kubernetes 1.34 have no attributes classes, and roles from then do not allow
// to read them: a cache of them would stay empty for ever.
func (c *controller) mayModify(ctx context.Context) (bool, error) {
	if c.config.NoModify || !c.env.Driver.Info().Controller[csi.ControllerServiceCapability_RPC_MODIFY_VOLUME] {
		return false, nil
	}
	_, err := c.env.Kube.StorageV1().VolumeAttributesClasses().List(ctx, metav1.ListOptions{Limit: 1})
	return c.readable(ctx, "volumeattributesclasses", err)
}

// readable tells an error that says that a kind cannot be read here from others.
func (c *controller) readable(ctx context.Context, kind string, err error) (bool, error) {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		c.log.WarnContext(ctx, "The API server does not let this kind be read: the resizer goes without", "kind", kind, "error", err)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("list %s: %w", kind, err)
	}
	return true, nil
}

// watch starts the caches and has changes in them put claims in the queue,
// until stop.
func (c *controller) watch(ctx context.Context) (stop func(), err error) {
	core := c.env.Informers.Kube().Core().V1()
	c.claims, c.volumes = core.PersistentVolumeClaims().Lister(), core.PersistentVolumes().Lister()
	var ends []func()
	stop = func() {
		for _, end := range ends {
			end()
		}
		c.pods.stop()
	}
	var synced []cache.InformerSynced
	add := func(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
		registration, addErr := informer.AddEventHandler(handler)
		if addErr != nil {
			err = errors.Join(err, addErr)
			return
		}
		ends = append(ends, func() { _ = informer.RemoveEventHandler(registration) }) // only fails for a handler of another informer
		synced = append(synced, informer.HasSynced)
	}
	add(core.PersistentVolumeClaims().Informer(), c.claimHandler())
	add(core.PersistentVolumes().Informer(), c.volumeHandler())
	if c.modifies {
		classes := c.env.Informers.Kube().Storage().V1().VolumeAttributesClasses()
		c.classes = classes.Lister()
		add(classes.Informer(), c.classHandler())
	}
	if err != nil {
		return stop, err
	}
	return stop, c.env.Informers.Sync(ctx, synced...)
}
