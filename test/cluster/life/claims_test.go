package life

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A claim that is bound at once, used where its volume is, and deleted: one call of
// each kind.
func claimFirst(s *scene) {
	s.notListed()
	mark := s.driver.mark()
	s.makeClass()
	s.claim("claim", "64Mi")
	volume := s.bound("claim")
	id, zone := volume.Spec.CSI.VolumeHandle, s.zoneOf(volume)
	s.pod("pod", "", "claim")
	node := s.runs("pod")
	if zone != zoneOf(node) {
		s.t.Errorf("a volume in %q is used on %s", zone, node)
	}
	s.isStored(id, node)
	s.noPod("pod")
	s.noAttachment()
	s.isStored(id)
	s.noClaim("claim")
	s.empty()
	for _, method := range []string{"CreateVolume", "ControllerPublishVolume", "ControllerUnpublishVolume", "DeleteVolume"} {
		s.called(mark, method, 1)
	}
}

// called fails the test if a method was called more or less often since a mark.
func (s *scene) called(mark int, method string, count int) {
	s.t.Helper()
	if got := len(s.driver.since(mark, method)); got != count {
		s.t.Errorf("%s was called %d times, not %d", method, got, count)
	}
}

// zoneOf is where a volume can be used, by its object.
func (s *scene) zoneOf(volume *corev1.PersistentVolume) string {
	s.t.Helper()
	affinity := volume.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) != 1 {
		s.t.Fatalf("volume %s can be used at %+v", volume.Name, affinity)
	}
	for _, one := range affinity.Required.NodeSelectorTerms[0].MatchExpressions {
		if one.Key == s.zoneKey && len(one.Values) == 1 {
			return one.Values[0]
		}
	}
	s.t.Fatalf("volume %s can be used at %+v", volume.Name, affinity)
	return ""
}

// zoneOf is where a node is.
func zoneOf(node string) string {
	for i, name := range nodes {
		if name == node {
			return zones[i]
		}
	}
	return ""
}

func (s *scene) deleteVolume(name string) {
	s.t.Helper()
	s.must(s.c.Client.CoreV1().PersistentVolumes().Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

func (s *scene) noVolume(name string) {
	s.t.Helper()
	s.gone("volume "+name, func(ctx context.Context) error {
		_, err := s.c.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

// A volume that is deleted before its claim goes from the back-end, once.
func volumeFirst(s *scene) {
	mark := s.driver.mark()
	s.makeClass()
	s.claim("claim", "64Mi")
	volume := s.bound("claim")
	s.deleteVolume(volume.Name)
	s.isStored(volume.Spec.CSI.VolumeHandle)
	s.noClaim("claim")
	s.noVolume(volume.Name)
	s.empty()
	s.called(mark, "DeleteVolume", 1)
}

// One that is to be retained is not deleted in either order.
func volumeFirstRetained(s *scene) {
	mark := s.driver.mark()
	s.makeClass(retain)
	s.claim("claim", "64Mi")
	volume := s.bound("claim")
	s.deleteVolume(volume.Name)
	s.noClaim("claim")
	s.noVolume(volume.Name)
	s.isStored(volume.Spec.CSI.VolumeHandle)
	s.called(mark, "DeleteVolume", 0)
	s.remove(volume.Spec.CSI.VolumeHandle)
}

// A retained volume is released, kept, and its object can go without it.
func retained(s *scene) {
	mark := s.driver.mark()
	s.makeClass(retain)
	s.claim("claim", "64Mi")
	volume := s.bound("claim")
	s.noClaim("claim")
	s.wait("the volume is released", func(ctx context.Context) error {
		v, err := s.c.Client.CoreV1().PersistentVolumes().Get(ctx, volume.Name, metav1.GetOptions{})
		if err == nil && v.Status.Phase != corev1.VolumeReleased {
			err = fmt.Errorf("it is %s", v.Status.Phase)
		}
		return err
	})
	s.deleteVolume(volume.Name)
	s.noVolume(volume.Name)
	s.isStored(volume.Spec.CSI.VolumeHandle)
	s.called(mark, "DeleteVolume", 0)
	s.remove(volume.Spec.CSI.VolumeHandle)
}

// store makes a volume in the back-end and returns its id.
func (s *scene) store(name string, bytes int64) string {
	s.t.Helper()
	answer, err := s.controller.CreateVolume(s.t.Context(), &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		}},
		AccessibilityRequirements: &csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: map[string]string{s.zoneKey: zones[0]}}}},
	})
	s.must(err)
	return answer.GetVolume().GetVolumeId()
}

// staticVolume makes the object of a volume of the back-end, for a claim.
func (s *scene) staticVolume(id, claim string, changes ...func(*corev1.PersistentVolume)) string {
	s.t.Helper()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + claim},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}, StorageClassName: s.name,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:               &corev1.ObjectReference{Namespace: s.name, Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: s.target.name, VolumeHandle: id}},
		},
	}
	for _, change := range changes {
		change(volume)
	}
	_, err := s.c.Client.CoreV1().PersistentVolumes().Create(s.t.Context(), volume, metav1.CreateOptions{})
	s.must(err)
	return volume.Name
}

// A volume that an administrator made: no call is made to make it, it is attached as
// any, and kept.
func static(s *scene) {
	mark := s.driver.mark()
	id := s.store("static-"+s.name, 64<<20)
	name := s.staticVolume(id, "claim")
	s.claim("claim", "64Mi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = name })
	s.bound("claim")
	s.pod("pod", nodes[0], "claim")
	s.runs("pod")
	s.isStored(id, nodes[0])
	s.noPod("pod")
	s.noAttachment()
	s.noClaim("claim")
	s.deleteVolume(name)
	s.noVolume(name)
	s.called(mark, "CreateVolume", 0)
	s.called(mark, "DeleteVolume", 0)
	s.isStored(id)
	s.remove(id)
}
