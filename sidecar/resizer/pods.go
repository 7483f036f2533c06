package resizer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/ephemeral"
)

const (
	// podsByClaim is the index of pods by the claims they use.
	podsByClaim = "csi-sidecar-claims"
	// podsTimeout bounds the first listing of all pods.
	podsTimeout = 30 * time.Second
)

// pods knows which claims are in use. All pods of the cluster are watched for
// it, so it begins with the first claim that needs to know: with a driver that
// expands volumes in use it never does.
type pods struct {
	c *controller

	mu       sync.Mutex
	asked    bool
	informer cache.SharedIndexInformer // nil where pods cannot be read
	end      func()
}

func newPods(c *controller) *pods { return &pods{c: c, end: func() {}} }

// waitsForPods reports whether an expansion waits until no pod uses the
// volume: because the driver refused it, or never does it otherwise. A pod's
// end is an event that goes on with it. A call that may be under way is
// repeated all the same.
func (c *controller) waitsForPods(ctx context.Context, w *work, unknown bool) (bool, error) {
	if c.config.IgnoreInUse || c.nodeOnly || unknown || !w.inUse && !c.offline {
		return false, nil
	}
	used, err := c.pods.use(ctx, w.key)
	if err != nil || !used {
		w.waits = ""
		return false, err
	}
	const waits = "pods"
	if w.waits != waits {
		w.waits = waits
		c.events.Eventf(w.claim, v1.EventTypeWarning, "VolumeResizeFailed",
			"Volume %s will be expanded when no pod uses it: driver %s does not expand it in use", w.volume.Name, c.name)
	}
	return true, nil
}

// use reports whether a pod on a node uses a claim. Where pods cannot be read
// it reports that none does: the driver will refuse what it cannot do.
func (p *pods) use(ctx context.Context, claimKey string) (bool, error) {
	informer, err := p.start(ctx)
	if informer == nil || err != nil {
		return false, err
	}
	found, err := informer.GetIndexer().ByIndex(podsByClaim, claimKey)
	return len(found) > 0, err
}

func (p *pods) start(ctx context.Context) (cache.SharedIndexInformer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked {
		return p.informer, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, podsTimeout, errors.New("the pods of the cluster could not be listed in time"))
	defer cancel()
	_, err := p.c.env.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if readable, err := p.c.readable(ctx, "pods", err); !readable || err != nil {
		p.asked = err == nil
		return nil, err
	}
	informer := p.c.env.Informers.Kube().Core().V1().Pods().Informer()
	// The informer outlives a run, and so does its index.
	if _, ok := informer.GetIndexer().GetIndexers()[podsByClaim]; !ok {
		if err := informer.AddIndexers(cache.Indexers{podsByClaim: claimsInUse}); err != nil {
			return nil, fmt.Errorf("index pods by their claims: %w", err)
		}
	}
	p.end()
	registration, err := informer.AddEventHandler(p.handler())
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	p.end = func() { _ = informer.RemoveEventHandler(registration) } // only fails for a handler of another informer
	if err := p.c.env.Informers.Sync(ctx, informer.HasSynced); err != nil {
		return nil, err
	}
	p.asked, p.informer = true, informer
	return informer, nil
}

func (p *pods) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

// handler has claims looked at that a pod has left.
func (p *pods) handler() cache.ResourceEventHandler {
	left := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		pod, ok := object.(*v1.Pod)
		if !ok {
			return
		}
		for _, key := range claimKeys(pod) {
			if p.c.memories.has(key) {
				p.c.queue.Add(key)
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			if holds(before.(*v1.Pod)) && !holds(after.(*v1.Pod)) {
				left(after)
			}
		},
		DeleteFunc: left,
	}
}

// holds reports whether a pod holds its volumes: it is on a node, and has not ended.
func holds(pod *v1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}

// claimsInUse are the keys of the claims that a pod holds.
func claimsInUse(object any) ([]string, error) {
	pod, ok := object.(*v1.Pod)
	if !ok || !holds(pod) {
		return nil, nil
	}
	return claimKeys(pod), nil
}

func claimKeys(pod *v1.Pod) []string {
	var keys []string
	for i := range pod.Spec.Volumes {
		switch volume := &pod.Spec.Volumes[i]; {
		case volume.PersistentVolumeClaim != nil:
			keys = append(keys, pod.Namespace+"/"+volume.PersistentVolumeClaim.ClaimName)
		case volume.Ephemeral != nil:
			keys = append(keys, pod.Namespace+"/"+ephemeral.VolumeClaimName(pod, volume))
		}
	}
	return keys
}
