package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// volumeRow is one volume. Pointers are nil, and texts empty, when the csi-proxy
// cannot tell.
type volumeRow struct {
	ID           string   `json:"id"`
	Disk         uint32   `json:"disk"`
	Partition    *uint32  `json:"partition,omitempty"`
	FileSystem   string   `json:"fileSystem,omitempty"`
	Label        string   `json:"label,omitempty"`
	SizeBytes    *int64   `json:"sizeBytes,omitempty"`
	FreeBytes    *int64   `json:"freeBytes,omitempty"`
	Health       string   `json:"health,omitempty"`
	HealthDetail string   `json:"healthDetail,omitempty"`
	Mounts       []string `json:"mounts,omitempty"`
}

var volumeColumns = []column[volumeRow]{
	{"DISK", func(r volumeRow) string { return strconv.FormatUint(uint64(r.Disk), 10) }},
	{"PART", func(r volumeRow) string {
		if r.Partition == nil {
			return ""
		}
		return strconv.FormatUint(uint64(*r.Partition), 10)
	}},
	{"FS", func(r volumeRow) string { return r.FileSystem }},
	{"SIZE", func(r volumeRow) string { return optionalSize(r.SizeBytes) }},
	{"FREE", func(r volumeRow) string { return optionalSize(r.FreeBytes) }},
	{"HEALTH", func(r volumeRow) string { return cmp.Or(r.HealthDetail, r.Health) }},
	{"LABEL", func(r volumeRow) string { return r.Label }},
	{"VOLUME", func(r volumeRow) string { return r.ID }},
	{"MOUNTS", func(r volumeRow) string { return strings.Join(r.Mounts, " ") }},
}

// optionalSize prints a size that may be unknown.
func optionalSize(bytes *int64) string {
	if bytes == nil {
		return ""
	}
	return sizeText(*bytes)
}

// volumes returns every volume, by disk and partition.
func volumes(ctx context.Context, h node) ([]volumeRow, error) {
	infos, err := h.ListVolumes(ctx)
	if host.IsKind(err, host.KindUnsupported) {
		return volumesFromPrimitives(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	rows := make([]volumeRow, 0, len(infos))
	for _, v := range infos {
		rows = append(rows, volumeRow{
			ID: v.ID, Disk: v.DiskNumber, Partition: &v.PartitionNumber, FileSystem: v.FileSystem, Label: v.Label,
			SizeBytes: &v.SizeBytes, FreeBytes: &v.FreeBytes, Health: string(v.Health), HealthDetail: v.HealthDetail,
			Mounts: v.MountPaths,
		})
	}
	slices.SortFunc(rows, func(a, b volumeRow) int {
		return cmp.Or(cmp.Compare(a.Disk, b.Disk), cmp.Compare(*a.Partition, *b.Partition), cmp.Compare(a.ID, b.ID))
	})
	return rows, nil
}

// volumesFromPrimitives asks disk by disk, as every csi-proxy can tell.
func volumesFromPrimitives(ctx context.Context, h node) ([]volumeRow, error) {
	onDisks, err := disks(ctx, h)
	if err != nil {
		return nil, err
	}
	var rows []volumeRow
	for _, disk := range onDisks {
		ids, err := h.ListVolumesOnDisk(ctx, disk.Number, 0)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			row, err := volumeFromPrimitives(ctx, h, disk.Number, id)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// volumeFromPrimitives looks at one volume; a raw one has no sizes.
func volumeFromPrimitives(ctx context.Context, h node, disk uint32, id string) (volumeRow, error) {
	row := volumeRow{ID: id, Disk: disk}
	formatted, err := h.IsVolumeFormatted(ctx, id)
	if err != nil || !formatted {
		return row, err
	}
	row.FileSystem = "formatted"
	stats, err := h.GetVolumeStats(ctx, id)
	if err != nil {
		return row, err
	}
	free := stats.TotalBytes - stats.UsedBytes
	row.SizeBytes, row.FreeBytes = &stats.TotalBytes, &free
	return row, nil
}

// mountRow is one path at which a volume is mounted.
type mountRow struct {
	Path   string `json:"path"`
	Volume string `json:"volume"`
}

var mountColumns = []column[mountRow]{
	{"PATH", func(r mountRow) string { return r.Path }},
	{"VOLUME", func(r mountRow) string { return r.Volume }},
}

// mounts returns every mount, by path.
func mounts(ctx context.Context, h node) ([]mountRow, error) {
	list, err := h.ListMounts(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]mountRow, 0, len(list))
	for _, m := range list {
		rows = append(rows, mountRow{Path: m.Path, Volume: m.VolumeID})
	}
	slices.SortFunc(rows, func(a, b mountRow) int { return cmp.Compare(a.Path, b.Path) })
	return rows, nil
}
