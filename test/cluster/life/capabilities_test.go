package life

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// set are the optional capabilities of a driver, by the plain driver's names.
type set map[string]bool

// optional are all of them, with those that one means nothing without.
var optional = map[string][]string{
	"controller": nil, // which makes volumes
	"attach":     nil, "readonly": {"attach"}, "list": {"attach"}, "published": {"attach", "list"},
	"expand": nil, "node-expand": nil, "modify": nil, "clone": nil, "topology": nil, "capacity": nil,
	"snapshot": nil, "list-snapshots": {"snapshot"}, "get-snapshot": {"snapshot"}, "group": {"snapshot"},
	"get-volume": nil, "multi-writer": nil, "stage": nil,
}

// alone is a driver that makes volumes and has one capability beside.
func alone(capability string) set {
	has := set{"controller": true, capability: true}
	for _, one := range optional[capability] {
		has[one] = true
	}
	return has
}

// without is a driver that has all capabilities but one. What means nothing without it
// is there all the same, and is not to be believed.
func without(capability string) set {
	has := set{"service": true} // one that makes no volumes can do the rest
	for one := range optional {
		has[one] = one != capability
	}
	return has
}

// sets are those that are tried, by the names of their drivers.
func sets() map[string]set {
	all := map[string]set{}
	for capability := range optional {
		all["only-"+capability] = alone(capability)
		all["no-"+capability] = without(capability)
	}
	all["static"] = set{"service": true, "attach": true}
	return all
}

func (has set) String() string {
	var names []string
	for name, yes := range has {
		if yes {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// What controllers can do for a driver.
func (has set) reconciles() bool { return has["attach"] && has["list"] && has["published"] }
func (has set) asksForSnaps() bool {
	return has["snapshot"] && (has["get-snapshot"] || has["list-snapshots"])
}
func (has set) takesGroups() bool   { return has["group"] && has["snapshot"] }
func (has set) expandsAtAll() bool  { return has["expand"] || has["node-expand"] }
func (has set) asksTheNode() bool   { return !has["expand"] }
func (has set) hasController() bool { return has["controller"] || has["service"] }

// methods are what a driver is asked: all of it, and nothing else.
func (has set) methods() []string {
	all := []string{"GetPluginInfo", "GetPluginCapabilities", "Probe"}
	for _, one := range []struct {
		yes     bool
		methods []string
	}{
		{has.hasController(), []string{"ControllerGetCapabilities"}},
		{has["controller"], []string{"CreateVolume", "DeleteVolume"}},
		{has["attach"], []string{"ControllerPublishVolume", "ControllerUnpublishVolume"}},
		{has.reconciles(), []string{"ListVolumes"}},
		{has.asksTheNode(), []string{"NodeGetCapabilities"}},
		{has["expand"], []string{"ControllerExpandVolume"}},
		{has["modify"], []string{"ControllerModifyVolume"}},
		{has["capacity"], []string{"GetCapacity"}},
		{has["snapshot"], []string{"CreateSnapshot", "DeleteSnapshot"}},
		{has["snapshot"] && has["get-snapshot"], []string{"GetSnapshot"}},
		{has.asksForSnaps() && !has["get-snapshot"], []string{"ListSnapshots"}},
		{has["group"], []string{"GroupControllerGetCapabilities"}},
		{has.takesGroups(), []string{"CreateVolumeGroupSnapshot", "DeleteVolumeGroupSnapshot"}},
	} {
		if one.yes {
			all = append(all, one.methods...)
		}
	}
	slices.Sort(all)
	return all
}

// Drivers with each optional capability alone, and with all but each: what is there is
// called and works, what is not there is never called, what needs it is refused or
// rests, and everything goes in the end.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	b := &bed{Cluster: cluster.Start(t, cluster.Options{SnapshotController: true, Flags: map[string][]string{
		"snapshot-controller":     {"--feature-gates=CSIVolumeGroupSnapshot=true"},
		"kube-controller-manager": {"--kube-api-qps=200", "--kube-api-burst=400", "--pvclaimbinder-sync-period=3s"},
	}})}
	all := sets()
	names := slices.Sorted(maps.Keys(all))
	for i, node := range nodes {
		options := cluster.NodeOptions{
			Labels: map[string]string{plainZone: zones[i]}, Migrated: []string{ownPlugin},
			Drivers: []storagev1.CSINodeDriver{{Name: migratedDriver, NodeID: node}},
		}
		for _, name := range names {
			driver := storagev1.CSINodeDriver{Name: domain(name), NodeID: node}
			if all[name]["topology"] {
				driver.TopologyKeys = []string{plainZone}
			}
			options.Drivers = append(options.Drivers, driver)
		}
		b.FakeWindowsNode(node, options)
	}
	t.Run("drivers", func(t *testing.T) {
		t.Run("migrated", func(t *testing.T) {
			t.Parallel()
			b.tryMigrated(t)
		})
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b.tryCapabilities(t, name, all[name])
			})
		}
	})
	notForbidden(t, b.Cluster)
}

func domain(name string) string { return name + ".example.com" }

// tryCapabilities has a sidecar work for a driver with some capabilities.
func (b *bed) tryCapabilities(t *testing.T, name string, has set) {
	own := &bed{Cluster: b.For(t)}
	g := own.target(t, domain(name), own.NamedPlainDriver(domain(name), "-capabilities="+has.String()), has["capacity"])
	g.slow, g.fast = map[string]string{"speed": "slow"}, map[string]string{"speed": "fast"}
	g.onNode = has["node-expand"]
	if has["topology"] {
		g.zoneKey = plainZone
	}
	sidecar := own.ControllerSidecar(g.driver.driver, sidecarFlags...)
	trial := &trial{scene: newScene(t, own.Cluster, g, "life"), has: has}
	trial.run()
	if err := sidecar.Stop(); err != nil {
		t.Errorf("the sidecar: %v", err)
	}
	called := slices.Sorted(maps.Keys(g.driver.methods()))
	if want := has.methods(); fmt.Sprint(called) != fmt.Sprint(want) {
		t.Errorf("with %v the driver was asked\n%v, not\n%v", has, called, want)
	}
}
