package provisioner

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// source is a bound claim and its volume, to clone from.
func source() (*v1.PersistentVolumeClaim, *v1.PersistentVolume) {
	c, pv := claim("source"), sidecartest.PV("source")
	sidecartest.Bind(c, pv)
	pv.Finalizers = []string{finalizer}
	return c, pv
}

func cloneOf(name string, changes ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	return claim("data", append([]func(*v1.PersistentVolumeClaim){func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: name}
	}}, changes...)...)
}

func size(sizeBytes int64) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: sidecartest.Size(sizeBytes)}
	}
}

func TestClone(t *testing.T) {
	t.Parallel()
	block := v1.PersistentVolumeBlock
	for name, test := range map[string]struct {
		change func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume)
		clone  *v1.PersistentVolumeClaim
		err    string
	}{
		"usual":           {nil, cloneOf("source"), ""},
		"larger":          {nil, cloneOf("source", size(2*sidecartest.GiB)), ""},
		"by reference":    {nil, claim("data", refTo2("source", nil)), ""},
		"other namespace": {nil, claim("data", refTo2("source", ptr("other"))), "other namespaces are not supported"},
		"smaller":         {nil, cloneOf("source", size(1)), "less than"},
		"source missing":  {nil, cloneOf("none"), "does not exist"},
		"source deleted": {func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) {
			sidecartest.Deleting(c)
			c.Finalizers = []string{"x"}
		}, cloneOf("source"), "being deleted"},
		"source deleted, and kept for a clone": {func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) {
			sidecartest.Deleting(c)
			c.Finalizers = []string{cloneFinalizer}
		}, cloneOf("source"), ""},
		"source pending":    {func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.Status.Phase = v1.ClaimPending }, cloneOf("source"), "not bound"},
		"volume not bound":  {func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.ClaimRef.UID = "x" }, cloneOf("source"), "not bound to it"},
		"volume of another": {func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.CSI.Driver = "x" }, cloneOf("source"), "not of driver"},
		"mode differs":      {nil, cloneOf("source", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }), "volume mode"},
		"no class":          {func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.Spec.StorageClassName = nil }, cloneOf("source"), "storage class"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, pv := source()
			if test.change != nil {
				test.change(c, pv)
			}
			b := newBed(t, able(csi.ControllerServiceCapability_RPC_CLONE_VOLUME), c, pv, test.clone, sidecartest.StorageClass(sidecartest.ClassName))
			b.start()
			if test.err != "" {
				b.refused(test.err)
				return
			}
			b.wait("asked", func() bool { return len(b.Driver.Calls("CreateVolume")) > 0 })
			got := b.Driver.Calls("CreateVolume")[0].Request.(*csi.CreateVolumeRequest).GetVolumeContentSource().GetVolume().GetVolumeId()
			if got != "handle-source" {
				t.Errorf("cloned from %q", got)
			}
			if len(c.Finalizers) == 0 {
				b.wait("protected", func() bool { return slices.Contains(b.Writes(), "update persistentvolumeclaims default/source") })
			}
		})
	}
}

func refTo2(name string, namespace *string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: name, Namespace: namespace}
	}
}

// refused waits for the event of a claim that is not to be provisioned.
func (b *bed) refused(why string) {
	b.Helper()
	b.wait("refused", func() bool { return b.saw("Warning ProvisioningFailed") })
	if event := b.Events()[0]; !strings.Contains(event, why) || len(b.Driver.Calls()) > 0 {
		b.Errorf("event %q, want one with %q; CSI calls %q", event, why, b.Driver.CallNames())
	}
}

func TestDriverThatCannotClone(t *testing.T) {
	t.Parallel()
	c, pv := source()
	b := newBed(t, able(), c, pv, cloneOf("source"), sidecartest.StorageClass(sidecartest.ClassName))
	b.start()
	b.refused("CLONE_VOLUME")
	if writes := b.Writes(); len(writes) > 0 {
		t.Errorf("wrote %q", writes)
	}
}

func TestContentSourceMustBeEchoed(t *testing.T) {
	t.Parallel()
	c, pv := source()
	b := newBed(t, able(csi.ControllerServiceCapability_RPC_CLONE_VOLUME), c, pv, cloneOf("source"), sidecartest.StorageClass(sidecartest.ClassName))
	b.Driver.Once("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
		made, err := b.create(ctx, request)
		response := proto.CloneOf(made.(*csi.CreateVolumeResponse))
		response.Volume.ContentSource = nil
		return response, err
	})
	b.start()
	b.wait("deleted and made again", func() bool { return slices.Contains(b.Writes(), "create persistentvolumes "+pvName) })
	if got := b.Driver.CallNames(); !slices.Equal(got, []string{"CreateVolume", "DeleteVolume", "CreateVolume"}) {
		t.Errorf("CSI calls %q", got)
	}
}

// TestSourceIsFreedWhenItsClonesAreMade: the source is being deleted.
func TestSourceIsFreedWhenItsClonesAreMade(t *testing.T) {
	t.Parallel()
	deleted := func() (*v1.PersistentVolumeClaim, *v1.PersistentVolume) {
		c, pv := source()
		c.Finalizers = []string{"kubernetes.io/pvc-protection", cloneFinalizer}
		sidecartest.Deleting(c)
		return c, pv
	}
	waiting := cloneOf("source")
	waiting.Annotations[annProvisioner] = "slow one" // pending for as long as the test wants
	free := "update persistentvolumeclaims default/source"

	t.Run("none waits", func(t *testing.T) {
		t.Parallel()
		c, pv := deleted()
		b := newBed(t, able(csi.ControllerServiceCapability_RPC_CLONE_VOLUME), c, pv)
		b.start()
		b.writes(free)
	})
	t.Run("one waits and is deleted", func(t *testing.T) {
		t.Parallel()
		c, pv := deleted()
		b := newBed(t, able(csi.ControllerServiceCapability_RPC_CLONE_VOLUME), c, pv, waiting, sidecartest.StorageClass(sidecartest.ClassName))
		b.start()
		b.others() // the source was looked at by now
		b.deleteClaim("data")
		b.wait("freed", func() bool { return slices.Contains(b.Writes(), free) })
	})
	t.Run("of another driver", func(t *testing.T) {
		t.Parallel()
		c, pv := deleted()
		pv.Spec.CSI.Driver = "another"
		b := newBed(t, able(csi.ControllerServiceCapability_RPC_CLONE_VOLUME), c, pv, sidecartest.StorageClass(sidecartest.ClassName))
		b.start()
		b.others()
	})
}

func TestVolumeFromSnapshot(t *testing.T) {
	t.Parallel()
	of := func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSource = &v1.TypedLocalObjectReference{APIGroup: ptr(snapshotGroup), Kind: "VolumeSnapshot", Name: "snap"}
	}
	block := v1.PersistentVolumeBlock
	for name, test := range map[string]struct {
		change func(s *snapshotv1.VolumeSnapshot, c *snapshotv1.VolumeSnapshotContent)
		claim  func(*v1.PersistentVolumeClaim)
		err    string
	}{
		"usual": {nil, nil, ""},
		"deleted": {func(s *snapshotv1.VolumeSnapshot, _ *snapshotv1.VolumeSnapshotContent) {
			sidecartest.Deleting(s)
			s.Finalizers = []string{"x"}
		}, nil, "being deleted"},
		"deleted, and kept for a volume": {func(s *snapshotv1.VolumeSnapshot, _ *snapshotv1.VolumeSnapshotContent) {
			sidecartest.Deleting(s)
			s.Finalizers = []string{"snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"}
		}, nil, ""},
		"deleted, and kept by upstream's provisioner": {func(s *snapshotv1.VolumeSnapshot, _ *snapshotv1.VolumeSnapshotContent) {
			sidecartest.Deleting(s)
			s.Finalizers = []string{"provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection"}
		}, nil, ""},
		"not ready": {func(s *snapshotv1.VolumeSnapshot, _ *snapshotv1.VolumeSnapshotContent) {
			s.Status.ReadyToUse = ptr(false)
		}, nil, "not ready"},
		"not bound": {func(s *snapshotv1.VolumeSnapshot, _ *snapshotv1.VolumeSnapshotContent) {
			s.Status.BoundVolumeSnapshotContentName = nil
		}, nil, "not bound"},
		"content missing": {func(s *snapshotv1.VolumeSnapshot, _ *snapshotv1.VolumeSnapshotContent) {
			s.Status.BoundVolumeSnapshotContentName = ptr("x")
		}, nil, "not found"},
		"content of another": {func(_ *snapshotv1.VolumeSnapshot, c *snapshotv1.VolumeSnapshotContent) {
			c.Spec.VolumeSnapshotRef.UID = "x"
		}, nil, "another snapshot"},
		"other driver": {func(_ *snapshotv1.VolumeSnapshot, c *snapshotv1.VolumeSnapshotContent) { c.Spec.Driver = "x" }, nil, "is of driver x"},
		"no handle":    {func(_ *snapshotv1.VolumeSnapshot, c *snapshotv1.VolumeSnapshotContent) { c.Status.SnapshotHandle = nil }, nil, "no handle"},
		"too small":    {nil, size(1), "less than"},
		"mode differs": {func(_ *snapshotv1.VolumeSnapshot, c *snapshotv1.VolumeSnapshotContent) {
			c.Spec.SourceVolumeMode = &block
		}, nil, "lacks the annotation"},
		"mode may differ": {func(_ *snapshotv1.VolumeSnapshot, c *snapshotv1.VolumeSnapshotContent) {
			c.Spec.SourceVolumeMode = &block
			c.Annotations = map[string]string{annAllowModeChange: "true"}
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snapshot := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "snap", Namespace: sidecartest.Namespace, UID: "snap"},
				Status: &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr("content"), ReadyToUse: ptr(true), RestoreSize: ptr(sidecartest.Size(sidecartest.GiB))}}
			content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "content"},
				Spec: snapshotv1.VolumeSnapshotContentSpec{Driver: sidecartest.DriverName,
					VolumeSnapshotRef: v1.ObjectReference{Namespace: sidecartest.Namespace, Name: "snap", UID: "snap"}},
				Status: &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: ptr("handle-snap")}}
			if test.change != nil {
				test.change(snapshot, content)
			}
			c := claim("data", of)
			if test.claim != nil {
				test.claim(c)
			}
			b := newBed(t, able(csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT), []runtime.Object{snapshot, content, c, sidecartest.StorageClass(sidecartest.ClassName)}...)
			b.start()
			if test.err != "" {
				b.refused(test.err)
				return
			}
			b.wait("asked", func() bool { return len(b.Driver.Calls("CreateVolume")) > 0 })
			got := b.Driver.Calls("CreateVolume")[0].Request.(*csi.CreateVolumeRequest).GetVolumeContentSource().GetSnapshot().GetSnapshotId()
			if got != "handle-snap" {
				t.Errorf("filled from %q", got)
			}
		})
	}
}

// A source that is deleted while nobody knows whether the volume is made: a snapshot
// that is to go waits for the claim, which must not wait for the snapshot.
func TestSourceGoesWhileTheAnswerIsOpen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first codes.Code
		calls int
		made  bool
	}{
		"after a time-out":        {codes.DeadlineExceeded, 2, true},
		"after a lost connection": {codes.Unavailable, 2, true},
		"after a final answer":    {codes.Internal, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, pv := source()
			b := newBed(t, able(csi.ControllerServiceCapability_RPC_CLONE_VOLUME), c, pv, cloneOf("source"), sidecartest.StorageClass(sidecartest.ClassName))
			answer := sidecartest.Fail(test.first, "made to fail")
			if test.made {
				answer = b.createAndFail(test.first)
			}
			b.Driver.Once("CreateVolume", func(ctx context.Context, request proto.Message) (proto.Message, error) {
				b.deleteClaim("source")
				b.wait("seen", func() bool {
					return len(b.Env.Informers.Kube().Core().V1().PersistentVolumeClaims().Informer().GetStore().List()) == 1
				})
				return answer(ctx, request)
			})
			b.start()
			if !test.made {
				b.wait("refused", func() bool { return b.saw("Warning ProvisioningFailed clone of claim source: it does not exist") })
			} else {
				b.wait("made", func() bool {
					_, err := b.Kube.CoreV1().PersistentVolumes().Get(b.Ctx, pvName, metav1.GetOptions{})
					return err == nil
				})
			}
			if got := len(b.Driver.Calls("CreateVolume")); got != test.calls {
				t.Errorf("%d CreateVolume calls, want %d", got, test.calls)
			}
		})
	}
}
