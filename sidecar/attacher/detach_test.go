package attacher

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func TestDetachIsOneWrite(t *testing.T) {
	t.Parallel()
	other := func(va *storagev1.VolumeAttachment) { va.Finalizers = append(va.Finalizers, "example.com/other") }
	removed := []string{"patch volumeattachments a-n"}
	for name, c := range map[string]struct {
		va     *storagev1.VolumeAttachment
		calls  []string
		writes []string
		stays  bool
	}{
		"an attached one": {sidecartest.VA("a", "n", isAttached, deleting), []string{"unpublish handle-a id-n"}, removed, false},
		"one whose attaching had an unknown outcome": {sidecartest.VA("a", "n", mayBeAttached, deleting),
			[]string{"unpublish handle-a id-n"}, removed, false},
		"two where others hold it: its status is still read": {sidecartest.VA("a", "n", isAttached, other, deleting),
			[]string{"unpublish handle-a id-n"}, []string{"patch volumeattachments a-n", "patch volumeattachments/status a-n"}, true},
		"one that never was attached is left alone": {sidecartest.VA("a", "n", other, deleting), nil, nil, true},
		"the status of one let go just before a crash": {sidecartest.VA("a", "n", other, deleting, func(va *storagev1.VolumeAttachment) { va.Status.Attached = true }),
			nil, []string{"patch volumeattachments/status a-n"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bed(t, with(), guarded("a"), guarded("z"), c.va, sidecartest.CSINode("n"), sidecartest.VA("z", "n"))
			stop := start(b, Config{WorkerThreads: 1})
			attached(b, "z-n") // its turn comes after
			if c.stays {
				vaIs(b, "a-n", "detached", func(va *storagev1.VolumeAttachment) bool {
					return !va.Status.Attached && va.Status.AttachmentMetadata == nil && fmt.Sprint(va.Finalizers) == "[example.com/other]"
				})
			} else {
				gone(b, "a-n")
			}
			stop()
			var calls, writes []string
			for _, one := range csiCalls(b) {
				if one != "publish handle-z id-n" {
					calls = append(calls, one)
				}
			}
			for _, one := range b.Writes() {
				if one != "patch volumeattachments z-n" && one != "patch volumeattachments/status z-n" {
					writes = append(writes, one)
				}
			}
			same(t, "calls", c.calls, calls)
			same(t, "writes", c.writes, writes)
			same(t, "reads", nil, reads(b, "persistentvolumes", "csinodes", "nodes", "secrets"))
		})
	}
}

// The node a volume was published to is the one in the annotation, whatever
// became of the node since.
func TestDetachesFromTheNodeThatWasAttachedTo(t *testing.T) {
	t.Parallel()
	replaced, silent := sidecartest.CSINode("n"), sidecartest.CSINode("n")
	replaced.Spec.Drivers[0].NodeID = "id-new"
	silent.Spec.Drivers = nil
	without := func(va *storagev1.VolumeAttachment) { va.Annotations = nil }
	for name, c := range map[string]struct {
		objects []runtime.Object
		change  func(*storagev1.VolumeAttachment)
	}{
		"the node is gone":                         {nil, nil},
		"the driver is not registered on the node": {[]runtime.Object{silent}, nil},
		"the node was replaced by one of its name": {[]runtime.Object{replaced}, nil},
		"the annotation is gone":                   {[]runtime.Object{sidecartest.CSINode("n")}, without},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			va := sidecartest.VA("a", "n", isAttached, deleting)
			if c.change != nil {
				c.change(va)
			}
			b := bed(t, with(), append(c.objects, guarded("a"), va)...)
			start(b, quick())
			gone(b, "a-n")
			same(t, "calls", []string{"unpublish handle-a id-n"}, csiCalls(b))
		})
	}
}

func TestAReplacedNodeIsLeftBeforeTheNewOneIsAttachedTo(t *testing.T) {
	t.Parallel()
	replaced := sidecartest.CSINode("n")
	replaced.Spec.Drivers[0].NodeID = "id-new"
	b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n", mayBeAttached), replaced)
	b.Driver.Once(unpublishes, sidecartest.Fail(codes.NotFound, "no such node"))
	start(b, quick())
	attached(b, "a-n")
	same(t, "calls", []string{"unpublish handle-a id-n", "publish handle-a id-new"}, csiCalls(b))
	vaIs(b, "a-n", "at the new node", func(va *storagev1.VolumeAttachment) bool { return va.Annotations[nodeIDAnnotation] == "id-new" })
}

func TestADetachThatFailsIsReportedAndTriedAgain(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n", isAttached, deleting), sidecartest.CSINode("n"))
	last, arrived, release := held(&csi.ControllerUnpublishVolumeResponse{}, nil)
	b.Driver.Once(unpublishes, sidecartest.Fail(codes.Internal, "stuck"), sidecartest.Fail(codes.Aborted, "busy"), last)
	start(b, quick())
	await(t, "third call", arrived)
	va, err := getVA(b, "a-n")
	if err != nil {
		t.Fatal(err)
	}
	if e := va.Status.DetachError; e == nil || *e.ErrorCode != int32(codes.Aborted) || !va.Status.Attached {
		t.Errorf("status: %+v", va.Status)
	}
	close(release)
	gone(b, "a-n")
}

// After a time-out the volume may be attached, or come to be: an attachment
// that is deleted then is detached.
func TestDeletedAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.Unavailable, codes.Internal} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n"), sidecartest.CSINode("n"))
			b.Driver.Once(publishes, sidecartest.Fail(code, "?"))
			config := quick()
			config.RetryMin, config.RetryMax = 1e12, 1e12 // as if for ever
			start(b, config)
			failed(b, "a-n", "?")
			remove(b, "a-n") // is not held up by the failure
			gone(b, "a-n")
			same(t, "calls", []string{"publish handle-a id-n", "unpublish handle-a id-n"}, csiCalls(b))
		})
	}
}

func TestDeletedWhileItIsAttached(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		byForce bool
		err     error
	}{
		"with its finalizer": {}, "without it": {byForce: true},
		"and the outcome is unknown": {err: status.Error(codes.Unavailable, "lost")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n"), sidecartest.CSINode("n"))
			answer, arrived, release := held(&csi.ControllerPublishVolumeResponse{}, c.err)
			b.Driver.Once(publishes, answer)
			detached, isDetached := make(chan struct{}), new(atomic.Bool)
			b.Driver.On(unpublishes, func(context.Context, proto.Message) (proto.Message, error) {
				if !isDetached.Swap(true) {
					close(detached)
				}
				return &csi.ControllerUnpublishVolumeResponse{}, nil
			})
			stop := start(b, quick())
			await(t, "the call", arrived)
			remove(b, "a-n")
			if c.byForce {
				strip(b, "a-n")
				gone(b, "a-n")
			}
			b.Eventually(func() error { // until the attacher knows
				va, err := b.Env.Informers.Kube().Storage().V1().VolumeAttachments().Lister().Get("a-n")
				if err == nil && va.DeletionTimestamp == nil {
					err = fmt.Errorf("the cache does not know")
				} else {
					err = nil
				}
				return err
			})
			if isDetached.Load() {
				t.Error("detached while the call to attach is under way")
			}
			close(release)
			await(t, "detaching", detached)
			gone(b, "a-n")
			stop()
			same(t, "calls", []string{"publish handle-a id-n", "unpublish handle-a id-n"}, csiCalls(b))
			for _, write := range b.Writes() {
				if write == "patch volumeattachments/status a-n" {
					t.Error("the status of what is not wanted any more was written")
				}
			}
		})
	}
}

func TestAnAttachedOneThatIsForcedAwayIsDetached(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n", isAttached), sidecartest.CSINode("n"), guarded("z"), sidecartest.VA("z", "n"))
	start(b, quick())
	attached(b, "z-n")
	strip(b, "a-n")
	remove(b, "a-n")
	b.Eventually(func() error {
		if calls := b.Driver.CallNames(unpublishes); len(calls) != 1 {
			return fmt.Errorf("calls %v", calls)
		}
		return nil
	})
}

// A VolumeAttachment made anew under the same name is another one: it is
// attached after the old one is detached, and nothing of the old one is
// written into it.
func TestMadeAnewWhileTheOldOneIsHandled(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n", isAttached), sidecartest.CSINode("n"))
	answer, arrived, release := held(&csi.ControllerUnpublishVolumeResponse{}, nil)
	b.Driver.Once(unpublishes, answer)
	start(b, quick())
	remove(b, "a-n")
	await(t, "the call", arrived)
	strip(b, "a-n")
	gone(b, "a-n")
	create(b, sidecartest.VA("a", "n", func(va *storagev1.VolumeAttachment) {
		va.UID = "another"
		va.Finalizers = []string{finalizer, "example.com/other"}
		va.Annotations = map[string]string{nodeIDAnnotation: "id-n"}
	}))
	cacheHas(b, "a-n", func(va *storagev1.VolumeAttachment) bool { return va.UID == "another" })
	close(release)
	attached(b, "a-n")
	va, _ := getVA(b, "a-n")
	if va.UID != "another" {
		t.Error(va.UID)
	}
	contains(t, "finalizers", finalizer, va.Finalizers)
	same(t, "calls", []string{"unpublish handle-a id-n", "publish handle-a id-n"}, csiCalls(b))
}

func TestTwoNodesAreIndependent(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n"), sidecartest.VA("a", "m", isAttached),
		sidecartest.CSINode("n"), sidecartest.CSINode("m"))
	answer, arrived, release := held(&csi.ControllerPublishVolumeResponse{}, nil)
	b.Driver.Once(publishes, answer)
	start(b, quick())
	await(t, "the call", arrived)
	remove(b, "a-m")
	gone(b, "a-m")
	close(release)
	attached(b, "a-n")
	same(t, "calls", []string{"publish handle-a id-n", "unpublish handle-a id-m"}, csiCalls(b))
}

// Two volumes of Kubernetes may be one of the driver. It is detached with the
// last attachment only.
func TestTheSameVolumeTwiceOnANode(t *testing.T) {
	t.Parallel()
	handle := func(pv *v1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "same" }
	b := bed(t, with(), guarded("a", handle), guarded("b", handle), sidecartest.CSINode("n"),
		sidecartest.VA("a", "n", isAttached), sidecartest.VA("b", "n", isAttached))
	start(b, quick())
	remove(b, "a-n")
	gone(b, "a-n")
	same(t, "calls", nil, csiCalls(b))
	remove(b, "b-n")
	gone(b, "b-n")
	same(t, "calls", []string{"unpublish same id-n"}, csiCalls(b))
}

// Calls for them are made one after the other, too.
func TestCallsForTheSameVolumeOnANodeNeverMeet(t *testing.T) {
	t.Parallel()
	handle := func(pv *v1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "same" }
	b := bed(t, with(), guarded("a", handle), sidecartest.PV("b", handle), guarded("z"), sidecartest.CSINode("n"), sidecartest.VA("a", "n"))
	answer, arrived, release := held(&csi.ControllerPublishVolumeResponse{}, nil)
	b.Driver.Once(publishes, answer)
	start(b, quick())
	await(t, "the call", arrived)
	create(b, sidecartest.VA("b", "n"))
	b.Eventually(func() error { // b-n is on its way
		pv, err := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, "b", metav1.GetOptions{})
		if err == nil && len(pv.Finalizers) == 0 {
			err = fmt.Errorf("b has no finalizer")
		}
		return err
	})
	create(b, sidecartest.VA("z", "n")) // whoever comes after it has been attached meanwhile
	attached(b, "z-n")
	same(t, "calls", []string{"publish same id-n", "publish handle-z id-n"}, csiCalls(b))
	close(release)
	attached(b, "a-n")
	attached(b, "b-n")
}

// A finalizer that someone else removed does not leave the volume attached,
// even while others keep the VolumeAttachment.
func TestAFinalizerRemovedWhileOthersHold(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), guarded("a"), sidecartest.CSINode("n"),
		sidecartest.VA("a", "n", isAttached, func(va *storagev1.VolumeAttachment) { va.Finalizers = append(va.Finalizers, "example.com/other") }),
		guarded("z"), sidecartest.VA("z", "n"))
	start(b, quick())
	attached(b, "z-n")
	_, err := b.Kube.StorageV1().VolumeAttachments().Patch(b.Ctx, "a-n", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["example.com/other"]}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remove(b, "a-n")
	b.Eventually(func() error {
		if calls := csiCalls(b); calls[len(calls)-1] != "unpublish handle-a id-n" {
			return fmt.Errorf("calls %q", calls)
		}
		return nil
	})
	vaIs(b, "a-n", "detached", func(va *storagev1.VolumeAttachment) bool { return !va.Status.Attached })
}

func TestRunAgain(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), guarded("a"), guarded("b"), sidecartest.CSINode("n"))
	a, err := New(b.Env, quick())
	if err != nil {
		t.Fatal(err)
	}
	stop := b.Run(a)
	create(b, sidecartest.VA("a", "n"))
	attached(b, "a-n")
	stop()
	create(b, sidecartest.VA("b", "n"))
	remove(b, "a-n")
	stop = b.Run(a)
	attached(b, "b-n")
	gone(b, "a-n")
	stop()
	same(t, "calls of the first", []string{"publish handle-a id-n"}, csiCalls(b)[:1])
	if calls := csiCalls(b); len(calls) != 3 {
		t.Errorf("calls: %q", calls)
	}
}

func TestADriverThatDoesNotAttach(t *testing.T) {
	t.Parallel()
	info := with()
	info.Controller = nil
	b := bed(t, info, sidecartest.VA("a", "n"), sidecartest.VA("b", "n", mayBeAttached, deleting), sidecartest.VA("c", "n", isAttached),
		guarded("d", func(pv *v1.PersistentVolume) { sidecartest.Deleting(pv) }))
	stop := start(b, quick())
	attached(b, "a-n")
	gone(b, "b-n")
	volumeGone(b, "d")
	stop()
	same(t, "calls", nil, csiCalls(b))
	if writes := b.Writes(); len(writes) != 3 {
		t.Errorf("writes: %q", writes)
	}
	va, _ := getVA(b, "a-n")
	same(t, "finalizers", nil, va.Finalizers)
}

// A driver that attaches no more leaves nothing stuck of the time it did.
func TestADriverThatLostItsAttaching(t *testing.T) {
	t.Parallel()
	info := with()
	info.Controller = nil
	b := bed(t, info, guarded("a"), sidecartest.VA("a", "n", isAttached))
	start(b, quick())
	remove(b, "a-n")
	gone(b, "a-n")
	if err := b.Kube.CoreV1().PersistentVolumes().Delete(b.Ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	volumeGone(b, "a")
}

func TestStartErrorsNameTheSetting(t *testing.T) {
	t.Parallel()
	for field, config := range map[string]Config{
		"WorkerThreads": {WorkerThreads: -1}, "RetryMin": {RetryMin: -1}, "RetryMax": {RetryMin: 2, RetryMax: 1},
		"Timeout": {Timeout: -1}, "ReconcileSync": {ReconcileSync: -1}, "MaxEntries": {MaxEntries: -1},
	} {
		if _, err := New(nil, config); err == nil || !strings.Contains(err.Error(), "attacher: "+field+" is ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
