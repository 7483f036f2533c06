package simcloud

import (
	"fmt"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/cloud"
)

func at(zone string) csikit.Topology { return csikit.Topology{ZoneKey: zone} }

func TestZones(t *testing.T) {
	t.Parallel()
	n := openNode(t)
	b, err := New(Config{
		Dir: t.TempDir(), Zones: []cloud.Zone{{Name: "a", CapacityBytes: 1 << 30}, {Name: "b", CapacityBytes: 4 << 30}},
		Nodes:   []cloud.Node{{Name: "na", Zone: "a"}, {Name: "nb", Zone: "b", MaxDisks: 1}, {Name: "nc", Zone: "c"}},
		Connect: func(cloud.Node) (sim.DiskController, error) { return insideProcess{n}, nil },
	})
	must(t, err)
	defer b.Close()
	zones := b.Cloud().Zones(ctx)
	if len(zones) != 3 || zones[2].Name != "c" || zones[2].CapacityBytes != cloud.DefaultZoneBytes {
		t.Errorf("the zone that only a node names: %+v", zones)
	}
	must(t, b.Cloud().SetZones(ctx, zones[:2]))
	capacity := func(r csikit.CapacityRequest) csikit.Capacity {
		c, err := b.GetCapacity(ctx, r)
		must(t, err)
		return c
	}
	for name, c := range map[string]struct{ got, want csikit.Capacity }{
		"all":       {capacity(csikit.CapacityRequest{}), csikit.Capacity{AvailableBytes: 5 << 30, MaximumBytes: 4 << 30, MinimumBytes: cloud.MinDiskBytes}},
		"a":         {capacity(csikit.CapacityRequest{Topology: at("a")}), csikit.Capacity{AvailableBytes: 1 << 30, MaximumBytes: 1 << 30, MinimumBytes: cloud.MinDiskBytes}},
		"parameter": {capacity(csikit.CapacityRequest{Parameters: map[string]string{"zone": "b"}}), csikit.Capacity{AvailableBytes: 4 << 30, MaximumBytes: 4 << 30, MinimumBytes: cloud.MinDiskBytes}},
		"nowhere":   {capacity(csikit.CapacityRequest{Topology: at("x")}), csikit.Capacity{MinimumBytes: cloud.MinDiskBytes}},
	} {
		if c.got != c.want {
			t.Errorf("capacity %s: %+v, want %+v", name, c.got, c.want)
		}
	}
	_, err = b.CreateVolume(ctx, csikit.CreateVolumeRequest{Name: "x", Requisite: []csikit.Topology{at("x")}})
	wantError(t, "no such place", err, csikit.ErrExhausted)
	_, err = b.CreateVolume(ctx, csikit.CreateVolumeRequest{
		Name: "x", Requisite: []csikit.Topology{at("a")}, Parameters: map[string]string{"zone": "b"},
	})
	wantError(t, "parameter against place", err, csikit.ErrExhausted)
	both := []csikit.Topology{at("a"), at("b")}
	first := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "1", Requisite: both, Preferred: []csikit.Topology{at("a")}})
	second := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "2", Requisite: both, Preferred: []csikit.Topology{at("a")}})
	if first.Topology[0][ZoneKey] != "a" || second.Topology[0][ZoneKey] != "b" {
		t.Errorf("preferred zone %v, and when it is full %v", first.Topology, second.Topology)
	}
	_, err = b.CreateVolume(ctx, csikit.CreateVolumeRequest{Name: "3", Requisite: []csikit.Topology{at("a")}})
	wantError(t, "full zone", err, csikit.ErrExhausted)

	_, err = b.AttachVolume(ctx, csikit.AttachRequest{VolumeID: first.ID, NodeID: "nb"})
	wantError(t, "across zones", err, csikit.ErrPrecondition)
	_, err = b.AttachVolume(ctx, csikit.AttachRequest{VolumeID: second.ID, NodeID: "nb"})
	must(t, err)
	third := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "3"})
	_, err = b.AttachVolume(ctx, csikit.AttachRequest{VolumeID: third.ID, NodeID: "nb"})
	wantError(t, "no slot", err, csikit.ErrExhausted)
}

// Nodes are reached through their controls, and may come while the cloud is open.
func TestNodeThatComesLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := New(Config{Dir: dir})
	must(t, err)
	defer b.Close()
	v := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "v"})
	request := csikit.AttachRequest{VolumeID: v.ID, NodeID: "late"}
	_, err = b.AttachVolume(ctx, request)
	wantError(t, "unknown node", err, csikit.ErrNotFound)
	must(t, cloud.AddNode(dir, cloud.Node{Name: "late"}))
	_, err = b.AttachVolume(ctx, request)
	wantError(t, "node without control", err, csikit.ErrUnavailable)

	n, address, stop := serveNode(t)
	must(t, cloud.AddNode(dir, cloud.Node{Name: "late", Control: address}))
	published, err := b.AttachVolume(ctx, request)
	must(t, err)
	disks, err := n.Disks(ctx)
	if err != nil || len(disks) != 2 || published["page83"] != cloud.Page83(v.ID) {
		t.Fatalf("%+v, %v, %v", disks, published, err)
	}
	side, err := NewNode(NodeConfig{Control: address, MaxVolumes: 7})
	must(t, err)
	defer side.Close()
	checkHealth := func(volumeID string, conditions, storage int) {
		t.Helper()
		h, err := side.NodeVolumeHealth(ctx, volumeID)
		if conditions < 0 {
			wantError(t, "health", err, csikit.ErrUnavailable)
		} else if err != nil || len(h) != conditions {
			t.Errorf("%+v, %v", h, err)
		}
		if s, err := side.StorageHealth(ctx, nil); err != nil || len(s) != storage {
			t.Errorf("%+v, %v", s, err)
		}
	}
	checkHealth(v.ID, 0, 0)
	checkHealth("e4b9b1e8-9f0a-4f4e-8f43-8fb1a9c7a111", 1, 0)

	stop()
	checkHealth(v.ID, -1, 1)
	detach := csikit.DetachRequest{VolumeID: v.ID, NodeID: "late"}
	wantError(t, "node does not answer", b.DetachVolume(ctx, detach), csikit.ErrUnavailable)
	wantError(t, "still attached", b.DeleteVolume(ctx, csikit.VolumeRequest{VolumeID: v.ID}), csikit.ErrInUse)
	must(t, cloud.RemoveNode(dir, "late"))
	must(t, b.DetachVolume(ctx, detach))
	must(t, b.DeleteVolume(ctx, csikit.VolumeRequest{VolumeID: v.ID}))
}

func TestAttach(t *testing.T) {
	t.Parallel()
	b, nodes := openBackend(t)
	v := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "v"})
	for what, request := range map[string]csikit.AttachRequest{
		"read-only": {VolumeID: v.ID, NodeID: "one", ReadOnly: true, Capability: csikit.Capability{AccessMode: csikit.SingleNodeWriter}},
		"reader":    {VolumeID: v.ID, NodeID: "one", Capability: csikit.Capability{AccessMode: csikit.SingleNodeReaderOnly}},
	} {
		must(t, b.DetachVolume(ctx, csikit.DetachRequest{VolumeID: v.ID}))
		_, err := b.AttachVolume(ctx, request)
		must(t, err)
		if disks, err := nodes["one"].Disks(ctx); err != nil || !disks[1].Spec.WriteProtected {
			t.Errorf("%s: %+v, %v", what, disks, err)
		}
	}
	_, err := b.AttachVolume(ctx, csikit.AttachRequest{VolumeID: v.ID, NodeID: "one"})
	wantError(t, "writable where it is read-only", err, csikit.ErrExists)
	_, err = b.AttachVolume(ctx, csikit.AttachRequest{VolumeID: v.ID, NodeID: "two"})
	wantError(t, "second node", err, csikit.ErrInUse)
	must(t, b.DetachVolume(ctx, csikit.DetachRequest{VolumeID: v.ID, NodeID: "two"})) // it is not there
	if got, err := b.GetVolume(ctx, csikit.VolumeRequest{VolumeID: v.ID}); err != nil || fmt.Sprint(got.NodeIDs) != "[one]" {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, b.DetachVolume(ctx, csikit.DetachRequest{VolumeID: v.ID})) // from all nodes
	_, err = b.AttachVolume(ctx, csikit.AttachRequest{VolumeID: v.ID, NodeID: "two"})
	must(t, err)
}

func TestNodeSource(t *testing.T) {
	t.Parallel()
	b, _ := openBackend(t)
	v := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "v"})
	side, err := NewNode(NodeConfig{Zone: "z", MaxVolumes: 7})
	must(t, err)
	defer side.Close()
	page83 := cloud.Page83(v.ID)
	for _, request := range []csikit.NodeSourceRequest{
		{VolumeID: v.ID}, {VolumeID: v.ID, Ending: true}, {VolumeID: v.ID, PublishContext: map[string]string{"page83": page83}},
	} {
		source, err := side.NodeSource(ctx, request)
		if err != nil || source.Disk == nil || source.Disk.Page83 != page83 || len(page83) != 32 {
			t.Errorf("%+v: %+v, %v", request, source, err)
		}
	}
	_, err = side.NodeSource(ctx, csikit.NodeSourceRequest{VolumeID: v.ID, PublishContext: map[string]string{"page83": "60"}})
	wantError(t, "attached as another", err, csikit.ErrInvalid)
	_, err = side.NodeSource(ctx, csikit.NodeSourceRequest{VolumeID: "no"})
	wantError(t, "no id of a disk", err, csikit.ErrNotFound)
	if source, err := side.NodeSource(ctx, csikit.NodeSourceRequest{VolumeID: "no", Ending: true}); err != nil || source.Disk != nil {
		t.Errorf("%+v, %v", source, err)
	}
	if topology, err := side.NodeTopology(ctx); err != nil || topology[ZoneKey] != "z" {
		t.Error(topology, err)
	}
	if most, err := side.MaxVolumesPerNode(ctx); err != nil || most != 7 {
		t.Error(most, err)
	}
	if h, err := side.NodeVolumeHealth(ctx, v.ID); err != nil || h != nil {
		t.Error(h, err)
	}
	if _, err := NewNode(NodeConfig{MaxVolumes: -1}); err == nil {
		t.Error("a negative limit")
	}
}
