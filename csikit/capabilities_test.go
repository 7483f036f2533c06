package csikit_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
)

// least is a Backend, or a NodeBackend, and no more.
type (
	least     struct{ csikit.Backend }
	leastNode struct{ csikit.NodeBackend }
)

// oneNode refuses the modes that count writers.
type oneNode struct{}

func (oneNode) CheckCapability(c csikit.Capability) error {
	if c.AccessMode != csikit.SingleNodeWriter {
		return csikit.ErrInvalid
	}
	return nil
}

// placed is a NodeTopology. (Interface and method have one name, so the interface cannot
// be embedded.)
type placed struct{}

func (placed) NodeTopology(context.Context) (csikit.Topology, error) { return nil, nil }

// said are the names of all capabilities of a driver, in order.
func said(t *testing.T, config csikit.Config) []string {
	t.Helper()
	config.Name, config.Version = "test.example.com", "1"
	if config.NodeBackend != nil {
		config.NodeID, config.Node = "node-1", kittest.NewNode()
	}
	driver, err := csikit.New(config)
	if err != nil {
		t.Fatal(err)
	}
	services := driver.Services()
	var names []string
	plugin, err := services.Identity.GetPluginCapabilities(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range plugin.GetCapabilities() {
		if c.GetService() != nil {
			names = append(names, c.GetService().GetType().String())
		} else {
			names = append(names, c.GetVolumeExpansion().GetType().String())
		}
	}
	if services.Controller != nil {
		answer, _ := services.Controller.ControllerGetCapabilities(context.Background(), nil)
		for _, c := range answer.GetCapabilities() {
			names = append(names, c.GetRpc().GetType().String())
		}
	}
	if services.GroupController != nil {
		answer, _ := services.GroupController.GroupControllerGetCapabilities(context.Background(), nil)
		for _, c := range answer.GetCapabilities() {
			names = append(names, c.GetRpc().GetType().String())
		}
	}
	if services.SnapshotMetadata != nil {
		names = append(names, "(SnapshotMetadata)")
	}
	if services.Node != nil {
		answer, _ := services.Node.NodeGetCapabilities(context.Background(), nil)
		for _, c := range answer.GetCapabilities() {
			names = append(names, "node "+c.GetRpc().GetType().String())
		}
	}
	slices.Sort(names)
	return names
}

func TestCapabilitiesFollowFromTheBackend(t *testing.T) {
	t.Parallel()
	b := kittest.NewBackend()
	const always = "CONTROLLER_SERVICE CREATE_DELETE_VOLUME GET_VOLUME "
	const base = always + "SINGLE_NODE_MULTI_WRITER "
	for name, test := range map[string]struct {
		backend csikit.Backend
		want    string
	}{
		"nothing more": {least{b}, base},
		"CapabilityChecker": {struct {
			least
			oneNode
		}{}, always},
		"Attacher": {struct {
			least
			csikit.Attacher
		}{}, base + "PUBLISH_UNPUBLISH_VOLUME PUBLISH_READONLY"},
		"VolumeLister": {struct {
			least
			csikit.VolumeLister
		}{}, base + "LIST_VOLUMES"},
		"VolumeLister and Attacher": {struct {
			least
			csikit.VolumeLister
			csikit.Attacher
		}{}, base + "LIST_VOLUMES LIST_VOLUMES_PUBLISHED_NODES PUBLISH_UNPUBLISH_VOLUME PUBLISH_READONLY"},
		"CapacityReporter": {struct {
			least
			csikit.CapacityReporter
		}{}, base + "GET_CAPACITY"},
		"Expander": {struct {
			least
			csikit.Expander
		}{}, base + "EXPAND_VOLUME ONLINE"},
		"Modifier": {struct {
			least
			csikit.Modifier
		}{}, base + "MODIFY_VOLUME"},
		"Snapshotter": {struct { // CSI: who makes snapshots restores them
			least
			csikit.Snapshotter
		}{}, base},
		"Snapshotter and SnapshotRestorer": {struct {
			least
			csikit.Snapshotter
			csikit.SnapshotRestorer
		}{}, base + "CREATE_DELETE_SNAPSHOT GET_SNAPSHOT"},
		"SnapshotPlacer": {struct {
			least
			csikit.Snapshotter
			csikit.SnapshotRestorer
			csikit.SnapshotPlacer
		}{}, base + "CREATE_DELETE_SNAPSHOT GET_SNAPSHOT SNAPSHOT_ACCESSIBILITY_CONSTRAINTS"},
		"SnapshotLister": {struct {
			least
			csikit.SnapshotLister
		}{}, base + "LIST_SNAPSHOTS"},
		"Cloner": {struct {
			least
			csikit.Cloner
		}{}, base + "CLONE_VOLUME"},
		"GroupSnapshotter": {struct {
			least
			csikit.GroupSnapshotter
		}{}, base + "GROUP_CONTROLLER_SERVICE CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT"},
		"HealthReporter": {struct {
			least
			csikit.HealthReporter
		}{}, base + "GET_VOLUME_HEALTH LIST_VOLUME_HEALTH"},
		"SnapshotDiffer": {struct {
			least
			csikit.SnapshotDiffer
		}{}, base + "SNAPSHOT_METADATA_SERVICE (SnapshotMetadata)"},
		"NodeTopology": {struct {
			least
			placed
		}{}, base + "VOLUME_ACCESSIBILITY_CONSTRAINTS"},
	} {
		want := strings.Fields(test.want)
		slices.Sort(want)
		if got := said(t, csikit.Config{Backend: test.backend}); !slices.Equal(got, want) {
			t.Errorf("%s: the driver says\n %v, want\n %v", name, got, want)
		}
	}
}

func TestCapabilitiesFollowFromTheNodeBackend(t *testing.T) {
	t.Parallel()
	b := kittest.NewBackend()
	const always = "ONLINE nodeSTAGE_UNSTAGE_VOLUME nodeGET_VOLUME_STATS nodeEXPAND_VOLUME nodeGET_VOLUME_HEALTH "
	const base = always + "nodeSINGLE_NODE_MULTI_WRITER "
	for name, test := range map[string]struct {
		backend csikit.NodeBackend
		want    string
	}{
		"nothing more": {leastNode{b}, base},
		"CapabilityChecker": {struct {
			leastNode
			oneNode
		}{}, always},
		"NodeTopology": {struct {
			leastNode
			placed
		}{}, base + "VOLUME_ACCESSIBILITY_CONSTRAINTS"},
		"NodeStorageHealth": {struct {
			leastNode
			csikit.NodeStorageHealth
		}{}, base + "nodeGET_STORAGE_HEALTH"},
		"NodeLimiter": {struct {
			leastNode
			csikit.NodeLimiter
		}{}, base},
		"NodeHealth": {struct {
			leastNode
			csikit.NodeHealth
		}{}, base},
	} {
		want := strings.Fields(test.want)
		for i := range want {
			want[i] = strings.Replace(want[i], "node", "node ", 1)
		}
		slices.Sort(want)
		if got := said(t, csikit.Config{NodeBackend: test.backend}); !slices.Equal(got, want) {
			t.Errorf("%s: the driver says\n %v, want\n %v", name, got, want)
		}
	}
}

// A backend with everything says everything there is in CSI, but for the group of a
// Linux file system.
func TestABackendWithEverythingSaysEverything(t *testing.T) {
	t.Parallel()
	b := kittest.NewBackend()
	got := said(t, csikit.Config{Backend: b, NodeBackend: b})
	var want []string
	for number, name := range csi.PluginCapability_Service_Type_name {
		if number != 0 {
			want = append(want, name)
		}
	}
	for number, name := range csi.ControllerServiceCapability_RPC_Type_name {
		if number != 0 {
			want = append(want, name)
		}
	}
	for number, name := range csi.NodeServiceCapability_RPC_Type_name {
		if number != 0 && name != "VOLUME_MOUNT_GROUP" {
			want = append(want, "node "+name)
		}
	}
	want = append(want, "ONLINE", "CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT", "(SnapshotMetadata)")
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the driver says\n %v, want\n %v", got, want)
	}
}
