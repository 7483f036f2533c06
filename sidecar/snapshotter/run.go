package snapshotter

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/container-storage-interface/spec/lib/go/csi"
	informers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/queue"
)

// Run implements sidecar.Component.
func (s *Snapshotter) Run(ctx context.Context) error {
	info := s.env.Driver.Info()
	noSnapshots, noGroups := lacking(info)
	log := s.env.Log.With("component", s.Name())
	if noSnapshots != "" {
		if readable, err := s.readable(ctx, false); err != nil {
			return fmt.Errorf("list contents of snapshots: %w", err)
		} else if !readable {
			return fmt.Errorf("take snapshots of volumes of driver %s: %w: it lacks the capability %s", info.Name, sidecar.ErrNothingToDo, noSnapshots)
		}
	}
	withGroups := s.config.Groups
	if withGroups && noGroups != "" {
		var err error
		if withGroups, err = s.readable(ctx, true); err != nil {
			return fmt.Errorf("list contents of group snapshots: %w", err)
		}
	}
	// The group's own context has ended whenever Wait returns, and says nothing.
	work, both := errgroup.WithContext(ctx)
	work.Go(func() error { return s.runSnapshots(both, log, noSnapshots) })
	if withGroups {
		work.Go(func() error { return s.runGroups(both, log, noGroups) })
	}
	if err := work.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (s *Snapshotter) runSnapshots(ctx context.Context, log *slog.Logger, lacks string) error {
	_, err := s.await(ctx, log, snapshotWords.apiGroup, []string{"v1"}, "volumesnapshotcontents", "volumesnapshotclasses")
	if err != nil {
		return err
	}
	factory, end := s.contentsFactory()
	defer end()
	contents := factory.Snapshot().V1().VolumeSnapshotContents().Informer()
	classes := s.env.Informers.Snapshots().Snapshot().V1().VolumeSnapshotClasses().Informer()
	m := s.machine(&snapshotWords, log, lacks)
	m.namePrefix, m.uidLength = s.config.NamePrefix, s.config.NameUIDLength
	m.kind = &snapshots{
		contents: contents.GetIndexer(), classes: classes.GetIndexer(),
		client:     s.env.Snapshots.SnapshotV1().VolumeSnapshotContents(),
		controller: csi.NewControllerClient(s.env.Driver.Conn()), info: s.env.Driver.Info(),
	}
	return s.work(ctx, m, "csi-snapshotter-content", factory, contents, classes)
}

func (s *Snapshotter) runGroups(ctx context.Context, log *slog.Logger, lacks string) error {
	version, err := s.await(ctx, log, groupWords.apiGroup, groupVersions(), "volumegroupsnapshotcontents", "volumegroupsnapshotclasses")
	if err != nil {
		return err
	}
	factory, end := s.contentsFactory()
	defer end()
	contents, classes := groupInformers(version, factory, s.env.Informers.Snapshots())
	m := s.machine(&groupWords, log, lacks)
	m.namePrefix, m.uidLength = s.config.GroupNamePrefix, s.config.GroupNameUIDLength
	m.kind = &groups{
		contents: contents.GetIndexer(), classes: classes.GetIndexer(),
		api:        groupAPIOf(version, s.env.Snapshots),
		controller: csi.NewGroupControllerClient(s.env.Driver.Conn()),
	}
	return s.work(ctx, m, "csi-snapshotter-groupsnapshotcontent", factory, contents, classes)
}

func (s *Snapshotter) machine(words *words, log *slog.Logger, lacks string) *machine {
	name := s.env.Driver.Name()
	if lacks != "" {
		log.Info("The driver cannot take these, their objects are told so", "driver", name, "of", words.noun, "lacks", lacks)
	}
	return &machine{
		words: words, lacks: lacks, config: s.config, driver: name, kube: s.env.Kube,
		events: s.env.Events("csi-snapshotter " + name), clock: s.env.Clock, log: log,
	}
}

// contentsFactory gives the factory of the caches of contents. The sidecar of
// a node watches those of its node only, in caches of its own that end with
// the component.
func (s *Snapshotter) contentsFactory() (factory informers.SharedInformerFactory, end func()) {
	if s.config.NodeName == "" {
		return s.env.Informers.Snapshots(), func() {}
	}
	selector := labels.Set{labelManagedBy: s.config.NodeName}.String()
	factory = informers.NewSharedInformerFactoryWithOptions(s.env.Snapshots, 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = selector }),
		informers.WithTransform(func(object any) (any, error) {
			if accessor, err := meta.Accessor(object); err == nil {
				accessor.SetManagedFields(nil)
			}
			return object, nil
		}))
	return factory, factory.Shutdown
}

// work handles contents until ctx ends.
func (s *Snapshotter) work(ctx context.Context, m *machine, name string, factory informers.SharedInformerFactory, contents, classes cache.SharedIndexInformer) error {
	if s.config.NodeName != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel() // ends the caches of the node
		factory.Start(ctx.Done())
	}
	if err := s.env.Informers.Sync(ctx, contents.HasSynced, classes.HasSynced); err != nil {
		return err
	}
	waiting := queue.New(queue.Config{
		Name: name, Workers: s.config.Workers, RetryMin: s.config.RetryMin, RetryMax: s.config.RetryMax,
		Metrics: s.env.QueueMetrics, Clock: s.env.Clock, Log: m.log,
	})
	handler, err := contents.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: waiting.AddObject,
		UpdateFunc: func(old, object any) {
			if m.otherwise(old, object) {
				waiting.AddObject(object)
			}
		},
		DeleteFunc: waiting.AddObject,
	})
	if err != nil {
		return fmt.Errorf("watch %ss: %w", m.words.kind, err)
	}
	waiting.Run(ctx, m.handle)
	if err := contents.RemoveEventHandler(handler); err != nil {
		return fmt.Errorf("stop watching %ss: %w", m.words.kind, err)
	}
	return nil
}

// otherwise reports that an update may call for work.
func (m *machine) otherwise(old, object any) bool {
	was, err := m.kind.contentOf(old)
	if err != nil {
		return true // the handler will say why
	}
	is, err := m.kind.contentOf(object)
	return err != nil || is.otherwise(was)
}

var _ sidecar.Component = (*Snapshotter)(nil)
