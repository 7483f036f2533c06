package provisioner

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

const pvName = "pvc-pvc-data" // of the claim "data"

func TestVolumeIsMadeForAClaimWithOneWrite(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	stop := b.start()
	b.writes("create persistentvolumes " + pvName)
	mode := v1.PersistentVolumeFilesystem
	got := b.pv(pvName)
	identity := got.Spec.CSI.VolumeAttributes[attributeProvisionerID]
	want := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: pvName, UID: got.UID, ResourceVersion: got.ResourceVersion, CreationTimestamp: got.CreationTimestamp,
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": sidecartest.DriverName, annDeletionSecretName: "", annDeletionSecretSpace: ""},
			Finalizers:  []string{finalizer, "external-attacher/driver-example-com"},
		},
		Spec: v1.PersistentVolumeSpec{
			Capacity:    v1.ResourceList{v1.ResourceStorage: sidecartest.Size(sidecartest.GiB)},
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: sidecartest.DriverName, VolumeHandle: "id-of-" + pvName,
				VolumeAttributes: map[string]string{"made": "yes", attributeProvisionerID: identity},
			}},
			ClaimRef: &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: sidecartest.Namespace,
				Name: "data", UID: "pvc-data", ResourceVersion: got.Spec.ClaimRef.ResourceVersion},
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			StorageClassName:              sidecartest.ClassName,
			VolumeMode:                    &mode,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || identity == "" {
		t.Errorf("volume object, want - got +:\n%s", diff)
	}
	b.journalEmpty()
	stop()
	if events := b.Events(); len(events) > 0 {
		t.Errorf("events %q of a quick success, want none", events)
	}
}

// TestSecretOfLaterChangesIsNamedByTheVolume: who modifies volumes looks for it there.
func TestSecretOfLaterChangesIsNamedByTheVolume(t *testing.T) {
	t.Parallel()
	class := sidecartest.StorageClass(sidecartest.ClassName)
	class.Parameters = map[string]string{"csi.storage.k8s.io/controller-modify-secret-name": "s-${pvc.name}", "csi.storage.k8s.io/controller-modify-secret-namespace": "n"}
	b := newBed(t, able(), claim("data"), class)
	b.start()
	b.writes("create persistentvolumes " + pvName)
	got := b.pv(pvName).Annotations
	if got["volume.kubernetes.io/controller-modify-secret-name"] != "s-data" || got["volume.kubernetes.io/controller-modify-secret-namespace"] != "n" {
		t.Errorf("annotations %v", got)
	}
}

func TestFinalizersOfANewVolume(t *testing.T) {
	t.Parallel()
	retain := v1.PersistentVolumeReclaimRetain
	for name, test := range map[string]struct {
		running []string
		class   func(*storagev1.StorageClass)
		want    []string
	}{
		"attacher elsewhere": {nil, nil, []string{finalizer}},
		"attacher here":      {[]string{sidecar.Attacher}, nil, []string{finalizer, "external-attacher/driver-example-com"}},
		"retained":           {nil, func(c *storagev1.StorageClass) { c.ReclaimPolicy = &retain }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			class := sidecartest.StorageClass(sidecartest.ClassName)
			if test.class != nil {
				test.class(class)
			}
			b := newBed(t, able(), claim("data"), class)
			b.Env.Running = test.running
			b.start()
			b.writes("create persistentvolumes " + pvName)
			if diff := cmp.Diff(test.want, b.pv(pvName).Finalizers); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestC076_CreateIsRepeatedUntilItsAnswerIsFinal: after a time-out nobody knows
// whether there is a volume.
func TestC076_CreateIsRepeatedUntilItsAnswerIsFinal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers []codes.Code // of the first calls, each of which makes the volume
		last    codes.Code   // OK: the volume, else no volume
		creates int
		deletes int
	}{
		"time-outs, then the volume":     {[]codes.Code{codes.DeadlineExceeded, codes.DeadlineExceeded, codes.DeadlineExceeded}, codes.OK, 4, 1},
		"connection lost, then volume":   {[]codes.Code{codes.Unavailable, codes.Unavailable}, codes.OK, 3, 1},
		"under way, then the volume":     {[]codes.Code{codes.Aborted, codes.Aborted}, codes.OK, 3, 1},
		"time-outs, then a final answer": {[]codes.Code{codes.DeadlineExceeded, codes.DeadlineExceeded}, codes.Internal, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
			for i, code := range test.answers {
				answer := b.createAndFail(code)
				b.Driver.Once("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
					if i == 1 {
						b.deleteClaim("data")
					}
					return answer(ctx, request)
				})
			}
			if test.last != codes.OK {
				b.Driver.On("CreateVolume", sidecartest.Fail(test.last, "no"))
			}
			stop := b.start()
			b.wait("enough calls", func() bool {
				return len(b.Driver.Calls("CreateVolume")) >= test.creates && len(b.Driver.Calls("DeleteVolume")) >= test.deletes
			})
			b.journalEmpty()
			stop()
			if got := len(b.Driver.Calls("CreateVolume")); got != test.creates {
				t.Errorf("%d CreateVolume calls, want %d", got, test.creates)
			}
			for _, call := range b.Driver.Calls("CreateVolume") {
				if got := call.Request.(interface{ GetName() string }).GetName(); got != pvName {
					t.Errorf("repeated under the name %s", got)
				}
			}
			if got := len(b.deletions()); got != test.deletes {
				t.Errorf("%d volumes deleted, want %d", got, test.deletes)
			}
			if test.deletes > 0 && b.volumes() != 0 {
				t.Error("a volume is left at the back-end")
			}
		})
	}
}

func TestC076_ObjectIsSavedAtTheSixthTry(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	b.Refuse("create persistentvolumes", 5, apierrors.NewInternalError(context.DeadlineExceeded))
	stop := b.start()
	b.wait("saved", func() bool {
		_, err := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, pvName, metav1.GetOptions{})
		return err == nil
	})
	b.wait("told of trouble and its end", func() bool {
		return b.saw("Warning ProvisioningFailed The volume was made") && b.saw("Normal ProvisioningSucceeded")
	})
	stop()
	if got := b.Driver.CallNames(); !cmp.Equal(got, []string{"CreateVolume"}) {
		t.Errorf("CSI calls %q: the volume was made once and must not be deleted", got)
	}
}

// TestC076_ClassIsDeletedWhileTheVolumeIsMade: the class is gone, then the
// claim; the volume must not stay.
func TestC076_ClassIsDeletedWhileTheVolumeIsMade(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	answer := b.createAndFail(codes.DeadlineExceeded)
	b.Driver.Once("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
		if err := b.Kube.StorageV1().StorageClasses().Delete(ctx, sidecartest.ClassName, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		return answer(ctx, request)
	}, answer, func(ctx context.Context, request proto.Message) (proto.Message, error) {
		b.deleteClaim("data")
		return answer(ctx, request)
	})
	b.start()
	b.wait("volume deleted", func() bool { return len(b.deletions()) == 1 && b.volumes() == 0 })
}

// TestClaimBoundToAnotherVolumeMeanwhile: the volume under way is surplus.
func TestClaimBoundToAnotherVolumeMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName), sidecartest.PV("other"))
	answer := b.createAndFail(codes.DeadlineExceeded)
	b.Driver.Once("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
		b.deleteClaim("data")
		b.addClaim("data", "pvc-data", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "other" })
		return answer(ctx, request)
	})
	b.start()
	b.wait("volume deleted", func() bool { return len(b.deletions()) == 1 && b.volumes() == 0 })
}

// TestObjectThatCanNeverBeSaved: the API server takes nothing of the kind, a topology
// with keys that are no label's for instance. When the claim is gone, so is the volume.
func TestObjectThatCanNeverBeSaved(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	b.Refuse("create persistentvolumes", -1, apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolume"}, pvName, nil))
	b.start()
	b.wait("told", func() bool { return b.saw("Warning ProvisioningFailed The volume was made") })
	if got := b.deletions(); len(got) > 0 {
		t.Fatalf("deleted %q while the claim waits for it", got)
	}
	b.deleteClaim("data")
	b.wait("volume deleted", func() bool { return b.volumes() == 0 })
	b.journalEmpty()
}

func TestPanicIsAnErrorOfOneClaim(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	var calls atomic.Int32
	b.config.CapacityChanged = func(string, []*csi.Topology) {
		if calls.Add(1) == 1 {
			panic("in the middle of it")
		}
	}
	b.start()
	b.writes("create persistentvolumes " + pvName)
	// The library's events are sent beside its work.
	b.wait("told of the panic", func() bool { return b.saw("Warning ProvisioningFailed panic") })
}

// TestC077_KilledBetweenCreateAndSave: the process ends when the volume is made
// and its object is not saved, and the claim is deleted before the next start.
func TestC077_KilledBetweenCreateAndSave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		meanwhile func(b *bed)
		answer    func(b *bed) sidecartest.Answer // of the first call after the start
		volumes   int
		objects   int
	}{
		"claim deleted":                     {func(b *bed) { b.deleteClaim("data") }, nil, 0, 0},
		"claim deleted, driver slow":        {func(b *bed) { b.deleteClaim("data") }, func(b *bed) sidecartest.Answer { return b.createAndFail(codes.DeadlineExceeded) }, 0, 0},
		"claim alive":                       {func(*bed) {}, nil, 1, 1},
		"claim replaced by one of the name": {func(b *bed) { b.deleteClaim("data"); b.addClaim("data", "another") }, nil, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
			b.Refuse("create persistentvolumes", -1, apierrors.NewServiceUnavailable("paused"))
			stop := b.start()
			b.wait("volume made", func() bool { return b.saw("Warning ProvisioningFailed The volume was made") })
			stop()
			if len(b.entries()) != 1 {
				t.Fatalf("journal has %v, want the volume in the making", b.entries())
			}
			b.Mend()
			test.meanwhile(b)
			if test.answer != nil {
				b.Driver.Once("CreateVolume", test.answer(b))
			}
			b.start()
			b.wait("as it should be", func() bool {
				objects, err := b.Kube.CoreV1().PersistentVolumes().List(b.Ctx, metav1.ListOptions{})
				return err == nil && b.volumes() == test.volumes && len(objects.Items) == test.objects
			})
			b.wait("attempt ended", func() bool { return len(b.Driver.Calls("CreateVolume")) >= 2 })
			b.journalEmpty()
		})
	}
}

// TestC077_VolumeWithAnObjectIsNeverReplayed: the process ends after the object
// was saved and before the journal was written; with policy Retain a deletion
// would destroy what a user wants to keep.
func TestC077_VolumeWithAnObjectIsNeverReplayed(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	b.Refuse("create persistentvolumes", -1, apierrors.NewServiceUnavailable("paused"))
	stop := b.start()
	b.wait("volume made", func() bool { return b.saw("Warning ProvisioningFailed The volume was made") })
	stop()
	b.Mend()
	b.deleteClaim("data")
	kept := sidecartest.PV(pvName, func(pv *v1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
		pv.Spec.CSI.VolumeHandle = "id-of-" + pvName
	})
	if _, err := b.Kube.CoreV1().PersistentVolumes().Create(b.Ctx, kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	calls := len(b.Driver.Calls())
	stop = b.start()
	b.wait("journal read", func() bool { return b.requests("get", "persistentvolumes") > 0 })
	b.journalEmpty()
	stop()
	if got := len(b.Driver.Calls()); got != calls {
		t.Errorf("the driver was asked: %q", b.Driver.CallNames())
	}
}
