package snapshotter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
	"github.com/csi-windows/csi-windows/sidecar/snapshotter"
)

// watching reports as an error that a kind is not watched yet.
func watching(bed *sidecartest.Bed, resource string) error {
	for _, action := range bed.Snapshots.Actions() {
		if action.Matches("watch", resource) {
			return nil
		}
	}
	return fmt.Errorf("%s are not watched", resource)
}

func TestContentGoes(t *testing.T) {
	t.Parallel()
	const other = "example.com/other"
	keptByAnother := func(c *snapshotv1.VolumeSnapshotContent) { c.Finalizers = append(c.Finalizers, other) }
	unbound := func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotRef.UID = "" }
	for name, test := range map[string]struct {
		content    *snapshotv1.VolumeSnapshotContent
		wantCalls  []string
		wantWrites []string
		stays      bool
	}{
		"with its snapshot":                           {vsc(taken("snap-1", true), deleted), []string{"DeleteSnapshot"}, []string{metaPatch}, false},
		"with a snapshot that is not ready":           {vsc(taken("snap-1", false), deleted), []string{"DeleteSnapshot"}, []string{metaPatch}, false},
		"with a marker that was left behind":          {vsc(taken("snap-1", true), deleted, annotated(marker, "yes")), []string{"DeleteSnapshot"}, []string{metaPatch}, false},
		"without its snapshot where that is retained": {vsc(taken("snap-1", true), deleted, retained), nil, []string{metaPatch}, false},
		"without a snapshot where none was made":      {vsc(deleted), nil, []string{metaPatch}, false},
		"with a snapshot that was there before":       {vsc(given("old-1"), deleted), []string{"DeleteSnapshot"}, []string{metaPatch}, false},
		"unbound, with a snapshot that was seen":      {vsc(given("old-1"), taken("old-1", true), unbound, deleted), []string{"DeleteSnapshot"}, []string{metaPatch}, false},
		"unbound, with one nobody had seen yet":       {vsc(given("old-1"), unbound, deleted), []string{"DeleteSnapshot"}, []string{metaPatch}, false},
		"unbound, while another holds it":             {vsc(given("old-1"), unbound, deleted, keptByAnother), []string{"DeleteSnapshot"}, []string{metaPatch}, true},
		"without the snapshot of a group": {vsc(given("old-1"), deleted, func(c *snapshotv1.VolumeSnapshotContent) {
			taken("old-1", true)(c)
			c.Status.VolumeGroupSnapshotHandle = to("g")
		}), nil, []string{metaPatch}, false},
		"in parts where another holds it": {vsc(taken("snap-1", true), deleted, keptByAnother, annotated(marker, "yes")), []string{"DeleteSnapshot"}, []string{metaPatch, statusPatch, metaPatch}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(listSnapshots), "", class(nil), test.content)
			serve(bed, &backend{})
			stop := start(bed, quick)
			c := eventually(bed, "let go", func(c *snapshotv1.VolumeSnapshotContent) bool {
				return c == nil || test.stays && cmp.Equal(c.Finalizers, []string{other})
			})
			settled(bed)
			if diff := cmp.Diff(test.wantCalls, bed.Driver.CallNames()); diff != "" {
				t.Errorf("calls: %s", diff)
			}
			if diff := cmp.Diff(test.wantWrites, writes(bed)); diff != "" {
				t.Errorf("writes: %s", diff)
			}
			if test.stays && (c.Status != nil && c.Status.SnapshotHandle != nil || c.Annotations[marker] != "") {
				t.Errorf("the object tells of a snapshot that is gone: %+v", c)
			}
			stop()
			start(bed, quick) // a new process does nothing of it again
			settled(bed)
			if calls := bed.Driver.CallNames(); len(calls) != len(test.wantCalls) {
				t.Errorf("calls %q after a new start", calls)
			}
		})
	}
}

// The annotation alone changes nothing, and the deletion is seen after it.
func TestReadyContentGoesWhenItIsReleased(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(nil), vsc(taken("snap-1", true)))
	serve(bed, &backend{})
	start(bed, quick)
	settled(bed)
	patch(bed, `{"metadata":{"annotations":{"`+beingDeleted+`":"yes"}}}`)
	settled(bed)
	if calls := bed.Driver.CallNames(); len(calls) > 0 {
		t.Errorf("calls %q before the content is deleted", calls)
	}
	remove(bed)
	eventually(bed, "gone", isGone)
	if diff := cmp.Diff([]string{"DeleteSnapshot"}, bed.Driver.CallNames()); diff != "" {
		t.Errorf("calls: %s", diff)
	}
}

func TestRemovalThatFailsIsToldOnceAndTriedAgain(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(nil), vsc(taken("snap-1", true), deleted))
	store := serve(bed, &backend{})
	busy := sidecartest.Fail(codes.FailedPrecondition, "in use")
	bed.Driver.Once("DeleteSnapshot", busy, busy, busy)
	start(bed, quick)
	eventually(bed, "gone", isGone)
	if events := bed.Events(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning SnapshotDeleteError Failed to delete snapshot: remove snapshot snap-1: ") {
		t.Errorf("events %q", events)
	}
	if _, _, removed := store.state(); len(removed) != 1 || len(writes(bed)) != 1 {
		t.Errorf("removed %q, writes %q", removed, writes(bed))
	}
}

func TestSnapshotIsRemovedOnceThoughTheFinalizerStays(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(nil), vsc(taken("snap-1", true), deleted))
	store := serve(bed, &backend{})
	bed.Refuse(metaPatch, 3, apierrors.NewServiceUnavailable("not now"))
	start(bed, quick)
	eventually(bed, "gone", isGone)
	if _, _, removed := store.state(); len(removed) != 1 {
		t.Errorf("removed %q", removed)
	}
}

// The issue as it is: time-outs, the snapshot is deleted, the driver succeeds.
func TestC089_SnapshotDeletedWhileItsCreationTimesOutIsRemoved(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(nil), vsc())
	store := serve(bed, &backend{slow: 1 << 30})
	start(bed, quick)
	bed.Eventually(func() error { return called(bed, 3) })
	release(bed)
	more := len(bed.Driver.Calls()) + 2
	bed.Eventually(func() error { return called(bed, more) })
	if c := get(bed); c == nil || c.Annotations[marker] == "" {
		t.Fatalf("the content went, or lost its marker, while the outcome was not known: %+v", c)
	}
	store.mu.Lock()
	store.slow = 0
	store.mu.Unlock()
	eventually(bed, "gone", isGone)
	settled(bed)
	handles, made, removed := store.state()
	if len(handles) != 0 || made != 1 || !cmp.Equal(removed, []string{"snap-1"}) {
		t.Errorf("back-end holds %q, made %d, removed %q", handles, made, removed)
	}
}

func called(bed *sidecartest.Bed, times int) error {
	if calls := bed.Driver.CallNames("CreateSnapshot"); len(calls) < times {
		return fmt.Errorf("%d calls, not %d", len(calls), times)
	}
	return nil
}

// A final answer says that no snapshot was made: the content goes at once,
// and no further call is made.
func TestC089_FinalErrorLetsADeletedContentGo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code  codes.Code
		calls int
	}{"at the first call": {codes.InvalidArgument, 0}, "after time-outs": {codes.NotFound, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(), "", class(nil), vsc())
			hold, entered := make(chan struct{}), make(chan struct{})
			for range test.calls {
				bed.Driver.Once("CreateSnapshot", sidecartest.Fail(codes.DeadlineExceeded, "slow"))
			}
			bed.Driver.Once("CreateSnapshot", func(context.Context, proto.Message) (proto.Message, error) {
				close(entered)
				<-hold
				return nil, status.Error(test.code, "no such volume")
			})
			start(bed, quick)
			<-entered
			release(bed)
			close(hold)
			eventually(bed, "gone", isGone)
			settled(bed)
			if calls, events := bed.Driver.CallNames(), bed.Events(); len(calls) != test.calls+1 || len(events) != min(test.calls, 1) {
				t.Errorf("calls %q, events %q", calls, events)
			}
		})
	}
}

// external-snapshotter#880: the deletion is seen before the annotation that
// allows it, and the content waits for its next try for long.
func TestC089_ReleaseIsSeenThoughTheContentWaits(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(listSnapshots), "", class(nil), vsc())
	store := serve(bed, &backend{looks: 1 << 30})
	start(bed, snapshotter.Config{RetryMin: time.Hour, RetryMax: time.Hour})
	eventually(bed, "taken and unmarked", func(c *snapshotv1.VolumeSnapshotContent) bool {
		return c.Status != nil && c.Status.SnapshotHandle != nil && c.Annotations[marker] == ""
	})
	remove(bed)
	settled(bed)
	if c := get(bed); c == nil {
		t.Fatal("the content went though its snapshot object did not")
	}
	patch(bed, `{"metadata":{"annotations":{"`+beingDeleted+`":"yes"}}}`)
	eventually(bed, "gone", isGone)
	if _, _, removed := store.state(); !cmp.Equal(removed, []string{"snap-1"}) || len(bed.Driver.CallNames("ListSnapshots")) > 0 {
		t.Errorf("removed %q, calls %q", removed, bed.Driver.CallNames())
	}
}

// external-snapshotter#866: the first call makes a snapshot and times out.
// The name of the next one is the same, so it finds that snapshot.
func TestC089_SnapshotOfACallThatTimedOutIsFound(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(nil), vsc())
	store := serve(bed, &backend{slow: 4})
	stop := start(bed, quick)
	eventually(bed, "ready", isReady)
	stop()
	if handles, made, _ := store.state(); made != 1 || len(handles) != 1 {
		t.Errorf("back-end holds %q, made %d", handles, made)
	}
	if c := get(bed); c.Status.Error != nil {
		t.Errorf("the error stays: %q", *c.Status.Error.Message)
	}
	var names []string
	for _, call := range bed.Driver.Calls() {
		names = append(names, call.Request.(*csi.CreateSnapshotRequest).GetName())
	}
	if len(names) != 5 || names[0] != names[4] {
		t.Errorf("names %q", names)
	}
}

// A failure that stays the same is written and told once.
func TestFailureIsToldOnce(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(nil), vsc())
	bed.Driver.On("CreateSnapshot", sidecartest.Fail(codes.DeadlineExceeded, "slow"))
	start(bed, quick)
	bed.Eventually(func() error { return called(bed, 6) })
	if events, done := bed.Events(), writes(bed); len(events) != 1 || !cmp.Equal(done, []string{metaPatch, statusPatch}) {
		t.Errorf("events %q, writes %q", events, done)
	}
}

// Writes of the component itself do not call for work before its time.
func TestFailureWaitsForItsTime(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(nil), vsc())
	bed.Driver.On("CreateSnapshot", sidecartest.Fail(codes.Internal, "no space"))
	start(bed, snapshotter.Config{RetryMin: time.Hour, RetryMax: time.Hour})
	eventually(bed, "failed", hasFailed)
	settled(bed)
	if calls := bed.Driver.CallNames(); len(calls) != 1 {
		t.Errorf("calls %q", calls)
	}
}

func TestCallIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(nil), vsc())
	store := serve(bed, &backend{})
	bed.Driver.Once("CreateSnapshot", sidecartest.Hang)
	config := quick
	config.Timeout = 20 * time.Millisecond
	start(bed, config)
	eventually(bed, "ready", isReady)
	if _, made, _ := store.state(); made != 1 {
		t.Errorf("made %d", made)
	}
}

// Somebody takes the finalizers off while the snapshot is taken: no object
// would ever name it.
func TestSnapshotIsNotLeftWhereItsContentVanished(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"for good": false, "and was made again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(), "", class(nil), vsc())
			store := serve(bed, &backend{})
			bed.Driver.Once("CreateSnapshot", func(ctx context.Context, request proto.Message) (proto.Message, error) {
				patch(bed, `{"metadata":{"finalizers":null}}`)
				remove(bed)
				if again {
					next := vsc(func(c *snapshotv1.VolumeSnapshotContent) { c.UID = "another-uid" })
					if _, err := bed.Snapshots.SnapshotV1().VolumeSnapshotContents().Create(ctx, next, metav1.CreateOptions{}); err != nil {
						t.Error(err)
					}
				}
				handle, ready, err := store.take(request.(*csi.CreateSnapshotRequest).GetName(), "snap")
				return &csi.CreateSnapshotResponse{Snapshot: csiSnapshot(handle, ready)}, err
			})
			start(bed, quick)
			if again {
				c := eventually(bed, "ready", func(c *snapshotv1.VolumeSnapshotContent) bool { return c != nil && isReady(c) })
				if handles, _, _ := store.state(); c.UID != "another-uid" || !cmp.Equal(handles, []string{*c.Status.SnapshotHandle}) {
					t.Errorf("back-end holds %q, content %+v", handles, c)
				}
				return
			}
			bed.Eventually(func() error {
				if handles, _, removed := store.state(); len(handles) > 0 || len(removed) != 1 {
					return fmt.Errorf("back-end holds %q", handles)
				}
				return nil
			})
			settled(bed)
			if log := bed.Log(); strings.Contains(log, "Will be tried again") || !strings.Contains(log, "whose content vanished") {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// What a cache shows after a start may be old: the snapshot was taken and
// removed since. It is not taken again for a content that is gone.
func TestNothingIsTakenForAStateThatIsPast(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]*snapshotv1.VolumeSnapshotContent{
		"in doubt":      vsc(annotated(marker, "yes"), deleted),
		"to be taken":   vsc(),
		"not ready yet": vsc(taken("snap-0", false)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(), "", class(nil), object)
			serve(bed, &backend{})
			// The cache is full and then deaf.
			bed.Snapshots.PrependWatchReactor("volumesnapshotcontents", clienttesting.DefaultWatchReactor(watch.NewFake(), nil))
			informer := bed.Env.Informers.Snapshots().Snapshot().V1().VolumeSnapshotContents().Informer()
			if err := bed.Env.Informers.Sync(bed.Ctx, informer.HasSynced); err != nil {
				t.Fatal(err)
			}
			patch(bed, `{"metadata":{"finalizers":null}}`)
			if get(bed) != nil {
				remove(bed)
			}
			component, err := snapshotter.New(bed.Env, quick)
			if err != nil {
				t.Fatal(err)
			}
			bed.Run(component)
			bed.Eventually(func() error {
				for _, action := range bed.Snapshots.Actions() {
					if patch, ok := action.(clienttesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), "resourceVersion") {
						return nil
					}
				}
				return errors.New("the object was not asked for")
			})
			time.Sleep(20 * time.Millisecond) // a call would have come by now
			if calls := bed.Driver.CallNames(); len(calls) > 0 {
				t.Errorf("calls %q", calls)
			}
		})
	}
}

// A write that was made for an older state is refused, and nothing is lost.
func TestConflictIsMetWithAnotherTry(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(nil), vsc(taken("snap-1", true), deleted))
	store := serve(bed, &backend{})
	bed.Refuse(metaPatch, 2, apierrors.NewConflict(schema.GroupResource{Resource: "volumesnapshotcontents"}, "snapcontent-1", errors.New("changed")))
	start(bed, quick)
	eventually(bed, "gone", isGone)
	if _, _, removed := store.state(); len(removed) != 1 {
		t.Errorf("removed %q", removed)
	}
}
