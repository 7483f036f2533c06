package sidecartest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	. "github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func patchPV(b *Bed, name, patch string, sub ...string) (*v1.PersistentVolume, error) {
	return b.Kube.CoreV1().PersistentVolumes().Patch(b.Ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)
}

func getPV(t *testing.T, b *Bed, name string) *v1.PersistentVolume {
	t.Helper()
	pv, err := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pv
}

func TestAnObjectWithFinalizersGoesWithTheLast(t *testing.T) {
	t.Parallel()
	b := New(t, csiclient.Info{}, PV("one", func(pv *v1.PersistentVolume) { pv.Finalizers = []string{"a/b", "c/d"} }))
	volumes := b.Kube.CoreV1().PersistentVolumes()
	if err := volumes.Delete(b.Ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	marked := getPV(t, b, "one")
	if marked.DeletionTimestamp == nil {
		t.Error("it is not marked")
	}
	if err := volumes.Delete(b.Ctx, "one", metav1.DeleteOptions{}); err != nil || getPV(t, b, "one").ResourceVersion != marked.ResourceVersion {
		t.Errorf("a second deletion changed it: %v", err)
	}
	if _, err := patchPV(b, "one", `{"metadata":{"finalizers":["c/d"],"deletionTimestamp":null}}`); err != nil || getPV(t, b, "one").DeletionTimestamp == nil {
		t.Errorf("it is not marked any more: %v", err)
	}
	last, err := patchPV(b, "one", `{"metadata":{"finalizers":null}}`)
	if err != nil || last.Name != "one" || len(last.Finalizers) != 0 {
		t.Errorf("the last state: %v, %v", last, err)
	}
	if _, err := patchPV(b, "one", `{}`); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
	want := []string{
		"delete persistentvolumes one", "delete persistentvolumes one",
		"patch persistentvolumes one", "patch persistentvolumes one", "patch persistentvolumes one",
	}
	if got := b.Writes(); !slices.Equal(got, want) {
		t.Errorf("writes: %q", got)
	}
}

func TestWhatIsMadeHasAnIdentity(t *testing.T) {
	t.Parallel()
	b := New(t, csiclient.Info{})
	seen := map[types.UID]bool{}
	for range 2 {
		made, err := b.Kube.CoreV1().PersistentVolumes().Create(b.Ctx, PV("one", func(pv *v1.PersistentVolume) { pv.UID = "" }), metav1.CreateOptions{})
		if err != nil || made.UID == "" || seen[made.UID] || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() {
			t.Errorf("made %v, %v", made, err)
		}
		seen[made.UID] = true
		if err := b.Kube.CoreV1().PersistentVolumes().Delete(b.Ctx, "one", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func TestAWriteForAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	b := New(t, csiclient.Info{}, PV("one"), VA("one", "node"))
	old := getPV(t, b, "one")
	changed, err := patchPV(b, "one", `{"metadata":{"labels":{"a":"b"}}}`)
	if err != nil || changed.ResourceVersion == old.ResourceVersion {
		t.Fatalf("%v, %v", changed, err)
	}
	if _, err := b.Kube.CoreV1().PersistentVolumes().Update(b.Ctx, old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of a stale object: %v", err)
	}
	for patch, check := range map[string]func(error) bool{
		`{"metadata":{"resourceVersion":"` + old.ResourceVersion + `","labels":{"a":"c"}}}`:             apierrors.IsConflict,
		`{"metadata":{"resourceVersion":"` + old.ResourceVersion + `","uid":"x","labels":{"a":"c"}}}`:   apierrors.IsConflict,
		`{"metadata":{"uid":"another","labels":{"a":"c"}}}`:                                             apierrors.IsInvalid,
		`{"metadata":{"uid":"pv-one","resourceVersion":"` + changed.ResourceVersion + `","labels":{}}}`: func(err error) bool { return err == nil },
	} {
		if _, err := patchPV(b, "one", patch); !check(err) {
			t.Errorf("%s: %v", patch, err)
		}
	}
	other := types.UID("another")
	err = b.Kube.CoreV1().PersistentVolumes().Delete(b.Ctx, "one", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	if !apierrors.IsConflict(err) {
		t.Errorf("deletion of another object: %v", err)
	}
	if got := getPV(t, b, "one"); got.Labels["a"] != "b" {
		t.Errorf("labels: %v", got.Labels)
	}
	attachment := VA("one", "node")
	if _, err := b.Kube.StorageV1().VolumeAttachments().Update(b.Ctx, attachment, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("update of an attachment whatever its version: %v", err)
	}
}

func TestAWriteThatChangesNothingIsNone(t *testing.T) {
	t.Parallel()
	b := New(t, csiclient.Info{}, PV("one"))
	old := getPV(t, b, "one")
	if got, err := patchPV(b, "one", `{"metadata":{"uid":"pv-one"}}`); err != nil || got.ResourceVersion != old.ResourceVersion {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAStatusIsWrittenApart(t *testing.T) {
	t.Parallel()
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "content", Annotations: map[string]string{"a": "b"}}}
	b := New(t, csiclient.Info{}, PV("one"), VA("one", "node"), content)
	both := `{"metadata":{"annotations":{"a":"c"}},"spec":{"storageClassName":"x"},"status":{"phase":"Failed"}}`
	if got, err := patchPV(b, "one", both); err != nil || got.Spec.StorageClassName != "x" || got.Status.Phase != v1.VolumeAvailable {
		t.Errorf("main: %v, %v", got, err)
	}
	if got, err := patchPV(b, "one", `{"spec":{"storageClassName":"y"},"status":{"phase":"Failed"}}`, "status"); err != nil ||
		got.Spec.StorageClassName != "x" || got.Status.Phase != v1.VolumeFailed || getPV(t, b, "one").Status.Phase != v1.VolumeFailed {
		t.Errorf("status: %v, %v", got, err)
	}
	attachments := b.Kube.StorageV1().VolumeAttachments()
	attached := `{"metadata":{"finalizers":["a/b"]},"status":{"attached":true}}`
	if got, err := attachments.Patch(b.Ctx, "one-node", types.MergePatchType, []byte(attached), metav1.PatchOptions{}, "status"); err != nil ||
		!got.Status.Attached || len(got.Finalizers) > 0 {
		t.Errorf("status of an attachment: %v, %v", got, err)
	}
	ready := true
	content.Status = &snapshotv1.VolumeSnapshotContentStatus{ReadyToUse: &ready}
	content.ResourceVersion = "3"
	content.Annotations["a"] = "c"
	if got, err := b.Snapshots.SnapshotV1().VolumeSnapshotContents().UpdateStatus(b.Ctx, content, metav1.UpdateOptions{}); err != nil ||
		got.Status == nil || got.Annotations["a"] != "b" {
		t.Errorf("status of a content: %v, %v", got, err)
	}
}

// The informers see what the rules made of a write.
func TestCachesFollow(t *testing.T) {
	t.Parallel()
	b := New(t, csiclient.Info{}, PV("one", func(pv *v1.PersistentVolume) { pv.Finalizers = []string{"a/b"} }))
	informer := b.Env.Informers.Kube().Core().V1().PersistentVolumes()
	lister := informer.Lister()
	if err := b.Env.Informers.Sync(b.Ctx, informer.Informer().HasSynced); err != nil {
		t.Fatal(err)
	}
	changed, err := patchPV(b, "one", `{"metadata":{"labels":{"a":"b"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	b.Eventually(func() error {
		if got, err := lister.Get("one"); err != nil || got.ResourceVersion != changed.ResourceVersion {
			return fmt.Errorf("%v, %w", got, err)
		}
		return nil
	})
	if err := b.Kube.CoreV1().PersistentVolumes().Delete(b.Ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := patchPV(b, "one", `{"metadata":{"finalizers":null}}`); err != nil {
		t.Fatal(err)
	}
	b.Eventually(func() error {
		if _, err := lister.Get("one"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("still there: %w", err)
		}
		return nil
	})
}

func TestTheDriverAnswersAsTold(t *testing.T) {
	t.Parallel()
	b := New(t, csiclient.Info{VendorVersion: "1"})
	if info := b.Env.Driver.Info(); info.Name != DriverName || info.VendorVersion != "1" {
		t.Errorf("info: %v", info)
	}
	b.Driver.On("CreateVolume", Reply(&csi.CreateVolumeResponse{}))
	ctx, cancel := context.WithCancel(b.Ctx)
	b.Driver.Once("CreateVolume", Fail(codes.Aborted, "busy"), func(call context.Context, request proto.Message) (proto.Message, error) {
		cancel()
		return Hang(call, request)
	})
	controller := csi.NewControllerClient(b.Env.Driver.Conn())
	create := func(ctx context.Context) codes.Code {
		_, err := controller.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "x"})
		return status.Code(err)
	}
	if code := create(b.Ctx); code != codes.Aborted {
		t.Errorf("first: %s", code)
	}
	if code := create(ctx); code != codes.Canceled {
		t.Errorf("given up: %s", code)
	}
	if code := create(b.Ctx); code != codes.OK {
		t.Errorf("third: %s", code)
	}
	if calls := b.Driver.Calls("DeleteVolume"); len(calls) != 0 || len(b.Driver.CallNames("CreateVolume")) != 3 {
		t.Errorf("calls: %v", calls)
	}
}

func TestACutEndsEverythingAtOneStep(t *testing.T) {
	t.Parallel()
	b := New(t, csiclient.Info{}, PV("one"))
	b.Driver.On("Probe", Reply(&csi.ProbeResponse{}))
	identity := csi.NewIdentityClient(b.Env.Driver.Conn())
	write := func(value int) error {
		_, err := patchPV(b, "one", fmt.Sprintf(`{"metadata":{"labels":{"a":"%d"}}}`, value))
		return err
	}
	cut := b.CutAfter(2)
	if err := write(1); err != nil {
		t.Error(err)
	}
	if _, err := identity.Probe(b.Ctx, &csi.ProbeRequest{}); err != nil {
		t.Error(err)
	}
	<-cut
	if err := write(2); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("after the cut: %v", err)
	}
	if _, err := identity.Probe(b.Ctx, &csi.ProbeRequest{}); status.Code(err) != codes.Unavailable || len(b.Driver.Calls()) != 1 {
		t.Errorf("after the cut: %v", err)
	}
	if pv := getPV(t, b, "one"); pv.Labels["a"] != "1" || b.Steps() != 2 {
		t.Errorf("labels %v after %d steps", pv.Labels, b.Steps())
	}
	b.Mend()
	b.Refuse("patch persistentvolumes one", 1, apierrors.NewTooManyRequests("slow", 1))
	if err := write(3); !apierrors.IsTooManyRequests(err) {
		t.Errorf("refused: %v", err)
	}
	if err := write(4); err != nil {
		t.Errorf("after all: %v", err)
	}
}
