package provisioner

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/csi-windows/csi-windows/sidecar/attacher"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRunAgain: a component that lost its lease gets it again. What the run
// before registered at the shared caches is gone, and works once.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t, able(), sidecartest.StorageClass(sidecartest.ClassName))
	p, err := New(b.Env, b.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		stop := b.Run(p)
		b.addClaim(name, name)
		b.wait("made", func() bool { return slices.Contains(b.Writes(), "create persistentvolumes pvc-"+name) })
		// A run that begins with an older cache asks for the volume once more, rightly.
		b.wait("seen", func() bool {
			_, exists, _ := b.Env.Informers.Kube().Core().V1().PersistentVolumes().Informer().GetStore().GetByKey("pvc-" + name)
			return exists
		})
		stop()
		if count := len(b.Driver.Calls()); count != len(b.Writes()) {
			t.Errorf("%d calls for %d volumes", count, len(b.Writes()))
		}
	}
	b.addClaim("late", "late")
	time.Sleep(20 * time.Millisecond) // nothing is to happen
	if calls := len(b.Driver.Calls()); calls != 3 {
		t.Errorf("%d CSI calls, one of them after the end", calls)
	}
}

func TestNamesAgreeWithTheAttacher(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{sidecartest.DriverName, "example.com/Driver", "ends-", "ends.", "under_score"} {
		if got, want := attacherFinalizer(driver), attacher.FinalizerName(driver); got != want {
			t.Errorf("%s: %s, the attacher says %s", driver, got, want)
		}
	}
}

func TestSettingsOutOfTheirLimits(t *testing.T) {
	t.Parallel()
	b := newBed(t, able())
	for field, config := range map[string]Config{
		"WorkerThreads":            {WorkerThreads: -1},
		"CloningProtectionThreads": {CloningProtectionThreads: -1},
		"RetryMax":                 {RetryMin: time.Minute, RetryMax: time.Second},
		"Timeout":                  {Timeout: -1},
		"VolumeNamePrefix":         {VolumeNamePrefix: "PVC_"}, // no object could be saved
		"VolumeNameUUIDLength":     {VolumeNameUUIDLength: 33},
		"NodeDeployment.NodeName":  {NodeDeployment: &NodeDeployment{}},
		"NodeDeployment.MaxDelay":  {NodeDeployment: &NodeDeployment{NodeName: "n", MaxDelay: 1}},
	} {
		if _, err := New(b.Env, config); err == nil || !hasText(err, field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
