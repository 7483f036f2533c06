package snapshotter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// kubernetes-csi/external-snapshotter#251, #325: nobody notes the secret on the
// content of a snapshot that was there before, and the driver could not remove
// it without.
func TestImportedSnapshotIsRemovedWithTheSecretOfItsClass(t *testing.T) {
	t.Parallel()
	named := class(map[string]string{"csi.storage.k8s.io/snapshotter-secret-name": "${volumesnapshot.name}-key", "csi.storage.k8s.io/snapshotter-secret-namespace": "${volumesnapshot.namespace}"})
	ofClass, own := sidecartest.Secret("snap-key", "key", "of the class"), sidecartest.Secret("own", "key", "own")
	ofClass.Namespace, own.Namespace = "apps", "apps"
	unclassed := func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotClassName = nil }
	for name, test := range map[string]struct {
		content *snapshotv1.VolumeSnapshotContent
		objects []runtime.Object
		want    map[string]string
	}{
		"as a rule":                    {vsc(given("old-1"), deleted), []runtime.Object{named, ofClass, own}, map[string]string{"key": "of the class"}},
		"unless its author named one":  {vsc(given("old-1"), deleted, annotated(secretName, "own"), annotated(secretSpace, "apps")), []runtime.Object{named, ofClass, own}, map[string]string{"key": "own"}},
		"or without where it is gone":  {vsc(given("old-1"), deleted), []runtime.Object{named, own}, nil},
		"or without a class":           {vsc(given("old-1"), deleted, unclassed), []runtime.Object{named, ofClass}, nil},
		"or when the class is gone":    {vsc(given("old-1"), deleted), []runtime.Object{ofClass}, nil},
		"and not one that was taken":   {vsc(taken("snap-1", true), deleted), []runtime.Object{named, ofClass}, nil},
		"or when the class names none": {vsc(given("old-1"), deleted), []runtime.Object{class(nil), ofClass}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(listSnapshots), "", append(test.objects, test.content)...)
			serve(bed, &backend{})
			start(bed, quick)
			eventually(bed, "gone", isGone)
			calls := bed.Driver.Calls("DeleteSnapshot")
			if len(calls) != 1 || !cmp.Equal(calls[0].Request.(*csi.DeleteSnapshotRequest).GetSecrets(), test.want) {
				t.Errorf("removals %v, want one with %v", calls, test.want)
			}
		})
	}
}

// A handle with a slip of the pen cannot be mended, and its content must go.
func TestImportedSnapshotThatNeverWasHoldsNothingUp(t *testing.T) {
	t.Parallel()
	unbound := func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotRef.UID = "" }
	for name, test := range map[string]struct {
		content *snapshotv1.VolumeSnapshotContent
		code    codes.Code
		stays   bool
	}{
		"not found":                 {vsc(given("old-1"), deleted), codes.NotFound, false},
		"not found, unbound":        {vsc(given("old-1"), unbound, deleted), codes.NotFound, false},
		"no handle, unbound":        {vsc(given("old-1"), unbound, deleted), codes.InvalidArgument, false},
		"refused":                   {vsc(given("old-1"), unbound, deleted), codes.FailedPrecondition, true},
		"maybe for want of secrets": {vsc(given("old-1"), deleted), codes.InvalidArgument, true},
		"seen before":               {vsc(given("old-1"), taken("old-1", true), unbound, deleted), codes.NotFound, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(), "", class(nil), test.content)
			bed.Driver.On("DeleteSnapshot", sidecartest.Fail(test.code, "no"))
			start(bed, quick)
			if !test.stays {
				eventually(bed, "gone", isGone)
				return
			}
			bed.Eventually(func() error {
				if calls := bed.Driver.CallNames("DeleteSnapshot"); len(calls) < 3 {
					return fmt.Errorf("calls %q", calls)
				}
				return nil
			})
			if get(bed) == nil {
				t.Error("the content is gone, and its snapshot may be there")
			}
		})
	}
}

// Upstream's program never asks for a snapshot that it took but by taking it
// once more, so that classes and drivers of old need not serve any other call.
func TestSnapshotTheDriverRefusesToTellOfIsAskedForByTakingIt(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(listSnapshots), "", class(nil), vsc())
	store := serve(bed, &backend{looks: 3})
	bed.Driver.On("ListSnapshots", sidecartest.Fail(codes.InvalidArgument, "secrets are needed"))
	start(bed, quick)
	c := eventually(bed, "ready", isReady)
	settled(bed)
	if diff := cmp.Diff([]string{"CreateSnapshot", "ListSnapshots", "CreateSnapshot", "CreateSnapshot", "CreateSnapshot"}, bed.Driver.CallNames()); diff != "" {
		t.Errorf("calls: %s", diff)
	}
	if _, made, _ := store.state(); made != 1 || *c.Status.SnapshotHandle != "snap-1" || len(bed.Events()) > 0 {
		t.Errorf("%d snapshots made, status %+v, events %q", made, c.Status, bed.Events())
	}
}

// One that is not there is not made again, and one that was there before
// cannot be.
func TestSnapshotThatIsMissedIsNotTakenAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content *snapshotv1.VolumeSnapshotContent
		answer  sidecartest.Answer
	}{
		"not found":        {vsc(taken("snap-1", false)), sidecartest.Fail(codes.NotFound, "no such snapshot")},
		"broken":           {vsc(taken("snap-1", false)), sidecartest.Fail(codes.Internal, "back-end broken")},
		"no answer":        {vsc(taken("snap-1", false)), sidecartest.Fail(codes.Unavailable, "away")},
		"not listed":       {vsc(taken("snap-1", false)), sidecartest.Reply(&csi.ListSnapshotsResponse{})},
		"was there before": {vsc(given("old-1")), sidecartest.Fail(codes.InvalidArgument, "secrets are needed")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(listSnapshots), "", class(nil), test.content)
			bed.Driver.On("ListSnapshots", test.answer)
			start(bed, quick)
			eventually(bed, "failed", hasFailed)
			if calls := bed.Driver.CallNames("CreateSnapshot"); len(calls) > 0 {
				t.Errorf("calls %q", calls)
			}
		})
	}
}

// IBM/ibm-spectrum-scale-csi#249: a driver that knows no time, and says so with
// an empty one, has its snapshots shown as taken in 1970.
func TestSnapshotOfUnknownTimeIsTakenNow(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]*timestamppb.Timestamp{"none": nil, "empty": {}, "no number": {Seconds: 250e9}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(), "", class(nil), vsc())
			bed.Driver.On("CreateSnapshot", func(context.Context, proto.Message) (proto.Message, error) {
				return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{SnapshotId: "snap-1", ReadyToUse: true, CreationTime: when}}, nil
			})
			start(bed, quick)
			c := eventually(bed, "ready", isReady)
			if *c.Status.CreationTime < time.Now().Add(-time.Hour).UnixNano() || c.Status.RestoreSize != nil {
				t.Errorf("taken at %d, size %v", *c.Status.CreationTime, c.Status.RestoreSize)
			}
		})
	}
}

// The API server's clock may be ahead of this one's.
func TestContentFromTheFutureDoesNotWaitForItsTime(t *testing.T) {
	t.Parallel()
	ahead := vsc(func(c *snapshotv1.VolumeSnapshotContent) {
		c.CreationTimestamp, c.Finalizers = metav1.NewTime(time.Now().Add(time.Hour)), nil
	})
	bed := newBed(t, can(), "", class(nil), ahead)
	serve(bed, &backend{})
	start(bed, quick)
	eventually(bed, "ready", isReady)
}
