package attacher

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func TestAttachIsTwoWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pv     *v1.PersistentVolume
		va     *storagev1.VolumeAttachment
		calls  []string
		writes []string
	}{
		"a new one": {guarded("a"), sidecartest.VA("a", "n"), []string{"publish handle-a id-n"},
			[]string{"patch volumeattachments a-n", "patch volumeattachments/status a-n"}},
		"one write more where the volume lacks the finalizer": {sidecartest.PV("a"), sidecartest.VA("a", "n"), []string{"publish handle-a id-n"},
			[]string{"patch persistentvolumes a", "patch volumeattachments a-n", "patch volumeattachments/status a-n"}},
		"none before the call where the outcome of an earlier one is unknown": {guarded("a"), sidecartest.VA("a", "n", mayBeAttached),
			[]string{"publish handle-a id-n"}, []string{"patch volumeattachments/status a-n"}},
		"none at all for one that is attached": {guarded("a"), sidecartest.VA("a", "n", isAttached), nil, nil},
		"other finalizers stay": {guarded("a"), sidecartest.VA("a", "n", func(va *storagev1.VolumeAttachment) { va.Finalizers = []string{"example.com/other"} }),
			[]string{"publish handle-a id-n"}, []string{"patch volumeattachments a-n", "patch volumeattachments/status a-n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bed(t, with(), c.pv, c.va, sidecartest.CSINode("n"))
			stop := start(b, quick())
			attached(b, "a-n")
			stop()
			same(t, "calls", c.calls, csiCalls(b))
			same(t, "writes", c.writes, b.Writes())
			same(t, "reads", nil, reads(b, "persistentvolumes", "csinodes", "nodes", "secrets"))
			va, _ := getVA(b, "a-n")
			contains(t, "finalizers", finalizer, va.Finalizers)
			for _, one := range c.va.Finalizers {
				contains(t, "finalizers", one, va.Finalizers)
			}
			if va.Annotations[nodeIDAnnotation] != "id-n" || va.Status.AttachmentMetadata["lun"] != "7" || va.Status.AttachError != nil {
				t.Errorf("annotations %v, status %+v", va.Annotations, va.Status)
			}
			pv, _ := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, "a", metav1.GetOptions{})
			contains(t, "the volume's finalizers", finalizer, pv.Finalizers)
		})
	}
}

func TestOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	other := func(va *storagev1.VolumeAttachment) { va.Spec.Attacher = "other.example.com" }
	b := bed(t, with(), guarded("a"), guarded("b"), sidecartest.CSINode("n"),
		sidecartest.VA("a", "n", other), sidecartest.VA("b", "n", other, deleting, func(va *storagev1.VolumeAttachment) { va.Finalizers = []string{"x/y"} }),
		sidecartest.VA("a", "m", other), sidecartest.VA("b", "m"), sidecartest.CSINode("m"))
	stop := start(b, quick())
	attached(b, "b-m")
	stop()
	same(t, "calls", []string{"publish handle-b id-m"}, csiCalls(b))
	same(t, "writes", []string{"patch volumeattachments b-m", "patch volumeattachments/status b-m"}, b.Writes())
}

func TestFailuresAreReportedAndTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code   codes.Code
		text   string
		answer string
	}{
		"a final error":      {codes.NotFound, "no such disk", `attach volume "handle-a" to node "id-n": rpc error: code = NotFound desc = no such disk`},
		"an unknown outcome": {codes.Unavailable, "gone fishing", "(the driver may be at it still, and is asked again)"},
		"too many":           {codes.ResourceExhausted, "16 disks", "16 disks"},
		"a long text":        {codes.Internal, strings.Repeat("ä", 2000), " ..."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n"), sidecartest.CSINode("n"))
			last, arrived, release := held(&csi.ControllerPublishVolumeResponse{}, nil)
			b.Driver.Once(publishes, sidecartest.Fail(c.code, c.text), sidecartest.Fail(c.code, c.text), last)
			config := quick()
			config.RetryMin, config.RetryMax = time.Second, time.Second // the cache knows of a failure by then
			stop := start(b, config)
			await(t, "third call", arrived)
			va, err := getVA(b, "a-n")
			if err != nil {
				t.Fatal(err)
			}
			failure := va.Status.AttachError
			if failure == nil || !strings.Contains(failure.Message, c.answer) || failure.Time.IsZero() || len(failure.Message) > messageMaxBytes ||
				failure.ErrorCode == nil || *failure.ErrorCode != int32(c.code) {
				t.Errorf("attach error: %+v", failure)
			}
			close(release)
			attached(b, "a-n")
			stop()
			if va, _ = getVA(b, "a-n"); va.Status.AttachError != nil {
				t.Errorf("attach error after success: %v", va.Status.AttachError)
			}
			// The second failure says what the first did, and is not written again.
			same(t, "writes", []string{"patch volumeattachments a-n", "patch volumeattachments/status a-n", "patch volumeattachments/status a-n"}, b.Writes())
		})
	}
}

func TestACallThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n"), sidecartest.CSINode("n"))
	b.Driver.Once(publishes, sidecartest.Hang)
	config := quick()
	config.Timeout = 2 * time.Second // the second call has to be answered within it
	start(b, config)
	attached(b, "a-n")
	same(t, "calls", []string{"publish handle-a id-n", "publish handle-a id-n"}, csiCalls(b))
}

// What an attachment lacks is reported once, and it is attached when that comes.
func TestWaitsForWhatIsMissing(t *testing.T) {
	t.Parallel()
	csiNode := sidecartest.CSINode("n")
	other := csiNode.DeepCopy()
	other.Spec.Drivers[0].Name = "other.example.com"
	for name, c := range map[string]struct {
		objects []runtime.Object
		text    string
		mend    func(*sidecartest.Bed) error
	}{
		"the node": {[]runtime.Object{guarded("a")}, "no CSINode", func(b *sidecartest.Bed) error {
			_, err := b.Kube.StorageV1().CSINodes().Create(b.Ctx, csiNode.DeepCopy(), metav1.CreateOptions{})
			return err
		}},
		"the driver's registration": {[]runtime.Object{guarded("a"), other}, "not registered on node n", func(b *sidecartest.Bed) error {
			now, err := b.Kube.StorageV1().CSINodes().Get(b.Ctx, "n", metav1.GetOptions{})
			if err == nil {
				now.Spec = csiNode.Spec
				_, err = b.Kube.StorageV1().CSINodes().Update(b.Ctx, now, metav1.UpdateOptions{})
			}
			return err
		}},
		"the volume": {[]runtime.Object{csiNode}, "PersistentVolume a does not exist", func(b *sidecartest.Bed) error {
			_, err := b.Kube.CoreV1().PersistentVolumes().Create(b.Ctx, guarded("a"), metav1.CreateOptions{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bed(t, with(), append(c.objects, sidecartest.VA("a", "n"))...)
			start(b, quick())
			failed(b, "a-n", c.text)
			same(t, "calls", nil, csiCalls(b))
			same(t, "writes", []string{"patch volumeattachments/status a-n"}, b.Writes())
			if err := c.mend(b); err != nil {
				t.Fatal(err)
			}
			attached(b, "a-n")
			if n := strings.Count(b.Log(), "Will be tried again"); n > 0 {
				t.Errorf("%d retries by time", n)
			}
		})
	}
}

func TestVolumesThatCannotBeAttached(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pv   func(*v1.PersistentVolume)
		text string
	}{
		"of another driver": {func(pv *v1.PersistentVolume) { pv.Spec.CSI.Driver = "other.example.com" }, "belongs to driver other.example.com"},
		"not of CSI": {func(pv *v1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{}}
		}, "not one of CSI"},
		"access modes that do not go together": {func(pv *v1.PersistentVolume) {
			pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany, v1.ReadWriteOnce}
		}, "access modes"},
		"of an in-tree plugin that another driver serves": {func(pv *v1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "x"}}
		}, "belongs to driver pd.csi.storage.gke.io"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bed(t, with(), guarded("a", c.pv), sidecartest.VA("a", "n"), sidecartest.CSINode("n"))
			start(b, quick())
			failed(b, "a-n", c.text)
			// It never was attached: it goes without a call.
			remove(b, "a-n")
			gone(b, "a-n")
			same(t, "calls", nil, csiCalls(b))
		})
	}
}

func TestAnotherWriterOfTheVolumeIsRespected(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), sidecartest.PV("a"), sidecartest.VA("a", "n"), sidecartest.CSINode("n"))
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumes"}, "a", fmt.Errorf("changed"))
	b.Refuse("patch persistentvolumes a", 1, conflict)
	start(b, quick())
	attached(b, "a-n")
	if strings.Contains(b.Log(), "Will be tried again") {
		t.Error("a conflict was taken for a failure")
	}
}

// A finalizer that another one adds between reading and writing is not lost.
func TestFinalizersOfOthersAreNotLost(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"volumeattachments", "persistentvolumes"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := bed(t, with(), sidecartest.PV("a"), sidecartest.VA("a", "n"), sidecartest.CSINode("n"))
			isFirst := true
			b.Kube.PrependReactor("patch", kind, func(action clienttesting.Action) (bool, runtime.Object, error) {
				if !isFirst {
					return false, nil, nil
				}
				isFirst = false
				object, err := b.Kube.Tracker().Get(action.GetResource(), "", action.(clienttesting.PatchAction).GetName())
				if err == nil {
					accessor := object.(metav1.Object)
					accessor.SetFinalizers([]string{"example.com/other"})
					accessor.SetResourceVersion("900")
					err = b.Kube.Tracker().Update(action.GetResource(), object, "")
				}
				if err != nil {
					t.Error(err)
				}
				return false, nil, nil
			})
			start(b, quick())
			attached(b, "a-n")
			va, _ := getVA(b, "a-n")
			pv, _ := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, "a", metav1.GetOptions{})
			all := append(va.Finalizers, pv.Finalizers...)
			if len(all) != 3 {
				t.Errorf("finalizers %q", all)
			}
			contains(t, "finalizers", "example.com/other", all)
		})
	}
}

func TestAHundredAreAttachedAtOnce(t *testing.T) {
	t.Parallel()
	const count = 100
	objects := []runtime.Object{sidecartest.CSINode("n")}
	for i := range count {
		name := fmt.Sprintf("v%d", i)
		objects = append(objects, guarded(name), sidecartest.VA(name, "n"))
	}
	b := bed(t, with(), objects...)
	var all sync.WaitGroup
	all.Add(count)
	b.Driver.On(publishes, func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		all.Done()
		met := make(chan struct{})
		go func() { all.Wait(); close(met) }()
		select {
		case <-met: // nobody answers before all have called
			return &csi.ControllerPublishVolumeResponse{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	stop := start(b, Config{Timeout: time.Minute})
	for i := range count {
		attached(b, fmt.Sprintf("v%d-n", i))
	}
	stop()
	if writes := b.Writes(); len(writes) != 2*count {
		t.Errorf("%d writes for %d attachments", len(writes), count)
	}
}

func TestSecretsGoToTheDriverOnly(t *testing.T) {
	t.Parallel()
	reference := func(pv *v1.PersistentVolume) {
		pv.Spec.CSI.ControllerPublishSecretRef = &v1.SecretReference{Namespace: sidecartest.Namespace, Name: "key"}
	}
	b := bed(t, with(), guarded("a", reference), sidecartest.VA("a", "n"), sidecartest.CSINode("n"), sidecartest.Secret("key", "password", "hunter2"))
	b.Driver.Once(publishes, sidecartest.Fail(codes.Internal, "no"))
	stop := start(b, quick())
	attached(b, "a-n")
	remove(b, "a-n")
	gone(b, "a-n")
	stop()
	for _, call := range b.Driver.Calls(publishes, unpublishes) {
		if secrets := call.Request.(interface{ GetSecrets() map[string]string }).GetSecrets(); secrets["password"] != "hunter2" {
			t.Errorf("%s has secrets %v", call.Method, secrets)
		}
	}
	if strings.Contains(b.Log(), "hunter2") || strings.Contains(fmt.Sprint(b.Kube.Actions()), "hunter2") {
		t.Error("the secret is in the log or in a write")
	}
	same(t, "reads", []string{"secrets", "secrets", "secrets"}, reads(b, "secrets"))
}

func TestAMissingSecretIsReported(t *testing.T) {
	t.Parallel()
	reference := func(pv *v1.PersistentVolume) {
		pv.Spec.CSI.ControllerPublishSecretRef = &v1.SecretReference{Namespace: sidecartest.Namespace, Name: "key"}
	}
	b := bed(t, with(), guarded("a", reference), sidecartest.VA("a", "n"), sidecartest.CSINode("n"))
	start(b, quick())
	failed(b, "a-n", "read secret default/key for the driver")
	if _, err := b.Kube.CoreV1().Secrets(sidecartest.Namespace).Create(b.Ctx, sidecartest.Secret("key"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	attached(b, "a-n")
}
