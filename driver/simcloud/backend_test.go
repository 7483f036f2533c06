package simcloud

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/sim/cloud"
)

// Every call made twice gives the same answer, and ends of the unknown succeed.
func TestC068_EveryCallTwice(t *testing.T) {
	t.Parallel()
	b, nodes := openBackend(t)
	twice := func(what string, call func() (any, error)) any {
		t.Helper()
		first, err := call()
		must(t, err)
		second, err := call()
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%s: first %+v, then %+v, %v", what, first, second, err)
		}
		return second
	}
	alone := func(err error) (any, error) { return nil, err }
	v := twice("create", func() (any, error) { return b.CreateVolume(ctx, csikit.CreateVolumeRequest{Name: "v"}) }).(csikit.Volume)
	twice("another size returns it as it is", func() (any, error) {
		return b.CreateVolume(ctx, csikit.CreateVolumeRequest{Name: "v", Capacity: csikit.CapacityRange{RequiredBytes: 5 << 30}})
	})
	s := twice("snapshot", func() (any, error) {
		return b.CreateSnapshot(ctx, csikit.CreateSnapshotRequest{Name: "s", SourceVolumeID: v.ID})
	}).(csikit.Snapshot)
	clone := twice("clone", func() (any, error) {
		return b.CloneVolume(ctx, csikit.CreateVolumeRequest{Name: "c", Source: &csikit.ContentSource{VolumeID: v.ID}})
	}).(csikit.Volume)
	restored := twice("restore", func() (any, error) {
		return b.RestoreSnapshot(ctx, csikit.CreateVolumeRequest{Name: "r", Source: &csikit.ContentSource{SnapshotID: s.ID}})
	}).(csikit.Volume)
	g := twice("group", func() (any, error) {
		return b.CreateGroupSnapshot(ctx, csikit.CreateGroupSnapshotRequest{Name: "g", SourceVolumeIDs: []string{v.ID, clone.ID}})
	}).(csikit.GroupSnapshot)
	attach := csikit.AttachRequest{VolumeID: v.ID, NodeID: "one"}
	twice("attach", func() (any, error) { return b.AttachVolume(ctx, attach) })
	twice("expand", func() (any, error) {
		return b.ExpandVolume(ctx, csikit.ExpandRequest{VolumeID: v.ID, Capacity: csikit.CapacityRange{RequiredBytes: 2 << 30}})
	})
	twice("modify", func() (any, error) {
		return alone(b.ModifyVolume(ctx, csikit.ModifyRequest{VolumeID: v.ID, MutableParameters: map[string]string{"iops": "500"}}))
	})
	wantError(t, "delete in use", b.DeleteVolume(ctx, csikit.VolumeRequest{VolumeID: v.ID}), csikit.ErrInUse)
	twice("detach", func() (any, error) {
		return alone(b.DetachVolume(ctx, csikit.DetachRequest{VolumeID: v.ID, NodeID: "one"}))
	})
	twice("delete group", func() (any, error) {
		return alone(b.DeleteGroupSnapshot(ctx, csikit.GroupSnapshotRequest{GroupSnapshotID: g.ID}))
	})
	twice("delete snapshot", func() (any, error) { return alone(b.DeleteSnapshot(ctx, csikit.SnapshotRequest{SnapshotID: s.ID})) })
	for _, id := range []string{v.ID, clone.ID, restored.ID, "unknown"} {
		twice("delete", func() (any, error) { return alone(b.DeleteVolume(ctx, csikit.VolumeRequest{VolumeID: id})) })
		twice("detach of the unknown", func() (any, error) {
			return alone(b.DetachVolume(ctx, csikit.DetachRequest{VolumeID: id, NodeID: "one"}))
		})
	}
	page, err := b.ListVolumes(ctx, csikit.Page{})
	left, serr := b.ListSnapshots(ctx, csikit.ListSnapshotsRequest{})
	disks, derr := nodes["one"].Disks(ctx)
	if err := errors.Join(err, serr, derr); err != nil || len(page.Volumes) != 0 || len(left.Snapshots) != 0 || len(disks) != 1 {
		t.Errorf("left: %+v %+v %d disks, %v", page, left, len(disks), err)
	}
}

func TestUnknownThings(t *testing.T) {
	t.Parallel()
	b, _ := openBackend(t)
	v := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "v"})
	for what, call := range map[string]func() error{
		"get":    func() error { _, err := b.GetVolume(ctx, csikit.VolumeRequest{VolumeID: "no"}); return err },
		"expand": func() error { _, err := b.ExpandVolume(ctx, csikit.ExpandRequest{VolumeID: "no"}); return err },
		"modify": func() error { return b.ModifyVolume(ctx, csikit.ModifyRequest{VolumeID: "no"}) },
		"health": func() error { _, err := b.VolumeHealth(ctx, csikit.VolumeRequest{VolumeID: "no"}); return err },
		"attach": func() error {
			_, err := b.AttachVolume(ctx, csikit.AttachRequest{VolumeID: "no", NodeID: "one"})
			return err
		},
		"node": func() error {
			_, err := b.AttachVolume(ctx, csikit.AttachRequest{VolumeID: v.ID, NodeID: "no"})
			return err
		},
		"snapshot": func() error { _, err := b.GetSnapshot(ctx, csikit.SnapshotRequest{SnapshotID: "no"}); return err },
		"group": func() error {
			_, err := b.GetGroupSnapshot(ctx, csikit.GroupSnapshotRequest{GroupSnapshotID: "no"})
			return err
		},
		"snapshot of": func() error {
			_, err := b.CreateSnapshot(ctx, csikit.CreateSnapshotRequest{Name: "s", SourceVolumeID: "no"})
			return err
		},
		"clone of": func() error {
			_, err := b.CloneVolume(ctx, csikit.CreateVolumeRequest{Name: "c", Source: &csikit.ContentSource{VolumeID: "no"}})
			return err
		},
		"restore of": func() error {
			_, err := b.RestoreSnapshot(ctx, csikit.CreateVolumeRequest{Name: "c", Source: &csikit.ContentSource{SnapshotID: v.ID}})
			return err
		},
		"blocks of": func() error {
			return b.AllocatedBlocks(ctx, csikit.AllocatedRequest{SnapshotID: v.ID}, func(csikit.Blocks) error { return nil })
		},
	} {
		wantError(t, what, call(), csikit.ErrNotFound)
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	b, _ := openBackend(t)
	must(t, b.CheckParameters(map[string]string{"bus": "nvme", "zone": "z", "tier": "premium", "iops": "20000"}))
	for key, value := range map[string]string{"colour": "red", "bus": "ISA", "tier": "gold", "iops": "many", "zone": ""} {
		err := b.CheckParameters(map[string]string{key: value})
		if !errors.Is(err, csikit.ErrInvalid) || !strings.Contains(err.Error(), `"`+key+`"`) {
			t.Errorf("%s=%s: %v", key, value, err)
		}
	}
	wantError(t, "bus is not mutable", b.CheckMutableParameters(map[string]string{"bus": "SCSI"}), csikit.ErrInvalid)
	must(t, b.CheckMutableParameters(map[string]string{"tier": "premium"}))
	_, err := b.CreateVolume(ctx, csikit.CreateVolumeRequest{Name: "v", Parameters: map[string]string{"zone": "nowhere"}})
	wantError(t, "unknown zone", err, csikit.ErrInvalid)
	_, err = b.CreateVolume(ctx, csikit.CreateVolumeRequest{Name: "v", MutableParameters: map[string]string{"iops": "20000"}})
	wantError(t, "iops beyond the tier", err, csikit.ErrInvalid)

	v := mustVolume(t, b, csikit.CreateVolumeRequest{
		Name: "v", Parameters: map[string]string{"bus": "nvme", "tier": "premium", "csi.storage.k8s.io/pvc/name": "x"}, MutableParameters: map[string]string{"iops": "20000"},
	})
	snapshotParameter := csikit.CreateSnapshotRequest{Name: "s", SourceVolumeID: v.ID, Parameters: map[string]string{"speed": "1"}}
	_, err = b.CreateSnapshot(ctx, snapshotParameter)
	wantError(t, "parameter of a snapshot", err, csikit.ErrInvalid)
	modify := csikit.ModifyRequest{VolumeID: v.ID, MutableParameters: map[string]string{"tier": "standard", "iops": "700", "csi.storage.k8s.io/pv/name": "x"}}
	must(t, b.ModifyVolume(ctx, modify))
	d, err := b.Cloud().Disk(ctx, v.ID)
	if err != nil || d.Bus != "NVMe" || d.Properties != (cloud.Properties{Tier: "standard", IOPS: 700}) {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct{ required, limit, least, want int64 }{
		{0, 0, 0, 1 << 30},
		{0, 100*mib + 5, 0, 100 * mib},
		{1, 0, 0, cloud.MinDiskBytes},
		{100*mib + 1, 0, 0, 101 * mib},
		{100*mib + 1, 100*mib + 2, 0, 0}, // no whole MiB between
		{100 * mib, 0, 200 * mib, 200 * mib},
		{0, 0, 200 * mib, 200 * mib},
		{100 * mib, 150 * mib, 200 * mib, 0},
		{0, 1, 0, 0},
		{1<<63 - 1, 0, 0, 0},
	} {
		got, err := sizeFor(csikit.CapacityRange{RequiredBytes: c.required, LimitBytes: c.limit}, c.least)
		if got != c.want || (c.want == 0) != errors.Is(err, csikit.ErrOutOfRange) {
			t.Errorf("%+v: %d, %v", c, got, err)
		}
	}
	b, _ := openBackend(t)
	v := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "v"})
	larger := mustVolume(t, b, csikit.CreateVolumeRequest{
		Name: "c", Source: &csikit.ContentSource{VolumeID: v.ID}, Capacity: csikit.CapacityRange{RequiredBytes: 3 << 30},
	})
	if larger.CapacityBytes != 3<<30 || larger.Source.VolumeID != v.ID {
		t.Errorf("%+v", larger)
	}
	_, err := b.ExpandVolume(ctx, csikit.ExpandRequest{VolumeID: larger.ID, Capacity: csikit.CapacityRange{LimitBytes: 2 << 30}})
	wantError(t, "shrink", err, csikit.ErrOutOfRange)
	grown, err := b.ExpandVolume(ctx, csikit.ExpandRequest{VolumeID: v.ID, Capacity: csikit.CapacityRange{RequiredBytes: 2<<30 - 5}})
	if err != nil || grown.CapacityBytes != 2<<30 || !grown.NodeExpansionNeeded {
		t.Errorf("%+v, %v", grown, err)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	b, _ := openBackend(t)
	must(t, b.Probe(ctx))
	b.dir += "-gone"
	wantError(t, "folder gone", b.Probe(ctx), csikit.ErrUnavailable)
	if _, err := New(Config{}); err == nil {
		t.Error("a cloud without folder")
	}
	for mode := csikit.SingleNodeWriter; mode <= csikit.SingleNodeMultiWriter; mode++ {
		many := mode >= csikit.MultiNodeReaderOnly && mode <= csikit.MultiNodeMultiWriter
		if err := b.CheckCapability(csikit.Capability{AccessMode: mode}); errors.Is(err, csikit.ErrInvalid) != many {
			t.Errorf("mode %d: %v", mode, err)
		}
	}
}
