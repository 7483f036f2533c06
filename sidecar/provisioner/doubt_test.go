package provisioner

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// TestC080_OldClaimInTheCache: the claim and its volume are gone, an old state
// of the claim arrives once more.
func TestC080_OldClaimInTheCache(t *testing.T) {
	t.Parallel()
	for name, live := range map[string]*v1.PersistentVolumeClaim{
		"gone":     nil,
		"replaced": claim("data", func(c *v1.PersistentVolumeClaim) { c.UID = "another" }),
		"bound":    claim("data", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = pvName }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
			// The cache shows what a lagging API server shows, a live read the truth.
			b.Kube.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				if live == nil {
					return true, nil, notFound("persistentvolumeclaims", "data")
				}
				return true, live, nil
			})
			stop := b.start()
			b.wait("read", func() bool { return b.requests("get", "persistentvolumeclaims") > 0 })
			stop()
			if calls := b.Driver.CallNames(); len(calls) > 0 {
				t.Errorf("CSI calls %q, want none", calls)
			}
			if events := b.Events(); len(events) > 0 {
				t.Errorf("events %q, want none", events)
			}
		})
	}
}

// TestC080_NameOfTheObjectIsTaken: the save is answered with 409.
func TestC080_NameOfTheObjectIsTaken(t *testing.T) {
	t.Parallel()
	stored := func(handle string, uid types.UID) *v1.PersistentVolume {
		return sidecartest.PV(pvName, func(pv *v1.PersistentVolume) {
			pv.Spec.CSI.VolumeHandle = handle
			sidecartest.Bind(claim("data", func(c *v1.PersistentVolumeClaim) { c.UID = uid }), pv)
		})
	}
	for name, test := range map[string]struct {
		stored  *v1.PersistentVolume
		deleted int
		failed  bool
	}{
		"by the same volume":                   {stored("id-of-"+pvName, "pvc-data"), 0, false},
		"by another volume of the claim":       {stored("another", "pvc-data"), 1, true},
		"by another volume of another claim":   {stored("another", "another"), 1, true},
		"by the same volume for another claim": {stored("id-of-"+pvName, "another"), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
			b.Driver.On("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
				if err := b.Kube.Tracker().Add(test.stored.DeepCopy()); err != nil {
					t.Error(err)
				}
				return b.create(ctx, request)
			})
			stop := b.start()
			b.wait("read", func() bool { return b.requests("get", "persistentvolumes") == 1 })
			b.wait("deleted", func() bool { return len(b.deletions()) == test.deleted })
			b.wait("told", func() bool { return b.saw("Warning ProvisioningFailed Volume object") == test.failed })
			b.journalEmpty()
			stop()
			if got := len(b.deletions()); got != test.deleted {
				t.Errorf("%d volumes deleted, want %d", got, test.deleted)
			}
		})
	}
}

// TestLiveReadIsLeftOutWhereThereIsNoDoubt: a claim younger than this leader can
// only have got a volume from it.
func TestLiveReadIsLeftOutWhereThereIsNoDoubt(t *testing.T) {
	t.Parallel()
	young := func(c *v1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour)) }
	for name, test := range map[string]struct {
		claim *v1.PersistentVolumeClaim
		reads int
	}{
		"old":   {claim("data"), 1},
		"young": {claim("data", young), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), test.claim, sidecartest.StorageClass(sidecartest.ClassName))
			b.start()
			b.writes("create persistentvolumes " + pvName)
			if got := b.requests("get", "persistentvolumeclaims"); got != test.reads {
				t.Errorf("%d reads of the claim, want %d", got, test.reads)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(after time.Duration) time.Time { return start.Add(after) }
	of := func(uid string, created time.Time) *v1.PersistentVolumeClaim {
		return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), CreationTimestamp: metav1.NewTime(created)}}
	}
	m := newMemory(start)
	for name, test := range map[string]struct {
		claim    *v1.PersistentVolumeClaim
		doubtful bool
	}{
		"older than the leader":      {of("a", at(-time.Hour)), true},
		"maybe older, by the clocks": {of("a", at(clockSkewMax)), true},
		"younger than the leader":    {of("a", at(clockSkewMax+time.Second)), false},
		"without a time":             {of("a", time.Time{}), true},
	} {
		if got := m.doubtful(test.claim); got != test.doubtful {
			t.Errorf("%s: doubtful is %v", name, got)
		}
	}
	m.add("b", at(time.Hour))
	if !m.doubtful(of("b", at(time.Hour))) {
		t.Error("a claim that got its volume is not doubted")
	}
	for i := range memoryMax {
		m.add(types.UID(fmt.Sprint(i)), at(2*time.Hour))
	}
	if len(m.made) != memoryMax || len(m.order) != memoryMax {
		t.Errorf("remembers %d claims, want %d", len(m.made), memoryMax)
	}
	if !m.doubtful(of("b", at(time.Hour))) || !m.doubtful(of("c", at(time.Hour))) {
		t.Error("a claim as old as a forgotten one is not doubted")
	}
	if m.doubtful(of("c", at(time.Hour+time.Second))) {
		t.Error("a claim younger than all forgotten ones is doubted")
	}
}
