package attacher

import (
	"errors"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func removeVolume(b *sidecartest.Bed, name string) {
	b.Helper()
	if err := b.Kube.CoreV1().PersistentVolumes().Delete(b.Ctx, name, metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
}

// kubernetes-csi/external-attacher#66: attaching fails, pod and claim are
// deleted, and the volume hung in Terminating for ever.
func TestC084_AVolumeGoesAfterAFailedAttach(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), sidecartest.PV("a"), sidecartest.VA("a", "n"), sidecartest.CSINode("n"))
	b.Driver.On(publishes, sidecartest.Fail(codes.InvalidArgument, "wrong zone"))
	start(b, quick())
	failed(b, "a-n", "wrong zone")
	removeVolume(b, "a")
	failed(b, "a-n", "PersistentVolume a is being deleted") // it is not attached any more
	remove(b, "a-n")
	gone(b, "a-n")
	volumeGone(b, "a")
	calls := csiCalls(b)
	same(t, "the last call", []string{"unpublish handle-a id-n"}, calls[len(calls)-1:])
}

// The same after a restart, with what the objects say alone.
func TestC084_TerminatingVolumeAndAttachmentThatNeverWasAttached(t *testing.T) {
	t.Parallel()
	terminating := func(pv *v1.PersistentVolume) { sidecartest.Deleting(pv) }
	for name, c := range map[string]struct {
		va    *storagev1.VolumeAttachment
		calls []string
	}{
		"published once":       {sidecartest.VA("a", "n", mayBeAttached, deleting), []string{"unpublish handle-a id-n"}},
		"a node that is gone":  {sidecartest.VA("a", "m", mayBeAttached, deleting), []string{"unpublish handle-a id-m"}},
		"no attachment at all": {sidecartest.VA("other", "n"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bed(t, with(), guarded("a", terminating), c.va, sidecartest.CSINode("n"))
			start(b, quick())
			volumeGone(b, "a")
			same(t, "calls", c.calls, csiCalls(b))
		})
	}
}

// kubernetes-csi/external-attacher#235, kubernetes#84226: the volume is gone
// altogether, and its attachment could not be deleted.
func TestC084_TheVolumeIsMissingAltogether(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), sidecartest.VA("a", "n", isAttached, deleting), sidecartest.CSINode("n"))
	start(b, quick())
	gone(b, "a-n")
	same(t, "calls", nil, csiCalls(b))
}

// Where the attacher has seen the volume before, it is detached all the same.
func TestC084_TheVolumeIsForcedAwayUnderAnAttachment(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), guarded("a"), sidecartest.VA("a", "n", isAttached), sidecartest.CSINode("n"), guarded("z"), sidecartest.VA("z", "n"))
	start(b, quick())
	attached(b, "z-n")
	_, err := b.Kube.CoreV1().PersistentVolumes().Patch(b.Ctx, "a", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	removeVolume(b, "a")
	volumeGone(b, "a")
	remove(b, "a-n")
	gone(b, "a-n")
	contains(t, "calls", "unpublish handle-a id-n", csiCalls(b))
}

// kubernetes#69697: the finalizer stays on the volume while anything attaches
// it, whoever that is, and goes with the last.
func TestC084_TheFinalizerStaysWhileAnAttachmentNamesTheVolume(t *testing.T) {
	t.Parallel()
	foreign := func(va *storagev1.VolumeAttachment) { va.Spec.Attacher = "other.example.com" }
	b := bed(t, with(), guarded("a"), guarded("z"), sidecartest.CSINode("n"),
		sidecartest.VA("a", "n", isAttached), sidecartest.VA("a", "m", foreign))
	start(b, quick())
	removeVolume(b, "a")
	remove(b, "a-n")
	gone(b, "a-n")
	// Another volume that goes shows that this one has had its turn.
	removeVolume(b, "z")
	volumeGone(b, "z")
	if pv, err := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, "a", metav1.GetOptions{}); err != nil {
		t.Error(pv, err)
	}
	remove(b, "a-m")
	volumeGone(b, "a")
}

// The provisioner of the same process removes both finalizers with one write.
func TestVolumesAreLeftToTheProvisionerOfThisProcess(t *testing.T) {
	t.Parallel()
	provisioned := func(pv *v1.PersistentVolume) {
		pv.Finalizers = []string{provisionerFinalizer}
		sidecartest.Deleting(pv)
	}
	retained := func(pv *v1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
	}
	for name, c := range map[string]struct {
		running []string
		change  func(*v1.PersistentVolume)
		writes  []string
	}{
		"left":                       {[]string{sidecar.Provisioner, sidecar.Attacher}, nil, []string{"patch persistentvolumes z"}},
		"the provisioner is apart":   {[]string{sidecar.Attacher}, nil, []string{"patch persistentvolumes a", "patch persistentvolumes z"}},
		"the volume is not its task": {[]string{sidecar.Provisioner, sidecar.Attacher}, retained, []string{"patch persistentvolumes a", "patch persistentvolumes z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := []func(*v1.PersistentVolume){provisioned}
			if c.change != nil {
				changes = append(changes, c.change)
			}
			b := bed(t, with(), []runtime.Object{guarded("a", changes...), guarded("z", func(pv *v1.PersistentVolume) { sidecartest.Deleting(pv) })}...)
			b.Env.Running = c.running
			config := quick()
			config.WorkerThreads = 1
			stop := start(b, config)
			volumeGone(b, "z")
			b.Eventually(func() error { // either of them may come first
				if writes := b.Writes(); len(writes) < len(c.writes) {
					return fmt.Errorf("writes %q", writes)
				}
				return nil
			})
			stop()
			writes := b.Writes()
			if len(writes) == 2 && writes[0] > writes[1] {
				writes[0], writes[1] = writes[1], writes[0]
			}
			same(t, "writes", c.writes, writes)
		})
	}
}

// A volume that the provisioner let go of first loses the finalizer then.
func TestVolumesTheProvisionerLetGo(t *testing.T) {
	t.Parallel()
	b := bed(t, with(), guarded("a", func(pv *v1.PersistentVolume) {
		pv.Finalizers = []string{provisionerFinalizer}
		sidecartest.Deleting(pv)
	}))
	start(b, quick())
	_, err := b.Kube.CoreV1().PersistentVolumes().Patch(b.Ctx, "a", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["`+finalizer+`"]}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	volumeGone(b, "a")
}

func TestInTreeVolumesGivenBackLoseTheFinalizer(t *testing.T) {
	t.Parallel()
	inTree := func(pv *v1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "x"}}
	}
	migrated := func(pv *v1.PersistentVolume) { pv.Annotations[migratedToAnnotation] = sidecartest.DriverName }
	b := bed(t, with(), guarded("a", inTree, migrated), guarded("b", inTree))
	config := quick()
	config.WorkerThreads = 1
	start(b, config)
	b.Eventually(func() error {
		pv, err := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, "b", metav1.GetOptions{})
		if err == nil && len(pv.Finalizers) > 0 {
			err = errors.New("the finalizer is there")
		}
		return err
	})
	same(t, "writes", []string{"patch persistentvolumes b"}, b.Writes())
}
