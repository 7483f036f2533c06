package attacher

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// place is a volume on a node, as the driver names them.
type place struct{ volumeID, nodeID string }

// backend is storage that attaches, with failures before and after the deed,
// and with answers that come late.
type backend struct {
	t  testing.TB
	mu sync.Mutex
	// random is used with the lock held.
	random   *rand.Rand
	isCalm   bool // no more failures
	attached map[place]bool
	busy     map[place]bool
}

func newBackend(t testing.TB, seed uint64) *backend {
	return &backend{t: t, random: rand.New(rand.NewPCG(seed, 2)), attached: map[place]bool{}, busy: map[place]bool{}}
}

// do carries a call out, or not, and tells the truth about it, or not.
func (s *backend) do(p place, isPublish bool) error {
	s.mu.Lock()
	if s.busy[p] {
		s.t.Errorf("two calls at once for %v", p)
	}
	s.busy[p] = true
	fate, late := s.random.IntN(10), time.Duration(s.random.IntN(1000))*time.Microsecond
	if s.isCalm {
		fate = 9
	}
	s.mu.Unlock()
	time.Sleep(late) // others have a chance to come between

	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, p)
	final := []codes.Code{codes.Internal, codes.NotFound, codes.FailedPrecondition}
	unknown := []codes.Code{codes.DeadlineExceeded, codes.Unavailable, codes.Aborted}
	switch fate {
	case 0, 1:
		return status.Error(final[s.random.IntN(3)], "refused")
	case 2:
		return status.Error(unknown[s.random.IntN(3)], "lost before it")
	}
	s.attached[p] = isPublish
	if fate < 5 {
		return status.Error(unknown[s.random.IntN(3)], "lost after it")
	}
	return nil
}

func (s *backend) serve(d *sidecartest.Driver) {
	d.On(publishes, func(_ context.Context, m proto.Message) (proto.Message, error) {
		request := m.(*csi.ControllerPublishVolumeRequest)
		return &csi.ControllerPublishVolumeResponse{}, s.do(place{request.VolumeId, request.NodeId}, true)
	})
	d.On(unpublishes, func(_ context.Context, m proto.Message) (proto.Message, error) {
		request := m.(*csi.ControllerUnpublishVolumeRequest)
		return &csi.ControllerUnpublishVolumeResponse{}, s.do(place{request.VolumeId, request.NodeId}, false)
	})
	d.On(lists, func(context.Context, proto.Message) (proto.Message, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		nodes := map[string][]string{}
		for p, is := range s.attached {
			if is {
				nodes[p.volumeID] = append(nodes[p.volumeID], p.nodeID)
			}
		}
		response := &csi.ListVolumesResponse{}
		for volume, ids := range nodes {
			response.Entries = append(response.Entries, entry(volume, ids...))
		}
		if !s.isCalm && s.random.IntN(4) == 0 {
			return nil, status.Error(codes.Internal, "not now")
		}
		return response, nil
	})
}

// detachBehindBack is another hand at the storage.
func (s *backend) detachBehindBack(p place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.busy[p] {
		s.attached[p] = false
	}
}

func (s *backend) isAttached(p place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attached[p] || s.busy[p]
}

const (
	randomVolumes = 3
	randomNodes   = 2
)

func placeOf(va *storagev1.VolumeAttachment) place {
	return place{"handle-" + volumeName(va), "id-" + va.Spec.NodeName}
}

// world is one random run.
type world struct {
	*sidecartest.Bed
	backend *backend
	random  *rand.Rand
	stop    func()
	config  Config
	// forces has people remove finalizers. A restart then could forget what
	// they left attached, so that there is none.
	forces bool
}

func newWorld(t *testing.T, seed uint64) *world {
	objects := []runtime.Object{}
	for v := range randomVolumes {
		objects = append(objects, sidecartest.PV(fmt.Sprint("v", v)))
	}
	for n := range randomNodes {
		objects = append(objects, sidecartest.CSINode(fmt.Sprint("n", n)), sidecartest.Node(fmt.Sprint("n", n)))
	}
	w := &world{
		Bed: sidecartest.New(t, lister(), objects...), backend: newBackend(t, seed),
		random: rand.New(rand.NewPCG(seed, 1)), forces: seed%3 == 0,
		config: Config{RetryMin: time.Millisecond, RetryMax: 4 * time.Millisecond, ReconcileSync: 5 * time.Millisecond},
	}
	w.backend.serve(w.Driver)
	w.Kube.PrependReactor("patch", "volumeattachments", w.watchFinalizer)
	w.stop = start(w.Bed, w.config)
	return w
}

// watchFinalizer sees to it that the attacher lets no VolumeAttachment go
// whose volume is attached. Now and then it is the API server that fails.
func (w *world) watchFinalizer(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	var body struct {
		Metadata map[string]json.RawMessage
	}
	if err := json.Unmarshal(patch.GetPatch(), &body); err != nil {
		w.Error(err)
	}
	finalizers, isSet := body.Metadata["finalizers"]
	_, isAttacher := body.Metadata["uid"]
	// One request at a time: what is in the store now is what is patched.
	stored, err := w.Kube.Tracker().Get(action.GetResource(), "", patch.GetName())
	if err == nil && isSet && isAttacher && !strings.Contains(string(finalizers), finalizer) {
		if va := stored.(*storagev1.VolumeAttachment); string(body.Metadata["uid"]) == fmt.Sprintf("%q", va.UID) && w.backend.isAttached(placeOf(va)) {
			w.Errorf("%s goes while its volume is attached", va.Name)
		}
	}
	w.backend.mu.Lock()
	defer w.backend.mu.Unlock()
	if isAttacher && !w.backend.isCalm && w.backend.random.IntN(10) == 0 {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "volumeattachments"}, patch.GetName(), fmt.Errorf("so it happens"))
	}
	return false, nil, nil
}

// step does one thing that people, nodes or storage do.
func (w *world) step() {
	volume, node := fmt.Sprint("v", w.random.IntN(randomVolumes)), fmt.Sprint("n", w.random.IntN(randomNodes))
	name := volume + "-" + node
	api := w.Kube.StorageV1().VolumeAttachments()
	switch what := w.random.IntN(20); {
	case what < 8:
		_, err := api.Create(w.Ctx, sidecartest.VA(volume, node, func(va *storagev1.VolumeAttachment) { va.UID = "" }), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			w.Error(err)
		}
	case what < 14:
		if err := api.Delete(w.Ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			w.Error(err)
		}
	case what == 14 && w.forces:
		_, err := api.Patch(w.Ctx, name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			w.Error(err)
		}
	case what == 14:
		w.stop()
		w.Idle() // what the one before began is over
		w.stop = start(w.Bed, w.config)
	case what == 15:
		w.backend.detachBehindBack(place{"handle-" + volume, "id-" + node})
	case what == 16:
		w.toggleCSINode(node)
	default:
		time.Sleep(time.Duration(w.random.IntN(3000)) * time.Microsecond)
	}
}

// toggleCSINode has the driver vanish from a node, or come back.
func (w *world) toggleCSINode(node string) {
	api := w.Kube.StorageV1().CSINodes()
	err := api.Delete(w.Ctx, node, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(w.Ctx, sidecartest.CSINode(node), metav1.CreateOptions{})
	}
	if err != nil {
		w.Error(err)
	}
}

// settle lets all be well and checks that everything comes to its end.
func (w *world) settle() {
	w.backend.mu.Lock()
	w.backend.isCalm = true
	w.backend.mu.Unlock()
	for n := range randomNodes {
		_, err := w.Kube.StorageV1().CSINodes().Create(w.Ctx, sidecartest.CSINode(fmt.Sprint("n", n)), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			w.Error(err)
		}
	}
	w.Eventually(func() error {
		list, err := w.Kube.StorageV1().VolumeAttachments().List(w.Ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		wanted := map[place]bool{}
		for i := range list.Items {
			va := &list.Items[i]
			if va.DeletionTimestamp != nil {
				return fmt.Errorf("%s is stuck: %+v", va.Name, va.Status)
			}
			if !va.Status.Attached {
				return fmt.Errorf("%s is not attached: %+v", va.Name, va.Status.AttachError)
			}
			wanted[placeOf(va)] = true
		}
		w.backend.mu.Lock()
		defer w.backend.mu.Unlock()
		for p, is := range w.backend.attached {
			if is != wanted[p] {
				return fmt.Errorf("%v: attached %v, wanted %v", p, is, wanted[p])
			}
		}
		return nil
	})
}

// Whatever the order of events and failures: a volume is never attached after
// its VolumeAttachment is gone, calls for one volume and node never meet, and
// in the end what is attached is what is wanted.
func TestRandomOrdersOfEventsAndFailures(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			for range 150 {
				w.step()
			}
			w.settle()
			w.stop()
		})
	}
}
