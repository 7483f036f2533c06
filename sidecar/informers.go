package sidecar

import (
	"context"
	"fmt"
	"time"

	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Informers are the caches of the API server's objects that components share.
// A kind is watched from the first Sync after a component asked for it, and
// then until the process ends.
type Informers struct {
	kube      informers.SharedInformerFactory
	snapshots snapshotinformers.SharedInformerFactory
	// life is the process' context: informers outlive the component that
	// started them, since others may read them too.
	life context.Context //nolint:containedctx // the factories keep it anyway
}

// NewInformers makes empty caches that end with life. Objects are listed
// again only after a lost watch: resync is the interval in which handlers see
// all objects once more without a request, 0 for never.
func NewInformers(life context.Context, kube kubernetes.Interface, snapshot snapshots.Interface, resync time.Duration) *Informers {
	i := &Informers{life: life}
	if kube != nil {
		i.kube = informers.NewSharedInformerFactoryWithOptions(kube, resync, informers.WithTransform(slim))
	}
	if snapshot != nil {
		i.snapshots = snapshotinformers.NewSharedInformerFactoryWithOptions(snapshot, resync, snapshotinformers.WithTransform(slim))
	}
	return i
}

// Kube gives the factory of Kubernetes' own kinds. Its informers are only to
// be asked for, never started.
func (i *Informers) Kube() informers.SharedInformerFactory { return i.kube }

// Snapshots gives the factory of the snapshot kinds, in the same way.
func (i *Informers) Snapshots() snapshotinformers.SharedInformerFactory { return i.snapshots }

// Sync starts what was asked for and waits until the caches given are full.
func (i *Informers) Sync(ctx context.Context, synced ...cache.InformerSynced) error {
	if i.kube != nil {
		i.kube.Start(i.life.Done())
	}
	if i.snapshots != nil {
		i.snapshots.Start(i.life.Done())
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("caches of the API server's objects are not full: %w", context.Cause(ctx))
	}
	return nil
}

// Shutdown waits until every informer has ended, which they do with life.
func (i *Informers) Shutdown() {
	if i.kube != nil {
		i.kube.Shutdown()
	}
	if i.snapshots != nil {
		i.snapshots.Shutdown()
	}
}

// slim drops what no component reads before an object goes into a cache: the
// record of field managers is often the larger half of an object. An update
// without it leaves the stored record as it is.
func slim(object any) (any, error) {
	// One without the record is not written to: a test's store may share it.
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	switch object := object.(type) {
	case *corev1.Node:
		return slimNode(object), nil
	case *corev1.Pod:
		return slimPod(object), nil
	default:
		return object, nil
	}
}

// slimNode is a node without the images it has, which are most of it.
func slimNode(node *corev1.Node) *corev1.Node {
	slimmed := *node
	slimmed.Status = corev1.NodeStatus{}
	return &slimmed
}

// slimPod is a pod as far as volumes go.
func slimPod(pod *corev1.Pod) *corev1.Pod {
	slimmed := *pod
	slimmed.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, Volumes: pod.Spec.Volumes}
	slimmed.Status = corev1.PodStatus{Phase: pod.Status.Phase}
	return &slimmed
}
