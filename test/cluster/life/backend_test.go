package life

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stored are the volumes of the back-end, by id.
func (s *scene) stored(ctx context.Context) (map[string]*csi.ListVolumesResponse_Entry, error) {
	answer, err := s.controller.ListVolumes(ctx, &csi.ListVolumesRequest{})
	if err != nil {
		return nil, err
	}
	all := map[string]*csi.ListVolumesResponse_Entry{}
	for _, entry := range answer.GetEntries() {
		all[entry.GetVolume().GetVolumeId()] = entry
	}
	return all, nil
}

// isStored fails the test if a volume is not as wanted in the back-end: there, and
// attached to the nodes.
func (s *scene) isStored(id string, nodes ...string) {
	s.t.Helper()
	all, err := s.stored(s.t.Context())
	s.must(err)
	if all[id] == nil || fmt.Sprint(all[id].GetStatus().GetPublishedNodeIds()) != fmt.Sprint(nodes) {
		s.t.Errorf("volume %s is to be attached to %v: %v", id, nodes, all[id])
	}
}

// remove removes a volume from the back-end.
func (s *scene) remove(id string) {
	s.t.Helper()
	_, err := s.controller.DeleteVolume(s.t.Context(), &csi.DeleteVolumeRequest{VolumeId: id})
	s.must(err)
}

// attachments are those of the driver.
func (s *scene) attachments(ctx context.Context) (own []storagev1.VolumeAttachment, err error) {
	list, err := s.c.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Spec.Attacher == s.target.name {
			own = append(own, list.Items[i])
		}
	}
	return own, nil
}

// volumes are those of the driver.
func (s *scene) volumes(ctx context.Context) (own []corev1.PersistentVolume, err error) {
	list, err := s.c.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if source := list.Items[i].Spec.CSI; source != nil && source.Driver == s.target.name {
			own = append(own, list.Items[i])
		}
	}
	return own, nil
}

// noAttachment waits until nothing of the driver is attached.
func (s *scene) noAttachment() {
	s.t.Helper()
	s.wait("everything is detached", func(ctx context.Context) error {
		all, err := s.attachments(ctx)
		if err == nil && len(all) > 0 {
			err = fmt.Errorf("%s: %+v", all[0].Name, all[0].Status)
		}
		return err
	})
}

// empty waits until there is nothing of the driver in the cluster, and fails if there
// is anything in the back-end then.
func (s *scene) empty() {
	s.t.Helper()
	s.wait("nothing is left", func(ctx context.Context) error {
		attachments, err := s.attachments(ctx)
		if err != nil {
			return err
		}
		volumes, err := s.volumes(ctx)
		if err != nil {
			return err
		}
		contents := s.contents(ctx)
		if len(attachments)+len(volumes)+len(contents) == 0 {
			return nil
		}
		text := fmt.Sprintf("%d attachments, contents %v", len(attachments), contents)
		for i := range volumes {
			v := &volumes[i]
			text += fmt.Sprintf(", volume %s %s %v %s", v.Name, v.Status.Phase, v.Finalizers, s.events(ctx, v.Name))
		}
		return fmt.Errorf("%s", text)
	})
	all, err := s.stored(s.t.Context())
	s.must(err)
	for id := range all {
		s.t.Errorf("volume %s is left in the back-end", id)
	}
	snapshots, err := s.controller.ListSnapshots(s.t.Context(), &csi.ListSnapshotsRequest{})
	s.must(err)
	for _, one := range snapshots.GetEntries() {
		s.t.Errorf("snapshot %s is left in the back-end", one.GetSnapshot().GetSnapshotId())
	}
}
