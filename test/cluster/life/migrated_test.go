package life

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
)

// Volumes of a plugin that was in Kubernetes' own tree are of a driver now. Their
// objects still look like the plugin's; the names of the plain driver's volumes look
// like the cloud's.
const (
	ownPlugin      = "kubernetes.io/aws-ebs"
	migratedDriver = "ebs.csi.aws.com"
)

// tryMigrated has a sidecar work for a driver that a plugin was migrated to.
func (b *bed) tryMigrated(t *testing.T) {
	own := &bed{Cluster: b.For(t)}
	g := own.target(t, migratedDriver, own.NamedPlainDriver(migratedDriver, "-capabilities=controller,attach,expand"), false)
	sidecar := own.ControllerSidecar(g.driver.driver, sidecarFlags...)
	migrated(newScene(t, own.Cluster, g, "migrated"))
	if err := sidecar.Stop(); err != nil {
		t.Errorf("the sidecar: %v", err)
	}
}

// A claim of the plugin's class gets a volume of the driver under the plugin's name,
// which is attached, grows, and goes with its claim.
func migrated(s *scene) {
	s.makeClass(func(class *storagev1.StorageClass) { class.Provisioner = ownPlugin })
	s.claim("claim", "1Gi")
	volume := s.bound("claim")
	source := volume.Spec.AWSElasticBlockStore
	if source == nil || volume.Spec.CSI != nil || !strings.HasSuffix(source.VolumeID, "vol-1") {
		s.t.Fatalf("the volume is of %+v", volume.Spec.PersistentVolumeSource)
	}
	s.pod("pod", nodes[0], "claim")
	s.runs("pod")
	calls := s.driver.since(0, "ControllerPublishVolume")
	if len(calls) != 1 || requestOf(s.t, calls[0], &csi.ControllerPublishVolumeRequest{}).GetVolumeId() != "vol-1" {
		s.t.Errorf("%d calls: %+v", len(calls), calls)
	}
	s.grow("claim", "2Gi")
	s.grown("claim", volume.Name, "2Gi")
	s.noPod("pod")
	s.noAttachment()
	s.noClaim("claim")
	s.noVolume(volume.Name)
	s.empty()
	for _, method := range []string{"CreateVolume", "ControllerExpandVolume", "ControllerUnpublishVolume", "DeleteVolume"} {
		s.called(0, method, 1)
	}
}
