package snapshotter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	groupv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	groupv1beta1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1beta1"
	groupv1beta2 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1beta2"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

const (
	groupPatch       = "patch volumegroupsnapshotcontents groupcontent-1"
	groupStatusPatch = "patch volumegroupsnapshotcontents/status groupcontent-1"
)

// inVersion gives a group object in another version of the API.
func inVersion(t *testing.T, object runtime.Object, version string) runtime.Object {
	t.Helper()
	var other runtime.Object
	_, isClass := object.(*groupv1.VolumeGroupSnapshotClass)
	switch {
	case version == "v1":
		return object
	case version == "v1beta1" && isClass:
		other = &groupv1beta1.VolumeGroupSnapshotClass{}
	case version == "v1beta1":
		other = &groupv1beta1.VolumeGroupSnapshotContent{}
	case isClass:
		other = &groupv1beta2.VolumeGroupSnapshotClass{}
	default:
		other = &groupv1beta2.VolumeGroupSnapshotContent{}
	}
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, other)
	}
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// getGroup gives the content in a version, as its fields, nil if there is none.
func getGroup(bed *sidecartest.Bed, version string) map[string]any {
	bed.Helper()
	object, err := bed.Snapshots.Tracker().Get(schema.GroupVersionResource{Group: "groupsnapshot.storage.k8s.io", Version: version, Resource: "volumegroupsnapshotcontents"}, "", "groupcontent-1")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		bed.Fatal(err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		bed.Fatal(err)
	}
	return fields
}

func groupIsReady(bed *sidecartest.Bed, version string) func() error {
	return func() error {
		group := getGroup(bed, version)
		status, _ := group["status"].(map[string]any)
		meta, _ := group["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		if _, marked := annotations[groupMarker]; status["readyToUse"] != true || marked {
			return fmt.Errorf("group is not ready: %v", group)
		}
		return nil
	}
}

func groupIsGone(bed *sidecartest.Bed, version string) func() error {
	return func() error {
		if group := getGroup(bed, version); group != nil {
			return fmt.Errorf("group is there: %v", group)
		}
		return nil
	}
}

func releaseGroup(bed *sidecartest.Bed, version string) {
	bed.Helper()
	const name = "groupcontent-1"
	data := []byte(`{"metadata":{"annotations":{"` + groupDeleted + `":"yes"}}}`)
	var err, err2 error
	switch version {
	case "v1":
		client := bed.Snapshots.GroupsnapshotV1().VolumeGroupSnapshotContents()
		_, err = client.Patch(bed.Ctx, name, types.MergePatchType, data, metav1.PatchOptions{})
		err2 = client.Delete(bed.Ctx, name, metav1.DeleteOptions{})
	case "v1beta2":
		client := bed.Snapshots.GroupsnapshotV1beta2().VolumeGroupSnapshotContents()
		_, err = client.Patch(bed.Ctx, name, types.MergePatchType, data, metav1.PatchOptions{})
		err2 = client.Delete(bed.Ctx, name, metav1.DeleteOptions{})
	default:
		client := bed.Snapshots.GroupsnapshotV1beta1().VolumeGroupSnapshotContents()
		_, err = client.Patch(bed.Ctx, name, types.MergePatchType, data, metav1.PatchOptions{})
		err2 = client.Delete(bed.Ctx, name, metav1.DeleteOptions{})
	}
	if err != nil || err2 != nil {
		bed.Fatal(err, err2)
	}
}

func TestGroupSnapshotLivesInEveryVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1", "v1beta2", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(), version, inVersion(t, groupClass(map[string]string{"tier": "cold"}), version), inVersion(t, vgsc(), version))
			store := serve(bed, &backend{looks: 2})
			start(bed, quick)
			bed.Eventually(groupIsReady(bed, version))
			settled(bed)
			want := []string{groupPatch, groupStatusPatch, groupPatch, groupStatusPatch}
			if diff := cmp.Diff(want, writes(bed)); diff != "" {
				t.Errorf("writes: %s", diff)
			}
			checkMembers(t, getGroup(bed, version)["status"].(map[string]any), version)
			request := bed.Driver.Calls("CreateVolumeGroupSnapshot")[0].Request.(*csi.CreateVolumeGroupSnapshotRequest)
			if request.GetName() != "groupsnapshot-9f8e-7d6c" || !cmp.Equal(request.GetSourceVolumeIds(), []string{"vol-1", "vol-2"}) || !cmp.Equal(request.GetParameters(), map[string]string{"tier": "cold"}) {
				t.Errorf("request %v", request)
			}
			releaseGroup(bed, version)
			bed.Eventually(groupIsGone(bed, version))
			settled(bed)
			removal := bed.Driver.Calls("DeleteVolumeGroupSnapshot")
			if len(removal) != 1 || !cmp.Equal(removal[0].Request.(*csi.DeleteVolumeGroupSnapshotRequest).GetSnapshotIds(), []string{"group-1-1", "group-1-2"}) {
				t.Errorf("removals %v", removal)
			}
			if handles, made, removed := store.state(); len(handles) != 0 || made != 1 || len(removed) != 1 {
				t.Errorf("back-end holds %q, made %d, removed %q", handles, made, removed)
			}
		})
	}
}

// checkMembers checks how the status of a ready group lists its members.
func checkMembers(t *testing.T, status map[string]any, version string) {
	t.Helper()
	list, state := "volumeSnapshotInfoList", map[string]any{"readyToUse": true, "restoreSize": int64(1 << 30), "creationTime": int64(1700000000e9)}
	if version == "v1beta1" {
		list, state = "volumeSnapshotHandlePairList", map[string]any{}
	}
	var want []any
	for _, n := range []string{"1", "2"} {
		one := map[string]any{"volumeHandle": "vol-" + n, "snapshotHandle": "group-1-" + n}
		for key, value := range state {
			one[key] = value
		}
		want = append(want, one)
	}
	if diff := cmp.Diff(want, status[list]); diff != "" {
		t.Errorf("members: %s", diff)
	}
	if status["volumeGroupSnapshotHandle"] != "group-1" || status["creationTime"] != "2023-11-14T22:13:20Z" {
		t.Errorf("status %v", status)
	}
}

func TestGroupSnapshotUsesItsOwnSecretsAndMetadata(t *testing.T) {
	t.Parallel()
	secret := func(name string) *v1.Secret {
		return &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name}, Data: map[string][]byte{"key": []byte(name)}}
	}
	const prefix = "csi.storage.k8s.io/group-snapshotter-"
	bed := newBed(t, can(), "v1", vgsc(), secret("all-key"), secret("groupcontent-1-look"), groupClass(map[string]string{
		prefix + "secret-name": "${volumegroupsnapshot.name}-key", prefix + "secret-namespace": "${volumegroupsnapshot.namespace}",
		prefix + "get-secret-name": "${volumegroupsnapshotcontent.name}-look", prefix + "get-secret-namespace": "apps",
	}))
	serve(bed, &backend{looks: 1})
	config := quick
	config.ExtraCreateMetadata, config.GroupNamePrefix, config.GroupNameUIDLength = true, "g", 4
	start(bed, config)
	bed.Eventually(groupIsReady(bed, "v1"))
	releaseGroup(bed, "v1")
	bed.Eventually(groupIsGone(bed, "v1"))
	made := bed.Driver.Calls("CreateVolumeGroupSnapshot")[0].Request.(*csi.CreateVolumeGroupSnapshotRequest)
	looked := bed.Driver.Calls("GetVolumeGroupSnapshot")[0].Request.(*csi.GetVolumeGroupSnapshotRequest)
	removed := bed.Driver.Calls("DeleteVolumeGroupSnapshot")[0].Request.(*csi.DeleteVolumeGroupSnapshotRequest)
	got := []string{made.GetName(), made.GetSecrets()["key"], looked.GetSecrets()["key"], removed.GetSecrets()["key"]}
	if diff := cmp.Diff([]string{"g-9f8e", "all-key", "groupcontent-1-look", "all-key"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{
		"csi.storage.k8s.io/volumegroupsnapshot/name": "all", "csi.storage.k8s.io/volumegroupsnapshot/namespace": "apps",
		"csi.storage.k8s.io/volumegroupsnapshotcontent/name": "groupcontent-1",
	}, made.GetParameters()); diff != "" {
		t.Errorf("parameters: %s", diff)
	}
}

func TestGroupSnapshotThatWasThereBefore(t *testing.T) {
	t.Parallel()
	old := vgsc()
	old.Spec.Source = groupv1.VolumeGroupSnapshotContentSource{GroupSnapshotHandles: &groupv1.GroupSnapshotHandles{VolumeGroupSnapshotHandle: "old", VolumeSnapshotHandles: []string{"old-1", "old-2"}}}
	bed := newBed(t, can(), "v1", groupClass(nil), old)
	serve(bed, &backend{})
	start(bed, quick)
	bed.Eventually(groupIsReady(bed, "v1"))
	releaseGroup(bed, "v1")
	bed.Eventually(groupIsGone(bed, "v1"))
	settled(bed)
	if diff := cmp.Diff([]string{"GetVolumeGroupSnapshot", "DeleteVolumeGroupSnapshot"}, bed.Driver.CallNames()); diff != "" {
		t.Errorf("calls: %s", diff)
	}
	removal := bed.Driver.Calls("DeleteVolumeGroupSnapshot")[0].Request.(*csi.DeleteVolumeGroupSnapshotRequest)
	if removal.GetGroupSnapshotId() != "old" || !cmp.Equal(removal.GetSnapshotIds(), []string{"old-1", "old-2"}) {
		t.Errorf("removal %v", removal)
	}
}

func TestGroupFailuresAreTold(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "v1", groupClass(nil), vgsc())
	serve(bed, &backend{})
	bed.Driver.Once("CreateVolumeGroupSnapshot", sidecartest.Fail(codes.FailedPrecondition, "not consistent"))
	bed.Driver.Once("DeleteVolumeGroupSnapshot", sidecartest.Fail(codes.Internal, "stuck"))
	start(bed, quick)
	bed.Eventually(groupIsReady(bed, "v1"))
	releaseGroup(bed, "v1")
	bed.Eventually(groupIsGone(bed, "v1"))
	var reasons []string
	for _, event := range bed.Events() {
		reasons = append(reasons, strings.Fields(event)[1])
	}
	if diff := cmp.Diff([]string{"GroupSnapshotCreationFailed", "GroupSnapshotDeleteError"}, reasons); diff != "" {
		t.Errorf("events: %s", diff)
	}
}

// A group without the snapshot of one of its volumes is none, and can be removed
// all the same.
func TestGroupThatLacksAMemberIsNotReady(t *testing.T) {
	t.Parallel()
	partial := csiGroup("group-1", true)
	partial.Snapshots = partial.GetSnapshots()[:1]
	for name, mended := range map[string]bool{"and is when it is whole": true, "and goes as it is": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newBed(t, can(), "v1", groupClass(nil), vgsc())
			serve(bed, &backend{})
			answer := sidecartest.Reply(&csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: partial})
			if mended {
				bed.Driver.Once("CreateVolumeGroupSnapshot", answer, answer)
			} else {
				bed.Driver.On("CreateVolumeGroupSnapshot", answer)
			}
			start(bed, quick)
			bed.Eventually(func() error {
				if events := bed.Events(); len(events) != 1 || !strings.Contains(events[0], "group snapshot group-1 has 1 snapshots of 2 volumes") {
					return fmt.Errorf("events %q", events)
				}
				return nil
			})
			if mended {
				bed.Eventually(groupIsReady(bed, "v1"))
			}
			releaseGroup(bed, "v1")
			bed.Eventually(groupIsGone(bed, "v1"))
			removal := bed.Driver.Calls("DeleteVolumeGroupSnapshot")[0].Request.(*csi.DeleteVolumeGroupSnapshotRequest)
			if want := map[bool]int{true: 2, false: 1}[mended]; removal.GetGroupSnapshotId() != "group-1" || len(removal.GetSnapshotIds()) != want {
				t.Errorf("removal %v, want %d members", removal, want)
			}
		})
	}
}

// C089 holds for groups as well.
func TestC089_GroupDeletedWhileItsCreationTimesOutIsRemoved(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "v1", groupClass(nil), vgsc())
	store := serve(bed, &backend{slow: 1 << 30})
	start(bed, quick)
	calls := func(n int) func() error {
		return func() error {
			if calls := bed.Driver.CallNames("CreateVolumeGroupSnapshot"); len(calls) < n {
				return fmt.Errorf("%d calls, not %d", len(calls), n)
			}
			return nil
		}
	}
	bed.Eventually(calls(3))
	releaseGroup(bed, "v1")
	bed.Eventually(calls(len(bed.Driver.Calls()) + 2))
	store.mu.Lock()
	store.slow = 0
	store.mu.Unlock()
	bed.Eventually(groupIsGone(bed, "v1"))
	if handles, made, removed := store.state(); len(handles) != 0 || made != 1 || !cmp.Equal(removed, []string{"group-1"}) {
		t.Errorf("back-end holds %q, made %d, removed %q", handles, made, removed)
	}
}

// Where the kinds are missing they are not watched, and found when they come.
func TestKindsThatAreMissingAreWaitedFor(t *testing.T) {
	t.Parallel()
	bed := newBed(t, can(), "", class(nil), groupClass(nil), vgsc(), vsc())
	serve(bed, &backend{})
	config := quick
	config.KindsCheck = 20 * time.Millisecond
	// The list of kinds is read outside the lock of the store in memory, so it
	// changes within a request of the one who reads it.
	var installed atomic.Bool
	install := sync.OnceFunc(func() {
		bed.Snapshots.Resources = append(bed.Snapshots.Resources, &metav1.APIResourceList{
			GroupVersion: "groupsnapshot.storage.k8s.io/v1",
			APIResources: []metav1.APIResource{{Name: "volumegroupsnapshotcontents"}, {Name: "volumegroupsnapshotclasses"}},
		})
	})
	bed.Snapshots.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		if installed.Load() {
			install()
		}
		return false, nil, nil
	})
	start(bed, config)
	eventually(bed, "ready", isReady) // single snapshots do not wait
	if err := watching(bed, "volumegroupsnapshotcontents"); err == nil {
		t.Error("kinds that are not served are watched")
	}
	installed.Store(true)
	bed.Eventually(groupIsReady(bed, "v1"))
}

func TestGroupsAreLeftAloneWhereTheyAreTurnedOff(t *testing.T) {
	t.Parallel()
	config := quick
	config.Groups = false
	bed := newBed(t, can(), "v1", class(nil), groupClass(nil), vgsc(), vsc())
	serve(bed, &backend{})
	start(bed, config)
	eventually(bed, "ready", isReady)
	settled(bed)
	for _, action := range bed.Snapshots.Actions() {
		if action.GetResource().Group == "groupsnapshot.storage.k8s.io" {
			t.Errorf("%s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
}
