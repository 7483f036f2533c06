package simcloud

import (
	"fmt"
	"slices"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/sim/cloud"
)

func TestLists(t *testing.T) {
	t.Parallel()
	b, _ := openBackend(t)
	var want, snapshots []string
	for i := range 5 {
		v := mustVolume(t, b, csikit.CreateVolumeRequest{Name: fmt.Sprint(i)})
		s, err := b.CreateSnapshot(ctx, csikit.CreateSnapshotRequest{Name: fmt.Sprint(i), SourceVolumeID: v.ID})
		must(t, err)
		want, snapshots = append(want, v.ID), append(snapshots, s.ID)
	}
	var got, gotSnapshots []string
	for token := ""; ; {
		page, err := b.ListVolumes(ctx, csikit.Page{Token: token, MaxEntries: 2})
		must(t, err)
		for _, v := range page.Volumes {
			got = append(got, v.ID)
		}
		if token = page.NextToken; token == "" {
			break
		}
	}
	for token := ""; ; {
		page, err := b.ListSnapshots(ctx, csikit.ListSnapshotsRequest{Page: csikit.Page{Token: token, MaxEntries: 2}})
		must(t, err)
		for _, s := range page.Snapshots {
			gotSnapshots = append(gotSnapshots, s.ID)
		}
		if token = page.NextToken; token == "" {
			break
		}
	}
	if !slices.Equal(got, want) || !slices.Equal(gotSnapshots, snapshots) {
		t.Errorf("volumes %v, want %v; snapshots %v, want %v", got, want, gotSnapshots, snapshots)
	}
	for count, r := range map[int]csikit.ListSnapshotsRequest{
		0: {SourceVolumeID: want[0], SnapshotID: snapshots[1]}, 1: {SourceVolumeID: want[0]}, 5: {},
	} {
		if page, err := b.ListSnapshots(ctx, r); err != nil || len(page.Snapshots) != count {
			t.Errorf("%+v: %+v, %v", r, page, err)
		}
	}
	_, err := b.ListVolumes(ctx, csikit.Page{Token: "invalid-token"})
	wantError(t, "token", err, csikit.ErrBadToken)
	_, err = b.ListSnapshots(ctx, csikit.ListSnapshotsRequest{Page: csikit.Page{Token: "invalid-token"}})
	wantError(t, "token", err, csikit.ErrBadToken)
	_, err = b.ListVolumeHealth(ctx, csikit.Page{Token: "invalid-token"})
	wantError(t, "token", err, csikit.ErrBadToken)

	for _, ill := range []int{1, 3} {
		must(t, b.Cloud().SetConditions(ctx, want[ill], cloud.Condition{Status: cloud.StatusDegraded, Reason: "Slow"}))
	}
	page, err := b.ListVolumeHealth(ctx, csikit.Page{MaxEntries: 1})
	if err != nil || len(page.Volumes) != 1 || page.Volumes[0].VolumeID != want[1] || page.NextToken == "" {
		t.Errorf("%+v, %v", page, err)
	}
	page, err = b.ListVolumeHealth(ctx, csikit.Page{Token: page.NextToken})
	if err != nil || len(page.Volumes) != 1 || page.Volumes[0].Conditions[0].Reason != "Slow" || page.NextToken != "" {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestGroupSnapshot(t *testing.T) {
	t.Parallel()
	b, _ := openBackend(t)
	a, c := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "a"}), mustVolume(t, b, csikit.CreateVolumeRequest{Name: "c"})
	g, err := b.CreateGroupSnapshot(ctx, csikit.CreateGroupSnapshotRequest{Name: "g", SourceVolumeIDs: []string{a.ID, c.ID}})
	must(t, err)
	if len(g.Snapshots) != 2 || !g.Ready || g.Snapshots[0].SourceVolumeID != a.ID || g.Snapshots[1].GroupID != g.ID {
		t.Errorf("%+v", g)
	}
	one := g.Snapshots[0].ID
	wantError(t, "one of a group", b.DeleteSnapshot(ctx, csikit.SnapshotRequest{SnapshotID: one}), csikit.ErrInvalid)
	wrong := csikit.GroupSnapshotRequest{GroupSnapshotID: g.ID, SnapshotIDs: []string{one}}
	wantError(t, "other snapshots", b.DeleteGroupSnapshot(ctx, wrong), csikit.ErrInvalid)
	_, err = b.GetGroupSnapshot(ctx, wrong)
	wantError(t, "other snapshots", err, csikit.ErrInvalid)
	restored := mustVolume(t, b, csikit.CreateVolumeRequest{Name: "r", Source: &csikit.ContentSource{SnapshotID: one}})
	if restored.Source == nil || restored.Source.SnapshotID != one {
		t.Errorf("%+v", restored)
	}
	all := csikit.GroupSnapshotRequest{GroupSnapshotID: g.ID, SnapshotIDs: []string{g.Snapshots[1].ID, one}}
	if got, err := b.GetGroupSnapshot(ctx, all); err != nil || len(got.Snapshots) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, b.DeleteGroupSnapshot(ctx, all))
	_, err = b.GetSnapshot(ctx, csikit.SnapshotRequest{SnapshotID: one})
	wantError(t, "gone with its group", err, csikit.ErrNotFound)

	s, err := b.CreateSnapshot(ctx, csikit.CreateSnapshotRequest{Name: "s", SourceVolumeID: a.ID})
	must(t, err)
	other, err := b.CreateSnapshot(ctx, csikit.CreateSnapshotRequest{Name: "o", SourceVolumeID: c.ID})
	must(t, err)
	none := func(csikit.Blocks) error { return nil }
	wantError(t, "two disks", b.ChangedBlocks(ctx, csikit.ChangedRequest{BaseSnapshotID: s.ID, TargetSnapshotID: other.ID}, none), csikit.ErrInvalid)
	wantError(t, "offset", b.AllocatedBlocks(ctx, csikit.AllocatedRequest{SnapshotID: s.ID, StartingOffsetBytes: -1}, none), csikit.ErrOutOfRange)
}

// A token outlives the entry it was made of.
func TestListsGoOnAfterADelete(t *testing.T) {
	t.Parallel()
	b, _ := openBackend(t)
	left := map[string]bool{}
	for i := range 5 {
		left[mustVolume(t, b, csikit.CreateVolumeRequest{Name: fmt.Sprint(i)}).ID] = true
	}
	first, err := b.ListVolumes(ctx, csikit.Page{MaxEntries: 2})
	must(t, err)
	must(t, b.DeleteVolume(ctx, csikit.VolumeRequest{VolumeID: first.Volumes[1].ID}))
	rest, err := b.ListVolumes(ctx, csikit.Page{Token: first.NextToken})
	must(t, err)
	for _, v := range append(first.Volumes, rest.Volumes...) {
		delete(left, v.ID)
	}
	if len(left) > 0 || len(rest.Volumes) != 3 {
		t.Errorf("not listed: %v; the second page: %+v", left, rest)
	}
}
