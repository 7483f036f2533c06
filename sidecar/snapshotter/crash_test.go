package snapshotter_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// scenario is a piece of a content's life that is cut off after every step.
type scenario struct {
	objects []runtime.Object
	backend *backend
	// done reports that the end is reached.
	done func(bed *sidecartest.Bed) error
	// held is what the back-end holds then.
	held []string
	// made is how many snapshots may have been made in all.
	made int
}

func contentDone(check func(*snapshotv1.VolumeSnapshotContent) bool) func(*sidecartest.Bed) error {
	return func(bed *sidecartest.Bed) error {
		if c := get(bed); !check(c) {
			return fmt.Errorf("content %+v", c)
		}
		return nil
	}
}

func scenarios() map[string]func() scenario {
	goneAndEmpty := contentDone(isGone)
	group := func(changes ...func(*scenario)) scenario {
		s := scenario{objects: []runtime.Object{groupClass(nil), vgsc()}, made: 1, held: []string{"group-1"}, backend: &backend{},
			done: func(bed *sidecartest.Bed) error { return groupIsReady(bed, "v1")() }}
		for _, change := range changes {
			change(&s)
		}
		return s
	}
	return map[string]func() scenario{
		"taken at once": func() scenario {
			return scenario{objects: []runtime.Object{class(nil), vsc()}, done: contentDone(isReady), backend: &backend{}, held: []string{"snap-1"}, made: 1}
		},
		"taken slowly and not ready": func() scenario {
			return scenario{objects: []runtime.Object{class(nil), vsc()}, backend: &backend{slow: 2, looks: 2}, done: contentDone(isReady), held: []string{"snap-1"}, made: 1}
		},
		"removed": func() scenario {
			return scenario{objects: []runtime.Object{class(nil), vsc(taken("snap-0", true), deleted)}, backend: &backend{}, done: goneAndEmpty}
		},
		"removed while another holds the object": func() scenario {
			object := vsc(taken("snap-0", true), deleted, annotated(marker, "yes"), func(c *snapshotv1.VolumeSnapshotContent) { c.Finalizers = append(c.Finalizers, "example.com/other") })
			return scenario{objects: []runtime.Object{class(nil), object}, backend: &backend{}, done: contentDone(func(c *snapshotv1.VolumeSnapshotContent) bool {
				return len(c.Finalizers) == 1 && c.Status.SnapshotHandle == nil
			})}
		},
		"released while it is taken": func() scenario {
			return scenario{objects: []runtime.Object{class(nil), vsc(annotated(marker, "yes"), deleted)}, backend: &backend{slow: 2}, done: goneAndEmpty, made: 1}
		},
		"released and retained while it is taken": func() scenario {
			return scenario{objects: []runtime.Object{class(nil), vsc(annotated(marker, "yes"), deleted, retained)}, backend: &backend{slow: 1}, done: goneAndEmpty, held: []string{"snap-1"}, made: 1}
		},
		"group taken": func() scenario { return group(func(s *scenario) { s.backend.slow, s.backend.looks = 1, 1 }) },
		"group released while it is taken": func() scenario {
			return group(func(s *scenario) {
				object := vgsc()
				object.DeletionTimestamp = to(metav1.NewTime(time.Unix(1, 0)))
				object.Annotations = map[string]string{groupMarker: "yes", groupDeleted: "yes"}
				s.objects[1], s.held = object, nil
				s.done = func(bed *sidecartest.Bed) error { return groupIsGone(bed, "v1")() }
			})
		},
	}
}

// The process is killed after every single write and CSI call, and started
// anew: the end is the same, and no snapshot is lost or made twice.
func TestProcessMayBeKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	for name, fresh := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps, clean := runCut(t, fresh(), -1)
			if steps < 1 {
				t.Fatalf("the clean run has %d steps", steps)
			}
			for cut := range steps {
				_, end := runCut(t, fresh(), cut)
				ignore := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion")
				ignoreTime := cmpopts.IgnoreFields(snapshotv1.VolumeSnapshotError{}, "Time")
				if diff := cmp.Diff(clean, end, ignore, ignoreTime, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("cut after %d of %d steps: %s", cut, steps, diff)
				}
			}
		})
	}
}

// runCut runs a scenario to its end, cut off once after some steps unless that
// is below 0. It gives the number of steps and the content in the end.
func runCut(t *testing.T, s scenario, cut int) (steps int, end *snapshotv1.VolumeSnapshotContent) {
	t.Helper()
	bed := newBed(t, can(getSnapshot), "v1", s.objects...)
	store := serve(bed, s.backend)
	if cut >= 0 {
		reached := bed.CutAfter(cut)
		stop := start(bed, quick)
		<-reached
		stop()
		bed.Idle() // no call of this life is carried out in the next
		bed.Mend()
	}
	stop := start(bed, quick)
	bed.Eventually(func() error { return s.done(bed) })
	stop()
	handles, made, _ := store.state()
	if !cmp.Equal(handles, s.held, cmpopts.EquateEmpty()) || made != s.made {
		t.Errorf("cut after %d steps: back-end holds %q, made %d, want %q and %d", cut, handles, made, s.held, s.made)
	}
	return bed.Steps(), get(bed)
}

// Random lives: time-outs, kills and the release of the content come in any
// order, and in the end the back-end holds what the API server names.
func TestBackEndHoldsWhatTheContentsNameInTheEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 7))
			bed := newBed(t, can(getSnapshot), "", class(nil), vsc())
			store := serve(bed, &backend{slow: random.IntN(4), looks: random.IntN(3)})
			releaseAt, last := random.IntN(6), 5
			for round := range last {
				if round == releaseAt && get(bed) != nil {
					release(bed)
				}
				reached := bed.CutAfter(random.IntN(4))
				stop := start(bed, quick)
				select {
				case <-reached:
				case <-time.After(20 * time.Millisecond): // nothing more to do
				}
				stop()
				bed.Idle()
				bed.Mend()
			}
			start(bed, quick)
			wanted := contentDone(isReady)
			if releaseAt < last {
				wanted = contentDone(isGone)
			}
			bed.Eventually(func() error { return wanted(bed) })
			handles, made, _ := store.state()
			if releaseAt < last && len(handles) > 0 || releaseAt >= last && !cmp.Equal(handles, []string{*get(bed).Status.SnapshotHandle}) || made > 1 {
				t.Errorf("back-end holds %q, made %d, released in round %d", handles, made, releaseAt)
			}
		})
	}
}
