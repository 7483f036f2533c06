package provisioner

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	csitranslation "k8s.io/csi-translation-lib"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/queue"
	topo "github.com/csi-windows/csi-windows/sidecar/topology"
)

// uidIndex is the library's index of claims.
const uidIndex = "uid"

// run is one run of the provisioner, from becoming the leader to losing that.
// It is what the library calls a provisioner.
type run struct {
	env    *sidecar.Env
	config Config
	log    *slog.Logger
	ctx    context.Context //nolint:containedctx // the library gives calls of its own a context that never ends

	driver   string
	info     csiclient.Info
	csi      csi.ControllerClient
	identity string
	// attachesHere: the attacher runs in this process, for this driver.
	attachesHere bool
	// inTree is the old plugin whose claims come to this driver, or "".
	inTree     string
	translator csitranslation.CSITranslator

	claims, volumes *lentInformer
	classes         *classStore
	classInformer   *lentInformer
	attachments     *lentInformer // nil: nobody looks at attachments
	topology        *topology     // nil: the driver knows no topology

	events    *reporter
	attempts  *attempts
	memory    *memory
	deletions *deletions
	taken     *takenNames
	journal   *journal
	node      *ownNode     // nil unless one provisioner runs on each node
	settling  *queue.Queue // uids of claims whose open attempts somebody must end
	cloning   *queue.Queue // keys of claims that may be freed from being sources

	// saving is held for reading while an object is saved.
	saving sync.RWMutex
}

var (
	_ controller.Provisioner      = (*run)(nil)
	_ controller.BlockProvisioner = (*run)(nil)
	_ controller.Qualifier        = (*run)(nil)
	_ controller.DeletionGuard    = (*run)(nil)
)

func (p *Provisioner) newRun(ctx context.Context) *run {
	driver := p.env.Driver.Name()
	informers := p.env.Informers.Kube()
	lend := func(i cache.SharedIndexInformer) *lentInformer { return &lentInformer{SharedIndexInformer: i} }
	r := &run{
		env: p.env, config: p.config, ctx: ctx,
		log:    p.env.Log.With("component", sidecar.Provisioner),
		driver: driver, info: p.env.Driver.Info(),
		csi:           csi.NewControllerClient(p.env.Driver.Conn()),
		identity:      fmt.Sprintf("%d-%d-%s", p.env.Clock.Now().UnixMilli(), rand.IntN(10000), driver),
		translator:    csitranslation.New(),
		claims:        lend(informers.Core().V1().PersistentVolumeClaims().Informer()),
		volumes:       lend(informers.Core().V1().PersistentVolumes().Informer()),
		classInformer: lend(informers.Storage().V1().StorageClasses().Informer()),
		events:        &reporter{recorder: p.env.Events(driver + "_" + p.env.Identity)},
		attempts:      &attempts{all: map[types.UID]*attempt{}},
		memory:        newMemory(p.env.Clock.Now()),
		deletions:     &deletions{all: map[types.UID]deletion{}},
		taken:         &takenNames{waiting: map[string][]types.UID{}},
	}
	r.classes = &classStore{Store: r.classInformer.SharedIndexInformer.GetStore(), attempts: r.attempts}
	r.classInformer.mended = r.classes
	attacher := slices.Contains(p.env.Running, sidecar.Attacher)
	if attaches := r.info.Controller[csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME]; attaches || attacher {
		// Without attach in the driver an attachment still tells that a node has the
		// volume. With the attacher in this process it costs nothing to look.
		r.attachments = lend(informers.Storage().V1().VolumeAttachments().Informer())
		r.attachesHere = attaches && attacher
	}
	if topo.Has(p.env) && p.config.NodeDeployment == nil {
		r.topology = newTopology(p.env)
	}
	if r.translator.IsMigratedCSIDriverByName(driver) {
		r.inTree, _ = r.translator.GetInTreeNameFromCSIName(driver) // "" for a driver that replaces none
	}
	return r
}

func (r *run) newQueue(name string, workers int) *queue.Queue {
	return queue.New(queue.Config{Name: name, Workers: workers, RetryMin: r.config.RetryMin, RetryMax: r.config.RetryMax,
		Metrics: r.env.QueueMetrics, Clock: r.env.Clock, Log: r.log})
}

// Collectors are the metrics of volumes made and deleted, under upstream's
// names, to be registered by whoever serves metrics.
func (p *Provisioner) Collectors() []prometheus.Collector {
	m := p.metrics
	return []prometheus.Collector{
		m.PersistentVolumeClaimProvisionTotal, m.PersistentVolumeClaimProvisionFailedTotal,
		m.PersistentVolumeClaimProvisionDurationSeconds, m.PersistentVolumeDeleteTotal,
		m.PersistentVolumeDeleteFailedTotal, m.PersistentVolumeDeleteDurationSeconds, p.journalUp,
	}
}

// Run implements sidecar.Component.
func (p *Provisioner) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := p.newRun(ctx)
	if err := r.prepare(p); err != nil {
		if ctx.Err() != nil {
			return nil // it was to end
		}
		return err
	}
	var background sync.WaitGroup
	r.watch()
	background.Go(func() { r.journal.run(ctx) })
	background.Go(func() { r.settling.Run(ctx, r.settle) })
	background.Go(func() { r.cloning.Run(ctx, r.freeSource) })
	if r.node != nil {
		background.Go(func() { r.node.competing.Run(ctx, r.compete) })
	}
	var workers sync.WaitGroup
	library := p.newLibrary(r)
	library.ControllerWaitGroup(&workers)
	library.Run(withLog(ctx, r.log))
	workers.Wait()
	cancel()
	background.Wait()
	r.end()
	return nil
}

// prepare fills the caches and reads what the leader before left open.
func (r *run) prepare(p *Provisioner) error {
	if err := r.addIndexes(); err != nil {
		return fmt.Errorf("provisioner: %w", err)
	}
	synced := []cache.InformerSynced{r.claims.HasSynced, r.volumes.HasSynced, r.classInformer.HasSynced}
	if r.attachments != nil {
		synced = append(synced, r.attachments.HasSynced)
	}
	if r.topology != nil {
		synced = append(synced, r.topology.synced()...)
	}
	if err := r.env.Informers.Sync(r.ctx, synced...); err != nil {
		return fmt.Errorf("provisioner: %w", err)
	}
	if r.config.NodeDeployment != nil {
		if err := r.settleOn(r.config.NodeDeployment); err != nil {
			return fmt.Errorf("provisioner: %w", err)
		}
	}
	r.journal = r.newJournal(p.journalUp)
	open, err := r.journal.load(r.ctx)
	if err != nil {
		return fmt.Errorf("provisioner: %w", err)
	}
	// A queue has a goroutine from its making on: nothing fails after here.
	r.settling = r.newQueue("settle-intents", 4)
	r.cloning = r.newQueue("cloning-protection", r.config.CloningProtectionThreads)
	if r.node != nil {
		r.node.competing = r.newQueue("own-claims", 4)
	}
	for uid, what := range open {
		r.attempts.of(uid).find(what)
		r.settling.Add(string(uid))
	}
	return nil
}

func (r *run) addIndexes() error {
	if r.attachments != nil {
		if err := r.attachments.AddIndexers(cache.Indexers{volumeIndex: attachedVolume}); err != nil {
			return fmt.Errorf("index of attachments: %w", err)
		}
	}
	if err := r.claims.AddIndexers(cache.Indexers{uidIndex: indexByUID}); err != nil {
		return fmt.Errorf("index of claims: %w", err)
	}
	return nil
}

// watch looks for what the library does not look at.
func (r *run) watch() {
	_, _ = r.claims.AddEventHandler(cache.ResourceEventHandlerFuncs{ // it fails for an informer that ended, in a process that ends
		AddFunc:    func(object any) { r.claimChanged(object) },
		UpdateFunc: func(_, object any) { r.claimChanged(object) },
		DeleteFunc: r.claimGone,
	})
	_, _ = r.volumes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(object any) {
			if volume, ok := last(object).(*v1.PersistentVolume); ok {
				r.deletions.forget(volume.UID)
				r.nameIsFree(volume)
			}
		},
	})
	if r.attachments != nil {
		_, _ = r.attachments.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: r.attachmentGone})
	}
}

func (r *run) claimChanged(object any) {
	claim, ok := object.(*v1.PersistentVolumeClaim)
	if !ok {
		return
	}
	r.watchSource(claim)
	if claim.Spec.VolumeName == "" {
		return
	}
	// Bound, maybe to another volume than the one that is being made for it.
	if r.attempts.forget(claim.UID) {
		r.settling.Add(string(claim.UID))
	}
}

func (r *run) claimGone(object any) {
	claim, ok := last(object).(*v1.PersistentVolumeClaim)
	if !ok {
		return
	}
	r.watchSource(claim)
	if r.attempts.forget(claim.UID) {
		r.settling.Add(string(claim.UID))
	}
}

// end takes everything back that was lent or begun.
func (r *run) end() {
	r.events.end()
	r.claims.takeBack()
	r.volumes.takeBack()
	r.classInformer.takeBack()
	if r.attachments != nil {
		r.attachments.takeBack()
	}
	r.saving.Lock() // the last object is saved, or not
	defer r.saving.Unlock()
}

func (p *Provisioner) newLibrary(r *run) *controller.ProvisionController {
	limiter := func() workqueue.TypedRateLimiter[string] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[string](p.config.RetryMin, p.config.RetryMax)
	}
	options := []func(*controller.ProvisionController) error{
		controller.LeaderElection(false), // the process holds the lease
		controller.ClaimsInformer(r.claims), controller.VolumesInformer(r.volumes), controller.ClassesInformer(r.classInformer),
		controller.FailedProvisionThreshold(0), controller.FailedDeleteThreshold(0),
		controller.RateLimiter(limiter()), controller.CreateProvisionedPVLimiter(limiter()),
		controller.RetryIntervalMax(p.config.RetryMax),
		controller.Threadiness(p.config.WorkerThreads),
		controller.AddFinalizer(true),
		controller.VolumeName(r.volumeName),
		controller.MetricsInstance(p.metrics),
	}
	if r.inTree != "" {
		options = append(options, controller.AdditionalProvisionerNames([]string{r.inTree}))
	}
	return controller.NewProvisionController(withLog(r.ctx, r.log), &client{r.env.Kube, r}, r.driver, r, options...)
}

// withLog lets the library log to the process' log, as details: what matters
// is logged by this package.
func withLog(ctx context.Context, log *slog.Logger) context.Context {
	return logr.NewContext(ctx, logr.FromSlogHandler(details{log.Handler()}))
}

// details is a log in which everything is a detail, and what the library takes
// for details itself, whole objects among them, is less than that.
type details struct{ slog.Handler }

const levelTrace = slog.LevelDebug - 4

func asDetail(level slog.Level) slog.Level {
	if level >= slog.LevelInfo {
		return slog.LevelDebug
	}
	return levelTrace
}

// Enabled implements slog.Handler.
func (d details) Enabled(ctx context.Context, level slog.Level) bool {
	return d.Handler.Enabled(ctx, asDetail(level))
}

// Handle implements slog.Handler.
func (d details) Handle(ctx context.Context, record slog.Record) error {
	record.Level = asDetail(record.Level)
	return d.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (d details) WithAttrs(attrs []slog.Attr) slog.Handler {
	return details{d.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (d details) WithGroup(name string) slog.Handler { return details{d.Handler.WithGroup(name)} }

// claimByUID gives a claim from the cache, nil when there is none.
func (r *run) claimByUID(uid types.UID) *v1.PersistentVolumeClaim {
	found, err := r.claims.GetIndexer().ByIndex(uidIndex, string(uid))
	if err != nil || len(found) == 0 {
		return nil
	}
	claim, _ := found[0].(*v1.PersistentVolumeClaim)
	return claim
}

// last is the last known state of an object that is gone.
func last(object any) any {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return object
}
