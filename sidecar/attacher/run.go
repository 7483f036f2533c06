package attacher

import (
	"context"
	"log/slog"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/utils/clock"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/queue"
)

// The names of the queues in metrics, as upstream has them.
const (
	attachmentQueue = "csi-attacher-va"
	volumeQueue     = "csi-attacher-pv"
)

// volumeWorkers is how many volumes are freed of the finalizer at once, each
// with one request.
const volumeWorkers = 10

// run is one Run of an attacher.
type run struct {
	env        *sidecar.Env
	config     Config
	log        *slog.Logger
	clock      clock.WithTicker
	driver     string
	finalizer  string
	can        capabilities
	controller csi.ControllerClient
	translator translation.CSITranslator
	// translatorLog is where the translator of in-tree volumes logs.
	translatorLog logr.Logger

	attachmentIndex cache.Indexer
	attachments     storagelisters.VolumeAttachmentLister
	volumes         corelisters.PersistentVolumeLister
	csiNodes        storagelisters.CSINodeLister

	attachmentQueue, volumeQueue *queue.Queue
	memory                       *memory
	locks                        *locks
}

// capabilities are what the driver can do, as far as the attacher asks.
type capabilities struct {
	publish, publishReadOnly, list, singleNodeMultiWriter bool
}

// Run implements sidecar.Component.
func (a *Attacher) Run(ctx context.Context) error {
	r := a.newRun()
	unwatch, synced, err := r.watch()
	defer unwatch()
	if err == nil {
		err = r.env.Informers.Sync(ctx, synced...)
	}
	if err == nil && r.can.publish {
		err = r.remember()
	}
	if err != nil {
		r.endQueues()
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	r.log.InfoContext(ctx, "Attaching volumes", "driver", r.driver, "calls", r.can.publish, "reconciles", r.can.list)
	var work sync.WaitGroup
	work.Go(func() { r.attachmentQueue.Run(ctx, r.syncAttachment) })
	work.Go(func() { r.volumeQueue.Run(ctx, r.syncVolume) })
	if r.can.publish && r.can.list {
		work.Go(func() { r.reconcileEvery(ctx, r.config.ReconcileSync) })
	}
	work.Wait()
	return nil
}

func (a *Attacher) newRun() *run {
	info := a.env.Driver.Info()
	can := info.Controller
	r := &run{
		env: a.env, config: a.config, driver: info.Name, finalizer: FinalizerName(info.Name),
		log:        a.env.Log.With("component", sidecar.Attacher),
		controller: csi.NewControllerClient(a.env.Driver.Conn()),
		translator: translation.New(),
		can: capabilities{
			publish:               can[csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME],
			publishReadOnly:       can[csi.ControllerServiceCapability_RPC_PUBLISH_READONLY],
			singleNodeMultiWriter: can[csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER],
			list: can[csi.ControllerServiceCapability_RPC_LIST_VOLUMES] &&
				can[csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES],
		},
		clock: a.env.Clock, memory: newMemory(), locks: newLocks(),
	}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	r.translatorLog = logr.FromSlogHandler(r.log.Handler())
	r.attachmentQueue = r.newQueue(attachmentQueue, a.config.WorkerThreads)
	r.volumeQueue = r.newQueue(volumeQueue, min(a.config.WorkerThreads, volumeWorkers))
	return r
}

func (r *run) newQueue(name string, workers int) *queue.Queue {
	return queue.New(queue.Config{
		Name: name, Workers: workers, RetryMin: r.config.RetryMin, RetryMax: r.config.RetryMax,
		Metrics: r.env.QueueMetrics, Clock: r.clock, Log: r.log,
	})
}

// endQueues ends the goroutines of queues that were never worked on.
func (r *run) endQueues() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	none := func(context.Context, string) error { return nil }
	r.attachmentQueue.Run(ended, none)
	r.volumeQueue.Run(ended, none)
}
