package attacher

import (
	"errors"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// longhorn/longhorn#13335, kubernetes-csi/external-attacher#706: a volume that
// is detached from one node is attached to the next only when the delay of the
// failures up to then is over, minutes later.
func TestAVolumeThatIsFreeIsAttachedWithoutDelay(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), guarded("a"), sidecartest.CSINode("n"), sidecartest.CSINode("m"),
		sidecartest.VA("a", "n", isAttached), sidecartest.VA("a", "m"))
	b.Driver.Once(publishes, sidecartest.Fail(codes.FailedPrecondition, "attached to id-n"))
	start(b, Config{RetryMin: time.Hour, RetryMax: time.Hour})
	failed(b, "a-m", "attached to id-n")
	remove(b, "a-n")
	attached(b, "a-m")
	same(t, "calls", []string{"publish handle-a id-m", "unpublish handle-a id-n", "publish handle-a id-m"}, csiCalls(b))
}

// API servers before Kubernetes 1.35 do not keep the codes of errors.
func TestAnErrorWhoseCodeIsNotKeptIsWrittenOnce(t *testing.T) {
	t.Parallel()
	told := func(va *storagev1.VolumeAttachment) {
		mayBeAttached(va)
		va.Status.AttachError = &storagev1.VolumeError{Message: `attach volume "handle-a" to node "id-n": rpc error: code = NotFound desc = no such disk`}
	}
	b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n", told), sidecartest.CSINode("n"))
	b.Driver.Once(publishes, sidecartest.Fail(codes.NotFound, "no such disk"))
	stop := start(b, quick())
	attached(b, "a-n")
	stop()
	same(t, "writes", []string{"patch volumeattachments/status a-n"}, b.Writes())
}

// A driver that names its nodes in another way than its predecessor cannot make
// anything of the former name.
func TestANodeIDOfAFormerFormDoesNotHoldUpTheNewOne(t *testing.T) {
	t.Parallel()
	renamed := sidecartest.CSINode("n")
	renamed.Spec.Drivers[0].NodeID = "zone/id-new"
	b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n", mayBeAttached), renamed)
	b.Driver.On(unpublishes, sidecartest.Fail(codes.InvalidArgument, "node id without a zone"))
	start(b, quick())
	attached(b, "a-n")
	same(t, "calls", []string{"unpublish handle-a id-n", "publish handle-a zone/id-new"}, csiCalls(b))
}

// The list a cache begins with may come from an API server that is behind the
// one that the VolumeAttachment comes from.
func TestAVolumeTheCacheDoesNotKnowYetIsDetached(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), sidecartest.VA("a", "n", isAttached, deleting), sidecartest.CSINode("n"))
	b.Kube.PrependWatchReactor("persistentvolumes", clienttesting.DefaultWatchReactor(watch.NewFake(), nil))
	if err := b.Env.Informers.Sync(b.Ctx, b.Env.Informers.Kube().Core().V1().PersistentVolumes().Informer().HasSynced); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Kube.CoreV1().PersistentVolumes().Create(b.Ctx, guarded("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	start(b, quick())
	gone(b, "a-n")
	same(t, "calls", []string{"unpublish handle-a id-n"}, csiCalls(b))
}

// A node may come back in the moment in which its attachment is given up, while
// the cache still has that as attached.
func TestANodeThatComesBackWhileItIsGivenUp(t *testing.T) {
	t.Parallel()
	b := bed(t, lister(), guarded("a"), sidecartest.VA("a", "n", isAttached))
	b.Driver.On(lists, page("", entry("handle-a")))
	nodes := storagev1.SchemeGroupVersion.WithResource("csinodes")
	b.Kube.PrependReactor("patch", "volumeattachments", func(clienttesting.Action) (bool, runtime.Object, error) {
		if b.Kube.Tracker().Create(nodes, sidecartest.CSINode("n"), "") == nil {
			b.Driver.On(lists, page("", entry("handle-a", "id-n")))
			b.Eventually(func() error {
				_, err := b.Env.Informers.Kube().Storage().V1().CSINodes().Lister().Get("n")
				return err
			})
		}
		return false, nil, nil
	})
	start(b, quick())
	b.Eventually(func() error {
		if len(csiCalls(b)) == 0 {
			return errors.New("it is not attached again")
		}
		return nil
	})
	attached(b, "a-n")
}
