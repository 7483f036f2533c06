package provisioner

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// requestCounts are the requests so far but the lists and watches of caches.
func (b *bed) requestCounts() map[string]int {
	counts := map[string]int{}
	for _, action := range b.Kube.Actions() {
		switch action.GetVerb() {
		case "list", "watch":
		default:
			counts[action.GetVerb()+" "+action.GetResource().Resource]++
		}
	}
	return counts
}

func TestRequestsOfAHundredVolumes(t *testing.T) {
	t.Parallel()
	objects := []runtime.Object{sidecartest.StorageClass(sidecartest.ClassName)}
	for i := range 100 {
		objects = append(objects, claim(fmt.Sprint(i), func(c *v1.PersistentVolumeClaim) {
			c.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour)) // younger than the leader
		}))
	}
	b := newBed(t, able(), objects...)
	b.config.WorkerThreads, b.config.removalDelay = 100, 0 // the default
	began := time.Now()
	stop := b.start()
	b.wait("made", func() bool { return b.requestCounts()["create persistentvolumes"] == 100 })
	stop()
	took, counts := time.Since(began), b.requestCounts()
	// A busy machine takes its time, and the journal may be written once in each
	// interval of it; and a volume that took long is told of.
	mostJournal, isSlow := max(10, 4+int(took/commitInterval)), took >= slow
	journal := counts["get leases"] + counts["create leases"] + counts["update leases"]
	t.Logf("requests %v", counts)
	if journal > mostJournal {
		t.Errorf("%d requests for the journal of 100 volumes in %s, want no more than %d", journal, took, mostJournal)
	}
	for _, kind := range []string{"get leases", "create leases", "update leases", "create persistentvolumes"} {
		delete(counts, kind)
	}
	if len(counts) > 0 || (len(b.Events()) > 0 && !isSlow) {
		t.Errorf("more requests than needed: %v, events %q", counts, b.Events())
	}
}

func TestRequestsOfAHundredDeletions(t *testing.T) {
	t.Parallel()
	var objects []runtime.Object
	for i := range 100 {
		objects = append(objects, released(fmt.Sprint(i)))
	}
	b := newBed(t, able(), objects...)
	b.config.WorkerThreads = 100
	stop := b.start()
	b.wait("deleted", func() bool { return b.requestCounts()["delete persistentvolumes"] == 100 })
	stop()
	counts := b.requestCounts()
	if counts["patch persistentvolumes"] != 100 || counts["delete persistentvolumes"] != 100 || len(b.deletions()) != 100 {
		t.Errorf("%v, %d DeleteVolume calls; want 100 of each", counts, len(b.deletions()))
	}
	delete(counts, "patch persistentvolumes")
	delete(counts, "delete persistentvolumes")
	delete(counts, "get leases") // the journal, at the start
	if len(counts) > 0 {
		t.Errorf("more requests than needed: %v", counts)
	}
}
