package snapshotter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	groupv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
	"github.com/csi-windows/csi-windows/sidecar/snapshotter"
)

const (
	marker         = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"
	beingDeleted   = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"
	finalizer      = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
	secretName     = "snapshot.storage.kubernetes.io/deletion-secret-name"
	secretSpace    = "snapshot.storage.kubernetes.io/deletion-secret-namespace"
	memberOf       = "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle"
	groupMarker    = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-created"
	groupDeleted   = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-deleted"
	groupFinalizer = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshotcontent-bound-protection"
)

// quick has retries follow at once.
var quick = snapshotter.Config{Workers: 1, RetryMin: time.Millisecond, RetryMax: 5 * time.Millisecond, Timeout: time.Minute, Groups: true}

// can is what a driver says of itself, with more controller capabilities.
func can(more ...csi.ControllerServiceCapability_RPC_Type) csiclient.Info {
	info := csiclient.Info{
		Controller: map[csi.ControllerServiceCapability_RPC_Type]bool{csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT: true},
		GroupController: map[csi.GroupControllerServiceCapability_RPC_Type]bool{
			csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT: true,
		},
	}
	for _, one := range more {
		info.Controller[one] = true
	}
	return info
}

// newBed makes a bed whose API server serves the kinds of snapshots, and those
// of groups in one version.
func newBed(t *testing.T, info csiclient.Info, groupVersion string, objects ...runtime.Object) *sidecartest.Bed {
	t.Helper()
	bed := sidecartest.New(t, info, objects...)
	bed.Snapshots.Resources = []*metav1.APIResourceList{{
		GroupVersion: "snapshot.storage.k8s.io/v1",
		APIResources: []metav1.APIResource{{Name: "volumesnapshotcontents"}, {Name: "volumesnapshotclasses"}},
	}}
	if groupVersion != "" {
		bed.Snapshots.Resources = append(bed.Snapshots.Resources, &metav1.APIResourceList{
			GroupVersion: "groupsnapshot.storage.k8s.io/" + groupVersion,
			APIResources: []metav1.APIResource{{Name: "volumegroupsnapshotcontents"}, {Name: "volumegroupsnapshotclasses"}},
		})
	}
	return bed
}

func start(bed *sidecartest.Bed, config snapshotter.Config) (stop func()) {
	bed.Helper()
	component, err := snapshotter.New(bed.Env, config)
	if err != nil {
		bed.Fatal(err)
	}
	return bed.Run(component)
}

func to[T any](value T) *T { return &value }

// class is a class of the driver.
func class(parameters map[string]string) *snapshotv1.VolumeSnapshotClass {
	return &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: "daily"}, Driver: sidecartest.DriverName,
		Parameters: parameters, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}
}

// vsc is a content as the snapshot-controller makes it for a snapshot of
// volume "vol-1", with its finalizer.
func vsc(changes ...func(*snapshotv1.VolumeSnapshotContent)) *snapshotv1.VolumeSnapshotContent {
	c := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-1", UID: "content-uid", Finalizers: []string{finalizer}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef:       v1.ObjectReference{Kind: "VolumeSnapshot", Name: "snap", Namespace: "apps", UID: "0a1b-2c3d"},
			DeletionPolicy:          snapshotv1.VolumeSnapshotContentDelete,
			Driver:                  sidecartest.DriverName,
			VolumeSnapshotClassName: to("daily"),
			Source:                  snapshotv1.VolumeSnapshotContentSource{VolumeHandle: to("vol-1")},
		},
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

// given makes a content one of a snapshot that was there before.
func given(handle string) func(*snapshotv1.VolumeSnapshotContent) {
	return func(c *snapshotv1.VolumeSnapshotContent) {
		c.Spec.Source = snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &handle}
	}
}

func annotated(name, value string) func(*snapshotv1.VolumeSnapshotContent) {
	return func(c *snapshotv1.VolumeSnapshotContent) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, name, value) }
}

func retained(c *snapshotv1.VolumeSnapshotContent) {
	c.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
}

// taken makes a content one whose snapshot is recorded.
func taken(handle string, ready bool) func(*snapshotv1.VolumeSnapshotContent) {
	return func(c *snapshotv1.VolumeSnapshotContent) {
		c.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &handle, ReadyToUse: &ready, CreationTime: to(int64(1)), RestoreSize: to(int64(5))}
	}
}

// deleted makes a content one that is deleted, with its snapshot if bound.
func deleted(c *snapshotv1.VolumeSnapshotContent) {
	c.DeletionTimestamp = to(metav1.NewTime(time.Unix(1, 0)))
	if c.Spec.VolumeSnapshotRef.UID != "" {
		annotated(beingDeleted, "yes")(c)
	}
}

func vgsc() *groupv1.VolumeGroupSnapshotContent {
	return &groupv1.VolumeGroupSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "groupcontent-1", UID: "group-uid", Finalizers: []string{groupFinalizer}},
		Spec: groupv1.VolumeGroupSnapshotContentSpec{
			VolumeGroupSnapshotRef:       v1.ObjectReference{Kind: "VolumeGroupSnapshot", Name: "all", Namespace: "apps", UID: "9f8e-7d6c"},
			DeletionPolicy:               snapshotv1.VolumeSnapshotContentDelete,
			Driver:                       sidecartest.DriverName,
			VolumeGroupSnapshotClassName: to("nightly"),
			Source:                       groupv1.VolumeGroupSnapshotContentSource{VolumeHandles: []string{"vol-1", "vol-2"}},
		},
	}
}

func groupClass(parameters map[string]string) *groupv1.VolumeGroupSnapshotClass {
	return &groupv1.VolumeGroupSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Driver: sidecartest.DriverName,
		Parameters: parameters, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}
}

// backend is storage with snapshots, behind the bed's driver.
type backend struct {
	mu        sync.Mutex
	snapshots map[string]string // handle by name
	made      int
	removed   []string
	// looks is how many looks a snapshot needs until it is ready.
	looks int
	// slow is how many calls take a snapshot and end without an answer.
	slow int
}

var errSlow = status.Error(codes.DeadlineExceeded, "still at it")

// serve has a driver keep snapshots.
func serve(bed *sidecartest.Bed, b *backend) *backend {
	b.snapshots = map[string]string{}
	bed.Driver.On("CreateSnapshot", func(_ context.Context, request proto.Message) (proto.Message, error) {
		handle, ready, err := b.take(request.(*csi.CreateSnapshotRequest).GetName(), "snap")
		return &csi.CreateSnapshotResponse{Snapshot: csiSnapshot(handle, ready)}, err
	})
	bed.Driver.On("DeleteSnapshot", func(_ context.Context, request proto.Message) (proto.Message, error) {
		b.remove(request.(*csi.DeleteSnapshotRequest).GetSnapshotId())
		return &csi.DeleteSnapshotResponse{}, nil
	})
	bed.Driver.On("ListSnapshots", func(_ context.Context, request proto.Message) (proto.Message, error) {
		handle := request.(*csi.ListSnapshotsRequest).GetSnapshotId()
		return &csi.ListSnapshotsResponse{Entries: []*csi.ListSnapshotsResponse_Entry{{Snapshot: csiSnapshot(handle, b.look())}}}, nil
	})
	bed.Driver.On("GetSnapshot", func(_ context.Context, request proto.Message) (proto.Message, error) {
		return &csi.GetSnapshotResponse{Snapshot: csiSnapshot(request.(*csi.GetSnapshotRequest).GetSnapshotId(), b.look())}, nil
	})
	bed.Driver.On("CreateVolumeGroupSnapshot", func(_ context.Context, request proto.Message) (proto.Message, error) {
		handle, ready, err := b.take(request.(*csi.CreateVolumeGroupSnapshotRequest).GetName(), "group")
		return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: csiGroup(handle, ready)}, err
	})
	bed.Driver.On("GetVolumeGroupSnapshot", func(_ context.Context, request proto.Message) (proto.Message, error) {
		return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: csiGroup(request.(*csi.GetVolumeGroupSnapshotRequest).GetGroupSnapshotId(), b.look())}, nil
	})
	bed.Driver.On("DeleteVolumeGroupSnapshot", func(_ context.Context, request proto.Message) (proto.Message, error) {
		b.remove(request.(*csi.DeleteVolumeGroupSnapshotRequest).GetGroupSnapshotId())
		return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
	})
	return b
}

func csiSnapshot(handle string, ready bool) *csi.Snapshot {
	return &csi.Snapshot{SnapshotId: handle, SourceVolumeId: "vol-1", ReadyToUse: ready, SizeBytes: 1 << 30, CreationTime: &timestamppb.Timestamp{Seconds: 1700000000}}
}

func csiGroup(handle string, ready bool) *csi.VolumeGroupSnapshot {
	one, two := csiSnapshot(handle+"-1", true), csiSnapshot(handle+"-2", ready)
	two.SourceVolumeId = "vol-2"
	return &csi.VolumeGroupSnapshot{GroupSnapshotId: handle, ReadyToUse: ready, Snapshots: []*csi.Snapshot{one, two}, CreationTime: one.GetCreationTime()}
}

func (b *backend) take(name, kind string) (handle string, ready bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	handle, ok := b.snapshots[name]
	if !ok {
		b.made++
		handle = fmt.Sprintf("%s-%d", kind, b.made)
		b.snapshots[name] = handle
	}
	if b.slow > 0 {
		b.slow--
		return "", false, errSlow
	}
	if ok && b.looks > 0 {
		b.looks--
	}
	return handle, b.looks == 0, nil
}

func (b *backend) look() (ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looks = max(0, b.looks-1)
	return b.looks == 0
}

func (b *backend) remove(handle string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removed = append(b.removed, handle)
	for name, one := range b.snapshots {
		if one == handle {
			delete(b.snapshots, name)
		}
	}
}

// state is what the back-end holds and did.
func (b *backend) state() (handles []string, made int, removed []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, handle := range b.snapshots {
		handles = append(handles, handle)
	}
	slices.Sort(handles)
	return handles, b.made, slices.Clone(b.removed)
}

// get gives the content as the API server has it, nil if it has none.
func get(bed *sidecartest.Bed) *snapshotv1.VolumeSnapshotContent {
	bed.Helper()
	c, err := bed.Snapshots.SnapshotV1().VolumeSnapshotContents().Get(bed.Ctx, "snapcontent-1", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		bed.Fatal(err)
	}
	return c
}

// eventually waits for a state of the content.
func eventually(bed *sidecartest.Bed, wanted string, check func(*snapshotv1.VolumeSnapshotContent) bool) *snapshotv1.VolumeSnapshotContent {
	bed.Helper()
	var c *snapshotv1.VolumeSnapshotContent
	bed.Eventually(func() error {
		if c = get(bed); !check(c) {
			return fmt.Errorf("content is not %s: %+v", wanted, c)
		}
		return nil
	})
	return c
}

func isGone(c *snapshotv1.VolumeSnapshotContent) bool { return c == nil }

func isReady(c *snapshotv1.VolumeSnapshotContent) bool {
	_, marked := c.Annotations[marker]
	return c.Status != nil && c.Status.ReadyToUse != nil && *c.Status.ReadyToUse && !marked
}

func hasFailed(c *snapshotv1.VolumeSnapshotContent) bool {
	return c.Status != nil && c.Status.Error != nil
}

// release deletes the content as the snapshot-controller does with its
// snapshot: first the annotation, then the deletion.
func release(bed *sidecartest.Bed) {
	bed.Helper()
	patch(bed, `{"metadata":{"annotations":{"`+beingDeleted+`":"yes"}}}`)
	remove(bed)
}

func remove(bed *sidecartest.Bed) {
	bed.Helper()
	if err := bed.Snapshots.SnapshotV1().VolumeSnapshotContents().Delete(bed.Ctx, "snapcontent-1", metav1.DeleteOptions{}); err != nil {
		bed.Fatal(err)
	}
}

func patch(bed *sidecartest.Bed, data string, subresources ...string) {
	bed.Helper()
	_, err := bed.Snapshots.SnapshotV1().VolumeSnapshotContents().Patch(bed.Ctx, "snapcontent-1", types.MergePatchType, []byte(data), metav1.PatchOptions{}, subresources...)
	if err != nil {
		bed.Fatal(err)
	}
}

// settled waits until the component has handled all that was there, and does
// nothing more: a content made now has been let go, which one worker does last,
// and then no step is taken for a while.
func settled(bed *sidecartest.Bed) {
	bed.Helper()
	client := bed.Snapshots.SnapshotV1().VolumeSnapshotContents()
	last := vsc(deleted, retained, func(c *snapshotv1.VolumeSnapshotContent) {
		c.Name, c.UID, c.Spec.VolumeSnapshotClassName = lastContent, types.UID(fmt.Sprint(time.Now().UnixNano())), nil
		c.Labels = map[string]string{"snapshot.storage.kubernetes.io/managed-by": "node-1"}
	})
	if _, err := client.Create(bed.Ctx, last, metav1.CreateOptions{}); err != nil {
		bed.Fatal(err)
	}
	steps, since := -1, time.Now()
	bed.Eventually(func() error {
		if _, err := client.Get(bed.Ctx, lastContent, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the last content is there: %w", err)
		}
		if now := bed.Steps(); now != steps {
			steps, since = now, time.Now()
		}
		if time.Since(since) < 30*time.Millisecond {
			return errors.New("something is done still")
		}
		return nil
	})
}

const lastContent = "snapcontent-last"

// writes are the writes of the component and the test, without those that
// settled needs.
func writes(bed *sidecartest.Bed) []string {
	return slices.DeleteFunc(bed.Writes(), func(write string) bool { return strings.HasSuffix(write, lastContent) })
}
