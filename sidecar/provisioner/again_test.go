package provisioner

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func (b *bed) made() {
	b.Helper()
	b.wait("made", func() bool {
		_, err := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, pvName, metav1.GetOptions{})
		return err == nil
	})
}

// sameWords checks that the driver was asked the same twice.
func (b *bed) sameWords() {
	b.Helper()
	calls := b.Driver.Calls("CreateVolume")
	if len(calls) != 2 {
		b.Fatalf("%d CreateVolume calls, want 2", len(calls))
	}
	if diff := cmp.Diff(calls[0].Request, calls[1].Request, protocmp.Transform()); diff != "" {
		b.Errorf("asked in other words the second time:\n%s", diff)
	}
}

// TestSourceGoesWhileTheAnswerIsOpenAndTheProcessEnds: only the journal knows the
// words by then. The claim gets its volume, and does not wait for a source that
// is never coming back.
func TestSourceGoesWhileTheAnswerIsOpenAndTheProcessEnds(t *testing.T) {
	t.Parallel()
	c, pv := source()
	b := newBed(t, able(csi.ControllerServiceCapability_RPC_CLONE_VOLUME), c, pv, cloneOf("source"), sidecartest.StorageClass(sidecartest.ClassName))
	b.config.RetryMin, b.config.RetryMax = 1<<40, 1<<40 // no second call in the first life
	b.Driver.Once("CreateVolume", b.createAndFail(codes.DeadlineExceeded))
	stop := b.start()
	b.wait("not made yet", func() bool { return b.saw("Warning ProvisioningFailed") })
	stop()
	b.deleteClaim("source")
	b.start()
	b.made()
	b.sameWords()
	if got := b.pv(pvName).Spec.CSI.VolumeHandle; got != "id-of-"+pvName {
		t.Errorf("volume %s", got)
	}
}

// TestNodesChangeWhileTheAnswerIsOpen: a request with the same name and another
// requirement is another request, which a driver may finally refuse; the volume
// of the first would be lost.
func TestNodesChangeWhileTheAnswerIsOpen(t *testing.T) {
	t.Parallel()
	b := newBed(t, topological(able()), append(nodes(), claim("data", selected("n1")))...)
	answer := b.createAndFail(codes.DeadlineExceeded)
	b.Driver.Once("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
		if err := b.Kube.Tracker().Add(sidecartest.CSINode("n2", zone)); err != nil {
			t.Error(err)
		}
		b.wait("seen", func() bool {
			return len(b.Env.Informers.Kube().Storage().V1().CSINodes().Informer().GetStore().List()) == 2
		})
		return answer(ctx, request)
	})
	b.start()
	b.made()
	b.sameWords()
}

// TestClassIsMendedWhileTheAnswerIsOpen: what the user corrects is asked for, or a
// class that makes the driver time out could never be mended.
func TestClassIsMendedWhileTheAnswerIsOpen(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	mended := sidecartest.StorageClass(sidecartest.ClassName, func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"pool": "right"} })
	classes := storagev1.SchemeGroupVersion.WithResource("storageclasses")
	b.Driver.On("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
		if request.(*csi.CreateVolumeRequest).GetParameters()["pool"] == "right" {
			return b.create(ctx, request)
		}
		if err := b.Kube.Tracker().Update(classes, mended, ""); err != nil {
			t.Error(err)
		}
		return sidecartest.Fail(codes.Unavailable, "no such pool")(ctx, request)
	})
	b.start()
	b.made()
}

// TestClassIsMendedAndItsWordsAreRefused: what was asked for before may have been made,
// under the same name, and is deleted when the claim goes.
func TestClassIsMendedAndItsWordsAreRefused(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]codes.Code{"at once": codes.AlreadyExists, "once the claim is gone": codes.Unavailable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
			mended := sidecartest.StorageClass(sidecartest.ClassName, func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"pool": "right"} })
			b.Driver.On("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
				_, err := b.Kube.Tracker().Get(v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), sidecartest.Namespace, "data")
				switch isRight := request.(*csi.CreateVolumeRequest).GetParameters()["pool"] == "right"; {
				case isRight && err == nil:
					return sidecartest.Fail(first, "other words")(ctx, request)
				case isRight:
					return sidecartest.Fail(codes.AlreadyExists, "other words")(ctx, request)
				case err != nil:
					return b.create(ctx, request)
				}
				if err := b.Kube.Tracker().Update(storagev1.SchemeGroupVersion.WithResource("storageclasses"), mended, ""); err != nil {
					t.Error(err)
				}
				return b.createAndFail(codes.DeadlineExceeded)(ctx, request)
			})
			b.start()
			b.wait("refused", func() bool { return b.logged("other words") })
			b.deleteClaim("data")
			b.wait("its volume is deleted", func() bool { return slices.Equal(b.deletions(), []string{"id-of-" + pvName}) })
			b.journalEmpty()
		})
	}
}

// TestClassIsMendedAndNothingCanBeAskedFor: the words of before would give the claim a
// volume as the class does not want it any more. They tell what there is to delete
// when the claim goes.
func TestClassIsMendedAndNothingCanBeAskedFor(t *testing.T) {
	t.Parallel()
	c, pv := source()
	b := newBed(t, able(csi.ControllerServiceCapability_RPC_CLONE_VOLUME), c, pv, cloneOf("source"), sidecartest.StorageClass(sidecartest.ClassName))
	mended := sidecartest.StorageClass(sidecartest.ClassName, func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"pool": "right"} })
	b.Driver.Once("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
		if err := b.Kube.Tracker().Update(storagev1.SchemeGroupVersion.WithResource("storageclasses"), mended, ""); err != nil {
			t.Error(err)
		}
		b.deleteClaim("source")
		b.wait("seen", func() bool {
			classes := b.Env.Informers.Kube().Storage().V1().StorageClasses().Informer().GetStore().List()
			_, exists, _ := b.Env.Informers.Kube().Core().V1().PersistentVolumeClaims().Informer().GetStore().GetByKey(sidecartest.Namespace + "/source")
			return !exists && len(classes[0].(*storagev1.StorageClass).Parameters) > 0
		})
		return b.createAndFail(codes.DeadlineExceeded)(ctx, request)
	})
	b.start()
	b.wait("refused", func() bool { return b.logged("it does not exist") || len(b.Driver.Calls("CreateVolume")) > 1 })
	if calls := b.Driver.Calls("CreateVolume"); len(calls) != 1 {
		t.Errorf("%d calls while nothing could be asked for", len(calls))
	}
	b.deleteClaim("data")
	b.wait("its volume is deleted", func() bool { return slices.Equal(b.deletions(), []string{"id-of-" + pvName}) })
	b.journalEmpty()
}

// TestClassChangesInWhatIsNotForTheDriverWhileTheAnswerIsOpen: the request is the
// same, and the volume is kept and reached as the class says now.
func TestClassChangesInWhatIsNotForTheDriverWhileTheAnswerIsOpen(t *testing.T) {
	t.Parallel()
	class := func(secret string, policy v1.PersistentVolumeReclaimPolicy) *storagev1.StorageClass {
		return sidecartest.StorageClass(sidecartest.ClassName, func(c *storagev1.StorageClass) {
			c.ReclaimPolicy = &policy
			c.Parameters = map[string]string{
				"csi.storage.k8s.io/provisioner-secret-name": secret, "csi.storage.k8s.io/provisioner-secret-namespace": sidecartest.Namespace}
		})
	}
	b := newBed(t, able(), claim("data"), class("wrong", v1.PersistentVolumeReclaimDelete),
		sidecartest.Secret("wrong", "key", "1"), sidecartest.Secret("right", "key", "2"))
	b.Driver.Once("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
		tracker := b.Kube.Tracker()
		if err := tracker.Update(storagev1.SchemeGroupVersion.WithResource("storageclasses"), class("right", v1.PersistentVolumeReclaimRetain), ""); err != nil {
			t.Error(err)
		}
		if err := tracker.Delete(v1.SchemeGroupVersion.WithResource("secrets"), sidecartest.Namespace, "wrong"); err != nil {
			t.Error(err)
		}
		b.wait("seen", func() bool {
			seen := b.Env.Informers.Kube().Storage().V1().StorageClasses().Informer().GetStore().List()
			return *seen[0].(*storagev1.StorageClass).ReclaimPolicy == v1.PersistentVolumeReclaimRetain
		})
		return b.createAndFail(codes.DeadlineExceeded)(ctx, request)
	})
	b.start()
	b.made()
	if got := b.pv(pvName); got.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimRetain || got.Annotations[annDeletionSecretName] != "right" {
		t.Errorf("policy %s, secret %s", got.Spec.PersistentVolumeReclaimPolicy, got.Annotations[annDeletionSecretName])
	}
	if got := b.Driver.Calls("CreateVolume")[1].Request.(*csi.CreateVolumeRequest).GetSecrets()["key"]; got != "2" {
		t.Errorf("asked again with the secret %q", got)
	}
}

// TestAttributesChangeWhileTheAnswerIsOpen: the object names the class that the
// volume was made with, and who modifies volumes sees that another is wanted.
func TestAttributesChangeWhileTheAnswerIsOpen(t *testing.T) {
	t.Parallel()
	gold := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, DriverName: sidecartest.DriverName, Parameters: map[string]string{"iops": "9"}}
	iron := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "iron"}, DriverName: sidecartest.DriverName, Parameters: map[string]string{"iops": "1"}}
	for name, restart := range map[string]bool{"same process": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := func(class string) *v1.PersistentVolumeClaim {
				return claim("data", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &class })
			}
			b := newBed(t, able(csi.ControllerServiceCapability_RPC_MODIFY_VOLUME), with("gold"), gold, iron, sidecartest.StorageClass(sidecartest.ClassName))
			change := func() {
				if err := b.Kube.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), with("iron"), sidecartest.Namespace); err != nil {
					t.Error(err)
				}
				b.wait("seen", func() bool {
					seen := b.Env.Informers.Kube().Core().V1().PersistentVolumeClaims().Informer().GetStore().List()
					return *seen[0].(*v1.PersistentVolumeClaim).Spec.VolumeAttributesClassName == "iron"
				})
			}
			answer, want := b.createAndFail(codes.DeadlineExceeded), ptr("gold")
			if restart {
				want = nil                                          // which it was is not in the journal
				b.config.RetryMin, b.config.RetryMax = 1<<40, 1<<40 // no second call in the first life
				b.Driver.Once("CreateVolume", answer)
				stop := b.start()
				b.wait("not made yet", func() bool { return b.saw("Warning ProvisioningFailed") })
				stop()
				change()
			} else {
				b.Driver.Once("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
					change()
					return answer(ctx, request)
				})
			}
			b.start()
			b.made()
			b.sameWords()
			if diff := cmp.Diff(want, b.pv(pvName).Spec.VolumeAttributesClassName); diff != "" {
				t.Errorf("class of the object, want - got +:\n%s", diff)
			}
		})
	}
}

// TestSourceIsKeptWhileACloneOfItMayBeInTheMaking, though the clone's claim is gone: a
// driver that is asked again and finds no source may answer that, finally, and
// keep the clone.
func TestSourceIsKeptWhileACloneOfItMayBeInTheMaking(t *testing.T) {
	t.Parallel()
	c, pv := source()
	sidecartest.Deleting(c)
	c.Finalizers = []string{cloneFinalizer}
	b := newBed(t, able(csi.ControllerServiceCapability_RPC_CLONE_VOLUME), c, pv, cloneOf("source"), sidecartest.StorageClass(sidecartest.ClassName))
	free := "update persistentvolumeclaims default/source"
	b.Env.Clock = clocktesting.NewFakeClock(time.Now())
	b.config.NoJournal = true // whose writes keep a distance in time
	early := make(chan bool, 1)
	b.Driver.Once("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
		b.deleteClaim("data")
		return b.createAndFail(codes.DeadlineExceeded)(ctx, request)
	}, func(ctx context.Context, request proto.Message) (proto.Message, error) {
		b.addClaim("then", "then") // to give the component the time to free the source
		b.wait("the other claim's volume", func() bool { return slices.Contains(b.Writes(), "create persistentvolumes pvc-then") })
		early <- slices.Contains(b.Writes(), free)
		return b.create(ctx, request)
	})
	b.start()
	b.wait("asked again", func() bool { return len(early) == 1 })
	if <-early {
		t.Error("the source was freed while the clone may have been in the making")
	}
	b.wait("freed", func() bool {
		b.Env.Clock.(*clocktesting.FakeClock).Step(settleLater)
		return slices.Contains(b.Writes(), free)
	})
	if got := b.deletions(); !slices.Equal(got, []string{"id-of-" + pvName}) {
		t.Errorf("deleted %q, want the clone", got)
	}
}
