package snapshotter

import (
	"context"
	"encoding/json"
	"fmt"

	groupv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	groupv1beta1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1beta1"
	groupv1beta2 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1beta2"
	clients "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	informers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// groupAPI is the API of group snapshots in the version that the cluster has.
// They differ in how the status lists the members, and in nothing else that
// matters here.
type groupAPI struct {
	patch func(ctx context.Context, name string, data []byte, subresources ...string) (runtime.Object, error)
	// membersField is the status' list of members, and memberStates whether it
	// says how they are.
	membersField string
	memberStates bool
}

// groupVersions are the versions of the API that are spoken, the newest first.
func groupVersions() []string { return []string{"v1", "v1beta2", "v1beta1"} }

// groupAPIOf gives the API in a version.
func groupAPIOf(version string, client clients.Interface) groupAPI {
	const field = "volumeSnapshotInfoList"
	merge := types.MergePatchType
	switch version {
	case "v1beta1":
		return groupAPI{membersField: "volumeSnapshotHandlePairList", patch: func(ctx context.Context, name string, data []byte, subresources ...string) (runtime.Object, error) {
			return client.GroupsnapshotV1beta1().VolumeGroupSnapshotContents().Patch(ctx, name, merge, data, metav1.PatchOptions{}, subresources...)
		}}
	case "v1beta2":
		return groupAPI{membersField: field, memberStates: true, patch: func(ctx context.Context, name string, data []byte, subresources ...string) (runtime.Object, error) {
			return client.GroupsnapshotV1beta2().VolumeGroupSnapshotContents().Patch(ctx, name, merge, data, metav1.PatchOptions{}, subresources...)
		}}
	default:
		return groupAPI{membersField: field, memberStates: true, patch: func(ctx context.Context, name string, data []byte, subresources ...string) (runtime.Object, error) {
			return client.GroupsnapshotV1().VolumeGroupSnapshotContents().Patch(ctx, name, merge, data, metav1.PatchOptions{}, subresources...)
		}}
	}
}

// groupInformers are the caches of contents and classes in a version, each of
// its factory.
func groupInformers(version string, contents, classes informers.SharedInformerFactory) (forContents, forClasses cache.SharedIndexInformer) {
	switch version {
	case "v1beta1":
		return contents.Groupsnapshot().V1beta1().VolumeGroupSnapshotContents().Informer(),
			classes.Groupsnapshot().V1beta1().VolumeGroupSnapshotClasses().Informer()
	case "v1beta2":
		return contents.Groupsnapshot().V1beta2().VolumeGroupSnapshotContents().Informer(),
			classes.Groupsnapshot().V1beta2().VolumeGroupSnapshotClasses().Informer()
	default:
		return contents.Groupsnapshot().V1().VolumeGroupSnapshotContents().Informer(),
			classes.Groupsnapshot().V1().VolumeGroupSnapshotClasses().Informer()
	}
}

// groupContentV1 gives a content of any version in the newest one.
func groupContentV1(object any) (*groupv1.VolumeGroupSnapshotContent, error) {
	if newest, ok := object.(*groupv1.VolumeGroupSnapshotContent); ok {
		return newest, nil
	}
	switch object.(type) {
	case *groupv1beta1.VolumeGroupSnapshotContent, *groupv1beta2.VolumeGroupSnapshotContent:
	default:
		return nil, fmt.Errorf("a %T is not a content of a group snapshot", object)
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("content of a group snapshot: %w", err)
	}
	newest := &groupv1.VolumeGroupSnapshotContent{}
	if err := json.Unmarshal(data, newest); err != nil {
		return nil, fmt.Errorf("content of a group snapshot: %w", err)
	}
	if oldest, ok := object.(*groupv1beta1.VolumeGroupSnapshotContent); ok && oldest.Status != nil {
		for _, pair := range oldest.Status.VolumeSnapshotHandlePairList {
			newest.Status.VolumeSnapshotInfoList = append(newest.Status.VolumeSnapshotInfoList,
				groupv1.VolumeSnapshotInfo{VolumeHandle: pair.VolumeHandle, SnapshotHandle: pair.SnapshotHandle})
		}
	}
	return newest, nil
}
