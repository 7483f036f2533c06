package provisioner

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// TestClaimWhoseVolumeNameIsTaken is told of, and gets its volume when the name is
// free. Short names, of which another claim may have the same, are the usual cause.
func TestClaimWhoseVolumeNameIsTaken(t *testing.T) {
	t.Parallel()
	own := func(pv *v1.PersistentVolume) { pv.Spec.ClaimRef = &v1.ObjectReference{UID: "pvc-data"} }
	for name, test := range map[string]struct {
		change func(*v1.PersistentVolume)
		told   bool
	}{
		"by another claim's volume":   {func(*v1.PersistentVolume) {}, true},
		"by its own, yet to be bound": {own, false},
		"by a volume without claim":   {func(pv *v1.PersistentVolume) { pv.Spec.ClaimRef = nil }, true},
		"by one made for it, no uid": {func(pv *v1.PersistentVolume) {
			pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: sidecartest.Namespace, Name: "data"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken := sidecartest.PV(pvName, func(pv *v1.PersistentVolume) {
				pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: sidecartest.Namespace, Name: "other", UID: "other"}
			}, test.change)
			b := newBed(t, able(), claim("data"), taken, sidecartest.StorageClass(sidecartest.ClassName))
			b.start()
			if test.told {
				b.wait("told", func() bool { return b.saw("Warning ProvisioningFailed Volume object " + pvName) })
			}
			b.others()
			if !test.told && len(b.Events()) > 0 {
				t.Errorf("events %q", b.Events())
			}
			if err := b.Kube.Tracker().Delete(v1.SchemeGroupVersion.WithResource("persistentvolumes"), "", pvName); err != nil {
				t.Fatal(err)
			}
			b.writes("create persistentvolumes pvc-then", "create persistentvolumes "+pvName)
		})
	}
}
