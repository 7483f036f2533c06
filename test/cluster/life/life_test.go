package life

import (
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// Zones of the two drivers.
const (
	simcloudZone = "topology." + cluster.DriverName + "/zone"
	plainZone    = "topology.plain.example.com/zone"
)

// sidecarFlags let the sidecar do all it can, and look around soon.
var sidecarFlags = []string{
	"--provisioner-enable-capacity", "--provisioner-capacity-ownerref-level=-1", "--provisioner-capacity-poll-interval=2s",
	"--attacher-reconcile-sync=2s", "--snapshotter-enable-volume-group-snapshots", "--provisioner-extra-create-metadata",
	"--provisioner-controller-publish-readonly",
	// A call that takes long on a machine with much else to do is not made twice.
	"--provisioner-timeout=1m", "--attacher-timeout=1m", "--resizer-timeout=1m",
}

// scenario is a scene that drivers are put through.
type scenario struct {
	name string
	run  func(*scene)
}

// scenarios are those of drivers with all capabilities.
var scenarios = []scenario{
	{"ClaimFirst", claimFirst},
	{"C078_VolumeFirst", volumeFirst},
	{"C078_VolumeFirstRetained", volumeFirstRetained},
	{"Retain", retained},
	{"Static", static},
	{"LateBinding", lateBinding},
	{"AllowedTopologies", allowedTopologies},
	{"C081_NodeWithoutDriver", nodeWithoutDriver},
	{"Capacity", capacity},
	{"Expand", expand},
	{"C087_ExpandRefused", expandRefused},
	{"Attributes", attributes},
	{"Copies", copies},
	{"RetainedSnapshot", retainedSnapshot},
	{"Group", group},
	{"ReadOnly", readOnly},
	{"C084_NeverAttached", neverAttached},
	{"C085_NodeDeleted", nodeDeleted},
}

// The same scenes with both drivers, whose sidecars have upstream's rights and no more.
func TestLife(t *testing.T) {
	t.Parallel()
	b := &bed{Cluster: cluster.Start(t, cluster.Options{SnapshotController: true, Flags: map[string][]string{
		"snapshot-controller": {"--feature-gates=CSIVolumeGroupSnapshot=true"},
	}})}
	for _, name := range nodes {
		b.storages = append(b.storages, b.Storage(name))
	}
	full := []*target{b.simcloud(t), b.plain(t)}
	bare := b.lesser(t, bareDriver, "controller")
	lesser := []*target{bare, b.lesser(t, attachDriver, "controller,attach,expand"), b.lesser(t, noneDriver, "")}
	b.nodes(t)
	all := slices.Concat(full, lesser)
	for _, g := range all {
		b.ControllerSidecar(g.driver.driver, sidecarFlags...)
	}
	b.driverObjects(t, bare)
	t.Run("drivers", func(t *testing.T) {
		for _, g := range full {
			b.play(t, g, scenarios)
		}
		for _, g := range lesser {
			b.play(t, g, lesserScenarios()[g.name])
		}
	})
	for _, g := range lesser {
		lesserChecks(t, b, g)
	}
	b.checkDriverObjects(t, bare)
	t.Run("idle", func(t *testing.T) { b.idle(t, all) })
	notForbidden(t, b.Cluster)
}

// play puts a driver through scenes, one after the other, beside other drivers.
func (b *bed) play(t *testing.T, g *target, scenes []scenario) {
	t.Run(g.name, func(t *testing.T) {
		t.Parallel()
		for _, one := range scenes {
			t.Run(one.name, func(t *testing.T) {
				s := newScene(t, b.Cluster, g, strings.ReplaceAll(one.name, "_", "-"))
				one.run(s)
				s.empty()
			})
		}
	})
}

// notForbidden fails the test if a sidecar has asked for more than it may.
func notForbidden(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	count := map[string]int{}
	for _, r := range c.Requests(cluster.AccountUser(cluster.Namespace, cluster.SidecarAccount)) {
		if r.Code == 403 || r.Code == 401 {
			t.Errorf("forbidden: %+v", r)
		}
		count[r.Verb+" "+r.Resource]++
	}
	t.Logf("requests: %v", count)
}
