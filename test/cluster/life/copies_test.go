package life

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// from has a claim ask for the content of a snapshot or of another claim.
func from(group, kind, name string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: kind, Name: name}
		if group != "" {
			claim.Spec.DataSource.APIGroup = &group
		}
	}
}

// sourceOf is what the last volume was made of.
func (s *scene) sourceOf(mark int) *csi.VolumeContentSource {
	s.t.Helper()
	calls := s.driver.since(mark, "CreateVolume")
	if len(calls) == 0 {
		s.t.Fatal("no volume was made")
	}
	return requestOf(s.t, calls[len(calls)-1], &csi.CreateVolumeRequest{}).GetVolumeContentSource()
}

// handleOf is the id of a snapshot in the back-end.
func (s *scene) handleOf(name string) string {
	s.t.Helper()
	object, err := s.of(snapshotKind).Get(s.t.Context(), name, metav1.GetOptions{})
	s.must(err)
	bound, _, err := unstructured.NestedString(object.Object, "status", "boundVolumeSnapshotContentName")
	s.must(err)
	content, err := s.of(contentKind).Get(s.t.Context(), bound, metav1.GetOptions{})
	s.must(err)
	handle, _, err := unstructured.NestedString(content.Object, "status", "snapshotHandle")
	s.must(err)
	return handle
}

// A snapshot is taken, a volume made of it and another one of that one; each goes
// without the others.
func copies(s *scene) {
	mark := s.driver.mark()
	s.makeClass()
	s.snapshotClass(snapshotClassKind, "VolumeSnapshotClass", "Delete")
	s.claim("claim", "64Mi")
	s.bound("claim")
	s.snapshot("snapshot", "claim")
	s.ready(snapshotKind, "snapshot")
	s.claim("restored", "64Mi", from(snapshotKind.Group, "VolumeSnapshot", "snapshot"))
	restored := s.bound("restored")
	if id := s.sourceOf(mark).GetSnapshot().GetSnapshotId(); id == "" || id != s.handleOf("snapshot") {
		s.t.Errorf("it was made of snapshot %q", id)
	}
	s.claim("clone", "64Mi", from("", "PersistentVolumeClaim", "restored"))
	s.bound("clone")
	if id := s.sourceOf(mark).GetVolume().GetVolumeId(); id != restored.Spec.CSI.VolumeHandle {
		s.t.Errorf("it was made of volume %q", id)
	}
	s.noClaim("claim")
	s.noClaim("restored")
	s.unmake(snapshotKind, "snapshot")
	s.noClaim("clone")
	s.empty()
	for _, method := range []string{"CreateSnapshot", "DeleteSnapshot"} {
		s.called(mark, method, 1)
	}
	s.called(mark, "CreateVolume", 3)
	s.called(mark, "DeleteVolume", 3)
}

// A snapshot that is to be retained stays in the back-end.
func retainedSnapshot(s *scene) {
	s.makeClass()
	s.snapshotClass(snapshotClassKind, "VolumeSnapshotClass", "Retain")
	s.claim("claim", "64Mi")
	s.bound("claim")
	s.snapshot("snapshot", "claim")
	s.ready(snapshotKind, "snapshot")
	handle := s.handleOf("snapshot")
	s.unmake(snapshotKind, "snapshot")
	left, err := s.of(contentKind).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	for i := range left.Items {
		if driver, _, _ := unstructured.NestedString(left.Items[i].Object, "spec", "driver"); driver == s.target.name {
			s.unmake(contentKind, left.Items[i].GetName())
		}
	}
	s.noClaim("claim")
	answer, err := s.controller.ListSnapshots(s.t.Context(), &csi.ListSnapshotsRequest{SnapshotId: handle})
	if err != nil || len(answer.GetEntries()) != 1 {
		s.t.Errorf("the snapshot %s: %v, %v", handle, answer, err)
	}
	_, err = s.controller.DeleteSnapshot(s.t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: handle})
	s.must(err)
}

// Snapshots of several volumes are taken at once, and go at once.
func group(s *scene) {
	mark := s.driver.mark()
	s.makeClass()
	s.snapshotClass(snapshotClassKind, "VolumeSnapshotClass", "Delete")
	s.snapshotClass(groupClassKind, "VolumeGroupSnapshotClass", "Delete")
	for _, name := range []string{"one", "two"} {
		s.claim(name, "64Mi", func(claim *corev1.PersistentVolumeClaim) { claim.Labels = map[string]string{"of": "group"} })
		s.bound(name)
	}
	s.make(groupKind, `{apiVersion: groupsnapshot.storage.k8s.io/v1, kind: VolumeGroupSnapshot, metadata: {name: group},
 spec: {volumeGroupSnapshotClassName: %s, source: {selector: {matchLabels: {of: group}}}}}`, s.name)
	s.ready(groupKind, "group")
	var members []string
	s.wait("there are two snapshots", func(ctx context.Context) error {
		list, err := s.of(snapshotKind).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != 2 {
			err = fmt.Errorf("%d snapshots", len(list.Items))
		}
		members = nil
		for i := range list.Items {
			members = append(members, list.Items[i].GetName())
		}
		return err
	})
	for _, member := range members {
		s.ready(snapshotKind, member)
	}
	s.claim("restored", "64Mi", from(snapshotKind.Group, "VolumeSnapshot", members[0]))
	s.bound("restored")
	s.unmake(groupKind, "group")
	for _, name := range []string{"one", "two", "restored"} {
		s.noClaim(name)
	}
	s.empty()
	s.called(mark, "CreateVolumeGroupSnapshot", 1)
	s.called(mark, "DeleteVolumeGroupSnapshot", 1)
	s.called(mark, "CreateSnapshot", 0)
}
