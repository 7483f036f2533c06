package life

import (
	"context"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// attach makes an attachment as the attach-detach controller does.
func (s *scene) attach(name, node, volume string) {
	s.t.Helper()
	_, err := s.c.Client.StorageV1().VolumeAttachments().Create(s.t.Context(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: s.target.name, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}, metav1.CreateOptions{})
	s.must(err)
}

// attached waits until an attachment is, or is not any more.
func (s *scene) attached(name string, yes bool) {
	s.t.Helper()
	s.wait(fmt.Sprintf("attached=%v", yes), func(ctx context.Context) error {
		a, err := s.c.Client.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
		if err == nil && a.Status.Attached != yes {
			err = fmt.Errorf("%+v", a.Status)
		}
		return err
	})
}

// detach deletes an attachment.
func (s *scene) detach(name string) {
	s.t.Helper()
	attachments := s.c.Client.StorageV1().VolumeAttachments()
	s.must(attachments.Delete(s.t.Context(), name, metav1.DeleteOptions{}))
	s.gone("attachment "+name, func(ctx context.Context) error {
		_, err := attachments.Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

// notListed keeps the sidecar from comparing attachments with the driver's listing until
// the scene ends: one that the listing has and whose status is only being written is
// asked for once more, which is no harm but spoils a count of calls.
func (s *scene) notListed() {
	s.driver.refuse(s.t, "ListVolumes", codes.Unavailable, "not now")
}

// A volume is published read-only when its object says so.
func readOnly(s *scene) { publishedReadOnly(s, true) }

// publishedReadOnly attaches a volume whose object says that it is only to be read. The
// driver is told so, or not.
func publishedReadOnly(s *scene, isTold bool) {
	s.notListed()
	s.makeClass()
	id := s.store("readonly-"+s.name, 64<<20)
	name := s.staticVolume(id, "claim", func(volume *corev1.PersistentVolume) { volume.Spec.CSI.ReadOnly = true })
	s.claim("claim", "64Mi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = name })
	s.bound("claim")
	mark := s.driver.mark()
	s.pod("pod", nodes[0], "claim")
	s.runs("pod")
	calls := s.driver.since(mark, "ControllerPublishVolume")
	if len(calls) != 1 || requestOf(s.t, calls[0], &csi.ControllerPublishVolumeRequest{}).GetReadonly() != isTold {
		s.t.Errorf("%d calls, read-only is to be said: %v", len(calls), isTold)
	}
	s.noPod("pod")
	s.noAttachment()
	s.noClaim("claim")
	s.deleteVolume(name)
	s.noVolume(name)
	s.remove(id)
}

// A node that is deleted while a volume is attached to it: the attachment says that it
// is not when the back-end says so, nobody attaches it there again, and the volume can
// go to another node.
func nodeDeleted(s *scene) {
	s.makeClass()
	s.claim("claim", "64Mi")
	volume := s.bound("claim")
	zone := s.zoneOf(volume)
	stays := nodes[0]
	if zone == zones[1] {
		stays = nodes[1]
	}
	node := "gone-" + s.name
	// The back-end knows the node by another name than the cluster.
	s.c.FakeWindowsNode(node, cluster.NodeOptions{Labels: map[string]string{s.zoneKey: zone}, Drivers: []storagev1.CSINodeDriver{
		{Name: s.target.name, NodeID: stays, TopologyKeys: []string{s.zoneKey}}}})
	s.attach("va-"+s.name, node, volume.Name)
	s.attached("va-"+s.name, true)
	s.isStored(volume.Spec.CSI.VolumeHandle, stays)
	mark := s.driver.mark()
	s.must(s.c.Client.CoreV1().Nodes().Delete(s.t.Context(), node, metav1.DeleteOptions{}))
	_, err := s.controller.ControllerUnpublishVolume(s.t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: volume.Spec.CSI.VolumeHandle, NodeId: stays})
	s.must(err)
	s.attached("va-"+s.name, false)
	s.called(mark, "ControllerPublishVolume", 0)
	s.pod("pod", stays, "claim")
	s.runs("pod")
	s.noPod("pod")
	s.detach("va-" + s.name)
	s.noClaim("claim")
}

// An attachment that never came about can be deleted, and its volume too.
func neverAttached(s *scene) {
	s.makeClass()
	s.claim("claim", "64Mi")
	volume := s.bound("claim")
	s.driver.refuse(s.t, "ControllerPublishVolume", codes.Internal, "no bus is free")
	name := "va-" + s.name
	s.attach(name, nodes[0], volume.Name)
	s.wait("the attachment says what is wrong", func(ctx context.Context) error {
		a, err := s.c.Client.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
		if err == nil && a.Status.AttachError == nil {
			err = errors.New("it does not")
		}
		return err
	})
	s.noClaim("claim")
	s.detach(name)
	s.noVolume(volume.Name)

	s.attach(name, nodes[0], "nothing")
	s.wait("the attachment says what is missing", func(ctx context.Context) error {
		a, err := s.c.Client.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
		if err == nil && a.Status.AttachError == nil {
			err = errors.New("it does not")
		}
		return err
	})
	s.detach(name)
}
