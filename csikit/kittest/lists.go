package kittest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/csikit"
)

// pageOf cuts a page out of ids in order. A token is the last id of the page before,
// so that what is made or deleted meanwhile shifts nothing.
func pageOf(ids []string, page csikit.Page, sort string) (part []string, next string, err error) {
	if page.Token != "" && !strings.HasPrefix(page.Token, sort+"-") {
		return nil, "", fmt.Errorf("token %.32q: %w", page.Token, csikit.ErrBadToken)
	}
	slices.Sort(ids)
	ids = slices.DeleteFunc(ids, func(id string) bool { return id <= page.Token })
	if page.MaxEntries == 0 || len(ids) <= page.MaxEntries {
		return ids, "", nil
	}
	return ids[:page.MaxEntries], ids[page.MaxEntries-1], nil
}

// ListVolumes implements csikit.VolumeLister.
func (b *Backend) ListVolumes(ctx context.Context, page csikit.Page) (csikit.VolumePage, error) {
	leave, err := b.enter(ctx, "ListVolumes", page.Token)
	if err != nil {
		return csikit.VolumePage{}, err
	}
	defer leave()
	ids, next, err := pageOf(slices.Collect(maps.Keys(b.volumes)), page, "volume")
	list := csikit.VolumePage{NextToken: next}
	for _, id := range ids {
		list.Volumes = append(list.Volumes, b.volumes[id].copy())
	}
	return list, err
}

// ListSnapshots implements csikit.SnapshotLister.
func (b *Backend) ListSnapshots(ctx context.Context, r csikit.ListSnapshotsRequest) (csikit.SnapshotPage, error) {
	leave, err := b.enter(ctx, "ListSnapshots", r.Token)
	if err != nil {
		return csikit.SnapshotPage{}, err
	}
	defer leave()
	var ids []string
	for id, s := range b.snapshots {
		if (r.SnapshotID == "" || r.SnapshotID == id) && (r.SourceVolumeID == "" || r.SourceVolumeID == s.SourceVolumeID) {
			ids = append(ids, id)
		}
	}
	ids, next, err := pageOf(ids, r.Page, "snapshot")
	list := csikit.SnapshotPage{NextToken: next}
	for _, id := range ids {
		list.Snapshots = append(list.Snapshots, b.snapshots[id].Snapshot)
	}
	return list, err
}

// ListVolumeHealth implements csikit.HealthReporter.
func (b *Backend) ListVolumeHealth(ctx context.Context, page csikit.Page) (csikit.HealthPage, error) {
	leave, err := b.enter(ctx, "ListVolumeHealth", page.Token)
	if err != nil {
		return csikit.HealthPage{}, err
	}
	defer leave()
	var ids []string
	for id := range b.volumes {
		if len(b.health[id]) > 0 {
			ids = append(ids, id)
		}
	}
	ids, next, err := pageOf(ids, page, "volume")
	list := csikit.HealthPage{NextToken: next}
	for _, id := range ids {
		list.Volumes = append(list.Volumes, csikit.VolumeHealth{VolumeID: id, Conditions: b.health[id]})
	}
	return list, err
}
