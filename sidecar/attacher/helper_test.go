package attacher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var finalizer = FinalizerName(sidecartest.DriverName)

const (
	publishes   = "ControllerPublishVolume"
	unpublishes = "ControllerUnpublishVolume"
	lists       = "ListVolumes"
)

// with is a driver that can publish, and more.
func with(more ...csi.ControllerServiceCapability_RPC_Type) csiclient.Info {
	can := map[csi.ControllerServiceCapability_RPC_Type]bool{csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME: true}
	for _, one := range more {
		can[one] = true
	}
	return csiclient.Info{Controller: can}
}

func lister() csiclient.Info {
	return with(csi.ControllerServiceCapability_RPC_LIST_VOLUMES, csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES)
}

// bed is a bed whose driver does all that is asked of it.
func bed(t *testing.T, info csiclient.Info, objects ...runtime.Object) *sidecartest.Bed {
	b := sidecartest.New(t, info, objects...)
	b.Driver.On(publishes, sidecartest.Reply(&csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"lun": "7"}}))
	b.Driver.On(unpublishes, sidecartest.Reply(&csi.ControllerUnpublishVolumeResponse{}))
	return b
}

// quick is a configuration whose waits are short.
func quick() Config {
	return Config{RetryMin: 10 * time.Millisecond, RetryMax: 40 * time.Millisecond, ReconcileSync: 10 * time.Millisecond}
}

func start(b *sidecartest.Bed, config Config) (stop func()) {
	b.Helper()
	a, err := New(b.Env, config)
	if err != nil {
		b.Fatal(err)
	}
	return b.Run(a)
}

// guarded is a volume that has the finalizer.
func guarded(name string, changes ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	return sidecartest.PV(name, append(changes, func(pv *v1.PersistentVolume) { pv.Finalizers = append(pv.Finalizers, finalizer) })...)
}

// isAttached makes a VolumeAttachment one whose volume was attached.
func isAttached(va *storagev1.VolumeAttachment) {
	mayBeAttached(va)
	va.Status.Attached = true
	va.Status.AttachmentMetadata = map[string]string{"lun": "7"}
}

// mayBeAttached makes a VolumeAttachment one whose volume was published, with
// an outcome nobody knows.
func mayBeAttached(va *storagev1.VolumeAttachment) {
	va.Finalizers = append(va.Finalizers, finalizer)
	va.Annotations = map[string]string{nodeIDAnnotation: "id-" + va.Spec.NodeName}
}

func deleting(va *storagev1.VolumeAttachment) { sidecartest.Deleting(va) }

func getVA(b *sidecartest.Bed, name string) (*storagev1.VolumeAttachment, error) {
	return b.Kube.StorageV1().VolumeAttachments().Get(b.Ctx, name, metav1.GetOptions{})
}

func vaIs(b *sidecartest.Bed, name, what string, is func(*storagev1.VolumeAttachment) bool) {
	b.Helper()
	b.Eventually(func() error {
		va, err := getVA(b, name)
		if err == nil && !is(va) {
			err = fmt.Errorf("%s is not %s: %+v %+v", name, what, va.ObjectMeta, va.Status)
		}
		return err
	})
}

// cacheHas waits until the attacher's cache has a VolumeAttachment as it is to be.
func cacheHas(b *sidecartest.Bed, name string, is func(*storagev1.VolumeAttachment) bool) {
	b.Helper()
	b.Eventually(func() error {
		va, err := b.Env.Informers.Kube().Storage().V1().VolumeAttachments().Lister().Get(name)
		if err == nil && !is(va) {
			err = fmt.Errorf("the cache does not know: %+v", va)
		}
		return err
	})
}

func attached(b *sidecartest.Bed, name string) {
	b.Helper()
	vaIs(b, name, "attached", func(va *storagev1.VolumeAttachment) bool { return va.Status.Attached })
}

func gone(b *sidecartest.Bed, name string) {
	b.Helper()
	b.Eventually(func() error {
		if va, err := getVA(b, name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is there: %v %v", name, va, err)
		}
		return nil
	})
}

// failed waits for an attach error with a text.
func failed(b *sidecartest.Bed, name, text string) {
	b.Helper()
	vaIs(b, name, "failed with "+text, func(va *storagev1.VolumeAttachment) bool {
		return va.Status.AttachError != nil && strings.Contains(va.Status.AttachError.Message, text)
	})
}

func volumeGone(b *sidecartest.Bed, name string) {
	b.Helper()
	b.Eventually(func() error {
		if pv, err := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is there: %v %v", name, pv.Finalizers, err)
		}
		return nil
	})
}

func create(b *sidecartest.Bed, objects ...*storagev1.VolumeAttachment) {
	b.Helper()
	for _, va := range objects {
		if _, err := b.Kube.StorageV1().VolumeAttachments().Create(b.Ctx, va, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func remove(b *sidecartest.Bed, name string) {
	b.Helper()
	if err := b.Kube.StorageV1().VolumeAttachments().Delete(b.Ctx, name, metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
}

// strip removes all finalizers, as a person in despair does.
func strip(b *sidecartest.Bed, name string) {
	b.Helper()
	_, err := b.Kube.StorageV1().VolumeAttachments().Patch(b.Ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		b.Fatal(err)
	}
}

// csiCalls are the calls so far, each as "publish VOLUME NODE".
func csiCalls(b *sidecartest.Bed) []string {
	var calls []string
	for _, call := range b.Driver.Calls(publishes, unpublishes) {
		switch request := call.Request.(type) {
		case *csi.ControllerPublishVolumeRequest:
			calls = append(calls, "publish "+request.VolumeId+" "+request.NodeId)
		case *csi.ControllerUnpublishVolumeRequest:
			calls = append(calls, "unpublish "+request.VolumeId+" "+request.NodeId)
		}
	}
	return calls
}

func same(t testing.TB, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func contains(t testing.TB, what string, want string, got []string) {
	t.Helper()
	if !slices.Contains(got, want) {
		t.Errorf("%s: no %q in %q", what, want, got)
	}
}

// reads are the objects of some kinds that were read one by one.
func reads(b *sidecartest.Bed, resources ...string) []string {
	var all []string
	for _, action := range b.Kube.Actions() {
		if action.GetVerb() == "get" && slices.Contains(resources, action.GetResource().Resource) {
			all = append(all, action.GetResource().Resource)
		}
	}
	return all
}

// held is an answer that waits for the test, whatever the caller does.
func held(reply proto.Message, err error) (answer sidecartest.Answer, arrived <-chan struct{}, release chan<- struct{}) {
	in, out := make(chan struct{}, 1), make(chan struct{})
	return func(context.Context, proto.Message) (proto.Message, error) {
		in <- struct{}{}
		<-out
		return reply, err
	}, in, out
}

func await(t testing.TB, what string, arrived <-chan struct{}) {
	t.Helper()
	select {
	case <-arrived:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: not within 30 s", what)
	}
}
