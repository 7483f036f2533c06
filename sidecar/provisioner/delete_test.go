package provisioner

import (
	"context"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

func TestDeletionTakesTwoRequests(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), released("data"))
	stop := b.start()
	want := []string{"patch persistentvolumes data", "delete persistentvolumes data"}
	b.writes(want...)
	// The API server's own protection goes last, as in a cluster; every change
	// of the object is another chance to delete once more.
	if got := b.pv("data").Finalizers; !slices.Equal(got, []string{"kubernetes.io/pv-protection"}) {
		t.Errorf("finalizers %q are left", got)
	}
	pv := b.pv("data")
	pv.Labels = map[string]string{"changed": "yes"}
	if _, err := b.Kube.CoreV1().PersistentVolumes().Update(b.Ctx, pv, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	stop()
	b.writes(append(want, "update persistentvolumes data")...) // the test's own
	if got := b.deletions(); !slices.Equal(got, []string{"handle-data"}) {
		t.Errorf("deleted %q", got)
	}
	if reads := b.requests("get", "persistentvolumes"); reads != 2 { // the test's own
		t.Errorf("%d reads", reads-2)
	}
}

func TestFinalizerOfAnAttacherElsewhereStays(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), released("data"))
	b.Env.Running = []string{sidecar.Provisioner}
	b.start()
	b.writes("patch persistentvolumes data", "delete persistentvolumes data")
	if got := b.pv("data").Finalizers; !slices.Equal(got, []string{"kubernetes.io/pv-protection", "external-attacher/driver-example-com"}) {
		t.Errorf("finalizers %q are left", got)
	}
}

// TestC078_OrderOfDeletions: whatever is deleted first, the volume goes once
// and its object after it.
func TestC078_OrderOfDeletions(t *testing.T) {
	t.Parallel()
	deleting := func(pv *v1.PersistentVolume) { sidecartest.Deleting(pv) }
	retain := func(pv *v1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
	}
	byHand := func(pv *v1.PersistentVolume) { pv.Annotations = nil }
	bound := func(pv *v1.PersistentVolume) { pv.Status.Phase = v1.VolumeBound }
	only := func(names ...string) func(pv *v1.PersistentVolume) {
		return func(pv *v1.PersistentVolume) { pv.Finalizers = names }
	}
	for name, test := range map[string]struct {
		changes []func(*v1.PersistentVolume)
		writes  []string
		deleted int
	}{
		"volume before claim":          {[]func(*v1.PersistentVolume){deleting}, []string{"patch persistentvolumes data"}, 1},
		"volume while the claim lives": {[]func(*v1.PersistentVolume){deleting, bound}, nil, 0},
		"retained":                     {[]func(*v1.PersistentVolume){retain}, []string{"patch persistentvolumes data"}, 0},
		"retained and deleted":         {[]func(*v1.PersistentVolume){retain, deleting}, []string{"patch persistentvolumes data"}, 0},
		"made by hand":                 {[]func(*v1.PersistentVolume){byHand}, []string{"patch persistentvolumes data", "delete persistentvolumes data"}, 1},
		"made by hand, volume first":   {[]func(*v1.PersistentVolume){byHand, deleting}, []string{"patch persistentvolumes data"}, 1},
		"without our finalizer":        {[]func(*v1.PersistentVolume){only()}, []string{"delete persistentvolumes data"}, 1},
		"freed by us before":           {[]func(*v1.PersistentVolume){only("kubernetes.io/pv-protection"), deleting}, nil, 0},
		"of another driver": {[]func(*v1.PersistentVolume){func(pv *v1.PersistentVolume) {
			pv.Annotations["pv.kubernetes.io/provisioned-by"] = "another"
		}}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A second volume shows when the first has been looked at.
			b := newBed(t, able(), released("data", test.changes...))
			stop := b.start()
			b.writes(test.writes...)
			if err := b.Kube.Tracker().Add(released("then", only())); err != nil {
				t.Fatal(err)
			}
			b.wait("the second", func() bool { return slices.Contains(b.Writes(), "delete persistentvolumes then") })
			stop()
			b.writes(append(test.writes, "delete persistentvolumes then")...)
			if got := len(b.deletions()) - 1; got != test.deleted {
				t.Errorf("%d volumes deleted, want %d", got, test.deleted)
			}
		})
	}
}

func TestC078_ObjectStaysUntilTheVolumeIsGone(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), released("data"))
	b.Driver.Once("DeleteVolume", sidecartest.Fail(codes.Internal, "no"), func(ctx context.Context, request proto.Message) (proto.Message, error) {
		if writes := b.Writes(); len(writes) > 0 {
			t.Errorf("wrote %q before the volume was gone", writes)
		}
		return b.delete(ctx, request)
	})
	b.start()
	b.writes("patch persistentvolumes data", "delete persistentvolumes data")
	// The library's events are sent beside its work.
	b.wait("told of the failure", func() bool { return b.saw("Warning VolumeFailedDelete") })
}

func TestObjectIsTriedToBeRemovedAgainWithoutAskingTheDriver(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{"patch persistentvolumes", "delete persistentvolumes"} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), released("data"))
			b.Refuse(refused, 2, apierrors.NewServiceUnavailable("paused"))
			b.start()
			b.wait("deleted", func() bool {
				pv, err := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, "data", metav1.GetOptions{})
				return apierrors.IsNotFound(err) || (err == nil && pv.DeletionTimestamp != nil && len(pv.Finalizers) == 1)
			})
			if got := b.Driver.CallNames(); !slices.Equal(got, []string{"DeleteVolume"}) {
				t.Errorf("CSI calls %q, want one", got)
			}
		})
	}
}

func TestAttachedVolumeIsDeletedOnceItIsDetached(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), released("data"), sidecartest.VA("data", "n1"))
	b.config.RetryMin, b.config.RetryMax = 3600e9, 3600e9 // only the detachment can bring it back
	b.start()
	r := b.Kube.StorageV1().VolumeAttachments()
	b.wait("postponed", func() bool { return b.logged("still attached") })
	if calls := b.Driver.CallNames(); len(calls) > 0 {
		t.Errorf("CSI calls %q while attached", calls)
	}
	if err := r.Delete(b.Ctx, "data-n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.wait("deleted", func() bool { return len(b.deletions()) == 1 })
	if events := b.Events(); len(events) > 0 {
		t.Errorf("events %q of what is usual", events)
	}
}

func TestSecretsOfADeletion(t *testing.T) {
	t.Parallel()
	annotated := func(name, namespace string) func(*v1.PersistentVolume) {
		return func(pv *v1.PersistentVolume) {
			pv.Annotations[annDeletionSecretName], pv.Annotations[annDeletionSecretSpace] = name, namespace
		}
	}
	class := sidecartest.StorageClass(sidecartest.ClassName)
	class.Parameters = map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name": "s-${pvc.name}", "csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}"}
	for name, test := range map[string]struct {
		change func(*v1.PersistentVolume)
		unread error // of the first try to read the secret
		want   string
	}{
		"by annotation":        {annotated("s-one", sidecartest.Namespace), nil, "1"},
		"none by annotation":   {annotated("", ""), nil, ""},
		"gone":                 {annotated("s-none", sidecartest.Namespace), nil, ""},
		"by the class, as old": {func(*v1.PersistentVolume) {}, nil, "2"},
		// Without its secret a driver may find no volume, and say that all is well.
		"API server is busy": {annotated("s-one", sidecartest.Namespace), apierrors.NewServiceUnavailable("paused"), "1"},
		"not allowed":        {annotated("s-one", sidecartest.Namespace), apierrors.NewForbidden(schema.GroupResource{}, "s-one", nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, able(), released("data", test.change), class, sidecartest.Secret("s-one", "key", "1"), sidecartest.Secret("s-gone", "key", "2"))
			unread := 0
			b.Kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				unread++
				return unread == 1 && test.unread != nil, nil, test.unread
			})
			b.start()
			b.wait("deleted", func() bool { return len(b.deletions()) == 1 })
			got := b.Driver.Calls("DeleteVolume")[0].Request.(*csi.DeleteVolumeRequest).GetSecrets()["key"]
			if got != test.want {
				t.Errorf("secret %q, want %q", got, test.want)
			}
			if name == "gone" && !b.logged(`"s-none" not found`) && !b.logged(`\"s-none\" not found`) {
				t.Errorf("the log does not say why there was no secret:\n%s", b.Log())
			}
		})
	}
}

// TestTriviallyAttachedVolumeIsNotDeleted: a driver without attach may still have
// attachments, which tell that a node has the volume. Where the attacher runs in this
// process they are in the cache anyway.
func TestTriviallyAttachedVolumeIsNotDeleted(t *testing.T) {
	t.Parallel()
	info := able()
	delete(info.Controller, csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME)
	b := newBed(t, info, released("data"), sidecartest.VA("data", "n1"), sidecartest.StorageClass(sidecartest.ClassName))
	b.Env.Running = []string{sidecar.Attacher}
	b.start()
	b.others()
	if got := b.deletions(); len(got) > 0 {
		t.Errorf("deleted %q", got)
	}
}
