package snapshotter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
	"github.com/csi-windows/csi-windows/sidecar/snapshotter"
)

// cannot is what a driver says that takes no snapshots.
func cannot() csiclient.Info {
	info := can()
	delete(info.Controller, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT)
	return info
}

// cannotGroups is what one says that takes single ones only.
func cannotGroups() csiclient.Info {
	info := can()
	info.GroupController = nil
	return info
}

// A snapshot of a driver that takes none is told so, once, and goes when it is
// deleted. The driver is never asked.
func TestSnapshotOfADriverWithoutThemIsRefusedAndGoes(t *testing.T) {
	t.Parallel()
	bed := newBed(t, cannot(), "", class(nil), vsc())
	start(bed, quick)
	c := eventually(bed, "refused", hasFailed)
	if text := *c.Status.Error.Message; !strings.Contains(text, "CREATE_DELETE_SNAPSHOT") {
		t.Errorf("it says %q", text)
	}
	settled(bed)
	if events := bed.Events(); len(events) != 1 || !strings.Contains(events[0], "SnapshotCreationFailed") {
		t.Errorf("events %q", events)
	}
	release(bed)
	eventually(bed, "gone", isGone)
	if calls := bed.Driver.CallNames(); len(calls) > 0 {
		t.Errorf("calls %q", calls)
	}
}

func TestGroupOfADriverWithoutThemIsRefusedAndGoes(t *testing.T) {
	t.Parallel()
	for name, info := range map[string]csiclient.Info{"no groups": cannotGroups(), "no snapshots at all": cannot()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, info, "v1", groupClass(nil), vgsc())
			start(bed, quick)
			bed.Eventually(func() error {
				if events := bed.Events(); len(events) != 1 || !strings.Contains(events[0], "lacks the capability CREATE_DELETE_") {
					return fmt.Errorf("events %q", events)
				}
				return nil
			})
			releaseGroup(bed, "v1")
			bed.Eventually(groupIsGone(bed, "v1"))
			if calls := bed.Driver.CallNames(); len(calls) > 0 {
				t.Errorf("calls %q", calls)
			}
		})
	}
}

// What a driver has taken when it could is not let go by one that cannot remove it,
// nor what it may have taken; what is to be kept, and the members of a group, are.
func TestContentWithASnapshotOfADriverWithoutThem(t *testing.T) {
	t.Parallel()
	taken := func(c *snapshotv1.VolumeSnapshotContent) {
		c.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: to("snap-1"), ReadyToUse: to(true)}
	}
	kept := func(c *snapshotv1.VolumeSnapshotContent) {
		c.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
	}
	annotated := func(name string) func(*snapshotv1.VolumeSnapshotContent) {
		return func(c *snapshotv1.VolumeSnapshotContent) { c.Annotations = map[string]string{name: "yes"} }
	}
	for name, test := range map[string]struct {
		content *snapshotv1.VolumeSnapshotContent
		goes    bool
	}{
		"taken":                {vsc(taken), false},
		"under way":            {vsc(annotated(marker)), false},
		"taken, to be kept":    {vsc(taken, kept), true},
		"taken with its group": {vsc(taken, annotated(memberOf)), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, cannot(), "", class(nil), test.content)
			start(bed, quick)
			bed.Eventually(func() error { return watching(bed, "volumesnapshotcontents") })
			release(bed)
			if test.goes {
				eventually(bed, "gone", isGone)
			} else {
				bed.Eventually(func() error {
					if text := strings.Join(bed.Events(), "\n"); !strings.Contains(text, "SnapshotDeleteError") || !strings.Contains(text, "CREATE_DELETE_SNAPSHOT") {
						return fmt.Errorf("events %q", text)
					}
					return nil
				})
				if c := get(bed); c == nil || len(c.Finalizers) == 0 {
					t.Errorf("content %+v", c)
				}
			}
			if calls := bed.Driver.CallNames(); len(calls) > 0 {
				t.Errorf("calls %q", calls)
			}
		})
	}
}

// Who has given no rights for snapshots beside such a driver is not asked again.
func TestDriverWithoutSnapshotsNeedsNoRightsForThem(t *testing.T) {
	t.Parallel()
	refuse := func(resource string) clienttesting.ReactionFunc {
		return func(action clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), resource, errors.New("no rights"))
		}
	}
	bed := newBed(t, cannot(), "v1", vsc())
	bed.Snapshots.PrependReactor("list", "volumesnapshotcontents", refuse("volumesnapshotcontents"))
	component, err := snapshotter.New(bed.Env, quick)
	if err != nil {
		t.Fatal(err)
	}
	if err := component.Run(bed.Ctx); !errors.Is(err, sidecar.ErrNothingToDo) || !strings.Contains(err.Error(), "CREATE_DELETE_SNAPSHOT") {
		t.Errorf("error %v", err)
	}

	bed = newBed(t, cannotGroups(), "v1", class(nil), groupClass(nil), vgsc(), vsc())
	bed.Snapshots.PrependReactor("list", "volumegroupsnapshotcontents", refuse("volumegroupsnapshotcontents"))
	serve(bed, &backend{})
	start(bed, quick)
	eventually(bed, "ready", isReady)
	if err := watching(bed, "volumegroupsnapshotcontents"); err == nil {
		t.Error("groups are watched")
	}
}

// A content that is deleted after a final error waits for its next try, and goes
// without it. The only worker is held up by another content
// meanwhile: one that is released and not deleted yet may still be tried.
func TestC089_ContentDeletedAfterAFinalErrorGoesWithoutACall(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(nil), vsc())
	hold, entered := make(chan struct{}), make(chan struct{})
	bed.Driver.Once("CreateSnapshot", sidecartest.Fail(codes.Internal, "no space"), func(context.Context, proto.Message) (proto.Message, error) {
		close(entered)
		<-hold
		return &csi.CreateSnapshotResponse{Snapshot: csiSnapshot("snap-2", true)}, nil
	})
	start(bed, snapshotter.Config{Workers: 1, RetryMin: time.Hour, RetryMax: time.Hour})
	c := eventually(bed, "failed", hasFailed)
	if _, marked := c.Annotations[marker]; marked || c.Status.SnapshotHandle != nil {
		t.Errorf("content %+v", c)
	}
	other := vsc(func(c *snapshotv1.VolumeSnapshotContent) {
		c.Name, c.UID, c.Spec.VolumeSnapshotRef.UID = "snapcontent-2", "content-uid-2", "4e5f"
	})
	if _, err := bed.Snapshots.SnapshotV1().VolumeSnapshotContents().Create(bed.Ctx, other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-entered
	release(bed)
	seen := bed.Env.Informers.Snapshots().Snapshot().V1().VolumeSnapshotContents().Lister()
	bed.Eventually(func() error {
		c, err := seen.Get("snapcontent-1")
		if err == nil && c.DeletionTimestamp == nil {
			err = errors.New("the cache has the content as it was before its deletion")
		}
		return err
	})
	close(hold)
	eventually(bed, "gone", isGone)
}
