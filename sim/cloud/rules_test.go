package cloud

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	for want, requests := range map[error][]CreateRequest{
		ErrSize: {{Name: "x"}, {Name: "x", SizeBytes: MaxDiskBytes + 1}, {Name: "x", SizeBytes: 1<<63 - 1}, {Name: "x", SizeBytes: -5}},
		ErrInvalid: {
			{SizeBytes: 1 << 30}, {Name: strings.Repeat("n", NameMaxBytes+1), SizeBytes: 1 << 30}, {Name: "x", SizeBytes: 1 << 30, Bus: "ISA"},
			{Name: "x", SizeBytes: 1 << 30, Properties: Properties{Tier: "gold"}},
			{Name: "x", SizeBytes: 1 << 30, Properties: Properties{IOPS: IOPSMaxStandard + 1}},
			{Name: "x", SizeBytes: 1 << 30, Properties: Properties{IOPS: IOPSMin - 1}},
		},
		ErrNotFound: {{Name: "x", SizeBytes: 1 << 30, Zone: "nowhere"}},
	} {
		for _, r := range requests {
			if _, err := c.CreateDisk(ctx, r); !errors.Is(err, want) {
				t.Errorf("%+v: %v, want %v", r, err, want)
			}
		}
	}
	d := create(t, c, CreateRequest{Name: strings.Repeat("n", NameMaxBytes), Bus: "nvme"})
	if d.Bus != "NVMe" || d.Properties != (Properties{TierStandard, IOPSMin}) || d.Zone != DefaultZone {
		t.Errorf("%+v", d)
	}
	if _, err := c.GrowDisk(ctx, d.ID, MaxDiskBytes+1); !errors.Is(err, ErrSize) {
		t.Error(err)
	}
	if _, err := c.SnapshotDisk(ctx, d.ID, ""); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

func TestModifyAndHealth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCloud(t, dir)
	d := create(t, c, CreateRequest{Name: "a"})
	if m, err := c.ModifyDisk(ctx, d.ID, Properties{Tier: TierPremium, IOPS: 20000}); err != nil || m.Properties.IOPS != 20000 {
		t.Fatal(m, err)
	}
	for _, p := range []Properties{{Tier: TierStandard}, {IOPS: IOPSMaxPremium + 1}, {Tier: "none"}} {
		if _, err := c.ModifyDisk(ctx, d.ID, p); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if _, err := c.ModifyDisk(ctx, "no", Properties{}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	slow := Condition{Status: StatusDegraded, Reason: "Slow", Message: "a mirror is missing"}
	if err := c.SetConditions(ctx, d.ID, slow); err != nil {
		t.Fatal(err)
	}
	if err := c.SetConditions(ctx, d.ID, Condition{Status: "BAD", Reason: "x"}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openCloud(t, dir)
	got, err := c.Disk(ctx, d.ID)
	if err != nil || got.Properties != (Properties{TierPremium, 20000}) {
		t.Errorf("after the restart: %+v, %v", got, err)
	}
	if health, err := c.Health(ctx, d.ID); err != nil || !slices.Equal(health, []Condition{slow}) {
		t.Errorf("%v, %v", health, err)
	}
	if err := c.SetConditions(ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if health, err := c.Health(ctx, d.ID); err != nil || len(health) != 0 {
		t.Errorf("%v, %v", health, err)
	}
}

func TestZonesAndNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCloud(t, dir)
	if err := c.SetZones(ctx, []Zone{{Name: "east", CapacityBytes: 2 << 30}, {Name: "west"}}); err != nil {
		t.Fatal(err)
	}
	a := create(t, c, CreateRequest{Name: "a", Zone: "east"})
	b := create(t, c, CreateRequest{Name: "b", Zone: "east", SizeBytes: 512 << 20})
	if _, err := c.CreateDisk(ctx, CreateRequest{Name: "c", Zone: "east", SizeBytes: 513 << 20}); !errors.Is(err, ErrExhausted) {
		t.Errorf("more than the zone holds: %v", err)
	}
	if _, err := c.GrowDisk(ctx, b.ID, 1025<<20); !errors.Is(err, ErrExhausted) {
		t.Errorf("grown beyond the zone: %v", err)
	}
	if zones := c.Zones(ctx); zones[0].AvailableBytes != 512<<20 || zones[1].AvailableBytes != DefaultZoneBytes {
		t.Errorf("%+v", zones)
	}
	// A zone with disks stays.
	if err := c.SetZones(ctx, []Zone{{Name: "west"}}); err != nil || len(c.Zones(ctx)) != 2 {
		t.Errorf("%+v, %v", c.Zones(ctx), err)
	}
	if err := c.SetZones(ctx, []Zone{{Name: "a/b"}}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openCloud(t, dir)
	if len(c.Zones(ctx)) != 2 || create(t, c, CreateRequest{Name: "w", SizeBytes: 128 << 20}).Zone != "east" {
		t.Errorf("after the restart: %+v", c.Zones(ctx))
	}

	n := openNode(t)
	for _, node := range []Node{{Name: "far", Zone: "west"}, {Name: "near", Zone: "east", MaxDisks: 1}} {
		if err := AddNode(dir, node); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.AttachDisk(ctx, a.ID, "far", n); !errors.Is(err, ErrZone) {
		t.Errorf("attached across zones: %v", err)
	}
	if _, err := c.AttachDisk(ctx, a.ID, "near", n); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AttachDisk(ctx, b.ID, "near", n); !errors.Is(err, ErrExhausted) {
		t.Errorf("more disks than slots: %v", err)
	}
	// A node that is gone for good gives its disks back.
	if err := RemoveNode(dir, "near"); err != nil {
		t.Fatal(err)
	}
	if health, err := c.Health(ctx, a.ID); err != nil || len(health) != 1 || health[0].Reason != "NodeGone" {
		t.Errorf("%v, %v", health, err)
	}
	if err := c.DetachDisk(ctx, a.ID, "near", nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "..", "../x", `a\b`, "near"} {
		if _, err := c.Node(ctx, name); !errors.Is(err, ErrNotFound) {
			t.Errorf("node %q: %v", name, err)
		}
	}
	if err := AddNode(dir, Node{Name: "../x"}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

func TestReadOnlyAttach(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	n := openNode(t)
	d := create(t, c, CreateRequest{Name: "a"})
	for range 2 {
		if _, err := c.AttachDiskReadOnly(ctx, d.ID, "n", n); err != nil {
			t.Fatal(err)
		}
	}
	disks, err := n.Disks(ctx)
	if err != nil || len(disks) != 2 || !disks[1].Spec.WriteProtected {
		t.Errorf("%+v, %v", disks, err)
	}
	if _, err := c.AttachDisk(ctx, d.ID, "n", n); !errors.Is(err, ErrExists) {
		t.Errorf("writable where it is read-only: %v", err)
	}
}

// A page begins behind what the last one ended with, whatever came and went.
func TestPagesSurviveChanges(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	var disks []Disk
	for i := range 9 {
		disks = append(disks, create(t, c, CreateRequest{Name: strconv.Itoa(i)}))
	}
	seen := map[string]int{}
	page := Page{MaxEntries: 2}
	for round := 0; ; round++ {
		found, next, err := c.DiskPage(ctx, page, nil)
		if err != nil || len(found) > 2 {
			t.Fatal(len(found), err)
		}
		for _, d := range found {
			seen[d.Name]++
		}
		if next == "" {
			break
		}
		page.Token = next
		// The disk the token names goes, and another comes.
		if round < 3 {
			if err := c.DeleteDisk(ctx, found[1].ID); err != nil {
				t.Fatal(err)
			}
			create(t, c, CreateRequest{Name: "new" + strconv.Itoa(round)})
		}
	}
	for _, d := range disks {
		if seen[d.Name] != 1 {
			t.Errorf("disk %s seen %d times", d.Name, seen[d.Name])
		}
	}
	for _, bad := range []string{"x", "12", "12.", "x.y"} {
		if _, _, err := c.DiskPage(ctx, Page{Token: bad}, nil); !errors.Is(err, ErrToken) {
			t.Errorf("token %q: %v", bad, err)
		}
	}
	odd, _, err := c.SnapshotPage(ctx, Page{}, func(Disk) bool { return true })
	if err != nil || len(odd) != 0 {
		t.Error(odd, err)
	}
}
