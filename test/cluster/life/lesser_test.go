package life

import (
	"errors"
	"fmt"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// Drivers that can do little.
const (
	bareDriver   = "bare.example.com"   // makes volumes
	attachDriver = "attach.example.com" // attaches them too, and expands them
	noneDriver   = "none.example.com"   // has no controller at all
)

// lesser starts a driver with some of the capabilities.
func (b *bed) lesser(t *testing.T, name, capabilities string) *target {
	t.Helper()
	g := b.target(t, name, b.NamedPlainDriver(name, "-capabilities="+capabilities), false)
	g.slow, g.fast = map[string]string{"speed": "slow"}, map[string]string{"speed": "fast"}
	return g
}

// notCalled fails the test if the sidecar has called what a driver cannot do.
func notCalled(t *testing.T, g *target, methods ...string) {
	t.Helper()
	all := g.driver.methods()
	for _, method := range methods {
		if all[method] > 0 {
			t.Errorf("%s was called %d times by mistake", method, all[method])
		}
	}
	t.Logf("calls: %v", all)
}

// A volume of a driver without attach, topology and capacity is used as any other,
// and the driver is only asked what it can do.
func bareLife(s *scene) {
	mark := s.driver.mark()
	s.makeClass(late)
	s.claim("claim", "64Mi")
	s.pod("pod", nodes[1], "claim")
	s.runs("pod")
	volume := s.bound("claim")
	if volume.Spec.NodeAffinity != nil {
		s.t.Errorf("it can be used at %+v", volume.Spec.NodeAffinity)
	}
	made := requestOf(s.t, s.driver.since(mark, "CreateVolume")[0], &csi.CreateVolumeRequest{})
	if made.GetAccessibilityRequirements() != nil {
		s.t.Errorf("it was asked for at %v", made.GetAccessibilityRequirements())
	}
	s.noPod("pod")
	s.noAttachment()
	s.noClaim("claim")
}

// What a driver cannot do is said at the claim that asks for it.
func bareClone(s *scene) {
	s.makeClass()
	s.claim("claim", "64Mi")
	s.bound("claim")
	s.claim("clone", "64Mi", from("", "PersistentVolumeClaim", "claim"))
	s.event("clone", "ProvisioningFailed", "CLONE_VOLUME")
	s.noClaim("clone")
	s.noClaim("claim")
}

func bareAttributes(s *scene) {
	s.makeClass()
	slow := s.attributesClass("slow", s.slow)
	s.claim("claim", "64Mi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = &slow })
	s.event("claim", "ProvisioningFailed", "MODIFY_VOLUME")
	s.noClaim("claim")
}

// A claim that cannot grow stays as it is.
func bareExpand(s *scene) {
	s.makeClass()
	s.claim("claim", "64Mi")
	volume := s.bound("claim")
	s.grow("claim", "128Mi")
	s.event("claim", "ExternalExpanding", "")
	v, err := s.c.Client.CoreV1().PersistentVolumes().Get(s.t.Context(), volume.Name, metav1.GetOptions{})
	s.must(err)
	if have := v.Spec.Capacity[corev1.ResourceStorage]; have.Value() != 64<<20 {
		s.t.Errorf("the volume has %v", have.String())
	}
	s.noClaim("claim")
}

// Without PUBLISH_READONLY a driver is not asked to publish read-only.
func attachReadOnly(s *scene) { publishedReadOnly(s, false) }

// A driver without a controller makes nothing, and its volumes need not be attached.
func noneLife(s *scene) {
	s.makeClass()
	s.claim("dynamic", "64Mi")
	s.event("dynamic", "ProvisioningFailed", "CONTROLLER_SERVICE")
	s.noClaim("dynamic")
	name := s.staticVolume("by-hand", "claim")
	s.claim("claim", "64Mi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = name })
	s.bound("claim")
	s.pod("pod", nodes[0], "claim")
	s.runs("pod")
	s.noPod("pod")
	s.noAttachment()
	s.noClaim("claim")
	s.deleteVolume(name)
	s.noVolume(name)
}

// lesserScenarios are those of drivers that can do little.
func lesserScenarios() map[string][]scenario {
	return map[string][]scenario{
		bareDriver: {
			{"Life", bareLife}, {"Clone", bareClone}, {"Attributes", bareAttributes}, {"Expand", bareExpand},
		},
		attachDriver: {
			{"VolumeFirst", volumeFirst}, {"Expand", expand}, {"ExpandRefused", expandRefused},
			{"ReadOnly", attachReadOnly}, {"NeverAttached", neverAttached},
		},
		noneDriver: {{"Life", noneLife}},
	}
}

// lesserChecks are what drivers that can do little are never asked.
func lesserChecks(t *testing.T, b *bed, g *target) {
	t.Helper()
	always := []string{"GetCapacity", "ListVolumes", "ListSnapshots", "CreateSnapshot", "ControllerModifyVolume", "CreateVolumeGroupSnapshot"}
	switch g.name {
	case bareDriver:
		notCalled(t, g, append(always, "ControllerPublishVolume", "ControllerUnpublishVolume", "ControllerExpandVolume")...)
	case attachDriver:
		notCalled(t, g, always...)
	case noneDriver:
		notCalled(t, g, append(always, "ControllerGetCapabilities", "CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume")...)
	}
	list, err := b.Client.StorageV1().CSIStorageCapacities(cluster.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "csi.storage.k8s.io/drivername=" + g.name})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("capacity of %s: %v", g.name, errors.Join(err, fmt.Errorf("%d objects", len(list.Items))))
	}
}
