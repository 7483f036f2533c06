package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// diskRow is one disk. Pointers are nil, and texts empty, when the csi-proxy
// cannot tell.
type diskRow struct {
	Number        uint32 `json:"number"`
	Bus           string `json:"bus,omitempty"`
	Name          string `json:"name,omitempty"`
	Style         string `json:"style,omitempty"`
	SizeBytes     int64  `json:"sizeBytes"`
	Online        *bool  `json:"online,omitempty"`
	OfflineReason string `json:"offlineReason,omitempty"`
	ReadOnly      *bool  `json:"readOnly,omitempty"`
	System        *bool  `json:"system,omitempty"`
	Page83        string `json:"page83,omitempty"`
	Serial        string `json:"serial,omitempty"`
	Location      string `json:"location,omitempty"`
}

var diskColumns = []column[diskRow]{
	{"DISK", func(r diskRow) string { return strconv.FormatUint(uint64(r.Number), 10) }},
	{"BUS", func(r diskRow) string { return r.Bus }},
	{"STYLE", func(r diskRow) string { return r.Style }},
	{"SIZE", func(r diskRow) string { return sizeText(r.SizeBytes) }},
	{"ONLINE", func(r diskRow) string { return yesNo(r.Online) }},
	{"READONLY", func(r diskRow) string { return yesNo(r.ReadOnly) }},
	{"SYSTEM", func(r diskRow) string { return yesNo(r.System) }},
	{"LOCATION", func(r diskRow) string { return r.Location }},
	{"SERIAL", func(r diskRow) string { return r.Serial }},
	{"PAGE83", func(r diskRow) string { return r.Page83 }},
	{"NAME", func(r diskRow) string { return r.Name }},
}

// disks returns every disk, in the order of their numbers.
func disks(ctx context.Context, h node) ([]diskRow, error) {
	infos, err := h.ListDisks(ctx)
	if host.IsKind(err, host.KindUnsupported) {
		return disksFromPrimitives(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	rows := make([]diskRow, 0, len(infos))
	for _, d := range infos {
		online := !d.Offline
		rows = append(rows, diskRow{
			Number: d.Number, Bus: d.BusType, Name: d.FriendlyName, Style: string(d.Style), SizeBytes: d.SizeBytes,
			Online: &online, OfflineReason: d.OfflineReason, ReadOnly: &d.ReadOnly, System: &d.System,
			Page83: d.IDs.Page83, Serial: d.IDs.SerialNumber, Location: locationText(d.Location),
		})
	}
	slices.SortFunc(rows, func(a, b diskRow) int { return int(int64(a.Number) - int64(b.Number)) })
	return rows, nil
}

// disksFromPrimitives asks for ids, locations, size and state one by one, as
// every csi-proxy can tell them.
func disksFromPrimitives(ctx context.Context, h node) ([]diskRow, error) {
	ids, err := h.ListDiskIDs(ctx)
	if err != nil {
		return nil, err
	}
	locations, err := h.ListDiskLocations(ctx)
	if err != nil {
		return nil, err
	}
	var rows []diskRow
	for _, number := range slices.Sorted(maps.Keys(ids)) {
		row := diskRow{Number: number, Page83: ids[number].Page83, Serial: ids[number].SerialNumber, Location: locationText(locations[number])}
		stats, err := h.GetDiskStats(ctx, number)
		if err != nil {
			return nil, err
		}
		row.SizeBytes = stats.TotalBytes
		switch online, err := h.GetDiskState(ctx, number); {
		case err == nil:
			row.Online = &online
		case !host.IsKind(err, host.KindUnsupported):
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// locationText is adapter, bus, target and LUN, "0/0/0/1"; empty when there is none.
func locationText(l host.DiskLocation) string {
	if l == (host.DiskLocation{}) {
		return ""
	}
	return strings.Join([]string{l.Adapter, l.Bus, l.Target, l.LUNID}, "/")
}
