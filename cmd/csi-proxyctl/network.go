package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// mappingRow is one SMB mapping of the node.
type mappingRow struct {
	Remote  string `json:"remote"`
	Local   string `json:"local,omitempty"`
	Status  string `json:"status"`
	Privacy bool   `json:"requirePrivacy"`
}

var mappingColumns = []column[mappingRow]{
	{"REMOTE", func(r mappingRow) string { return r.Remote }},
	{"LOCAL", func(r mappingRow) string { return r.Local }},
	{"STATUS", func(r mappingRow) string { return r.Status }},
	{"PRIVACY", func(r mappingRow) string { return yesNo(&r.Privacy) }},
}

// mappings returns every SMB mapping, by remote path.
func mappings(ctx context.Context, h node) ([]mappingRow, error) {
	list, err := h.ListSmbGlobalMappings(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]mappingRow, 0, len(list))
	for _, m := range list {
		rows = append(rows, mappingRow{Remote: m.RemotePath, Local: m.LocalPath, Status: string(m.Status), Privacy: m.RequirePrivacy})
	}
	slices.SortFunc(rows, func(a, b mappingRow) int { return cmp.Compare(a.Remote, b.Remote) })
	return rows, nil
}

// targetRow is one iSCSI target the initiator knows.
type targetRow struct {
	IQN       string   `json:"iqn"`
	Connected bool     `json:"connected"`
	Disks     []uint32 `json:"disks,omitempty"`
}

var targetColumns = []column[targetRow]{
	{"IQN", func(r targetRow) string { return r.IQN }},
	{"CONNECTED", func(r targetRow) string { return yesNo(&r.Connected) }},
	{"DISKS", func(r targetRow) string {
		numbers := make([]string, len(r.Disks))
		for i, n := range r.Disks {
			numbers[i] = strconv.FormatUint(uint64(n), 10)
		}
		return strings.Join(numbers, " ")
	}},
}

// targets returns every iSCSI target, by name.
func targets(ctx context.Context, h node) ([]targetRow, error) {
	list, err := h.ListTargets(ctx)
	if host.IsKind(err, host.KindUnsupported) {
		list, err = targetsFromPrimitives(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	rows := make([]targetRow, 0, len(list))
	for _, t := range list {
		rows = append(rows, targetRow{IQN: t.IQN, Connected: t.Connected, Disks: t.DiskNumbers})
	}
	slices.SortFunc(rows, func(a, b targetRow) int { return cmp.Compare(a.IQN, b.IQN) })
	return rows, nil
}

// targetsFromPrimitives asks each portal for its targets and each target for its
// disks, which only a connected one has.
func targetsFromPrimitives(ctx context.Context, h node) ([]host.TargetInfo, error) {
	portals, err := h.ListTargetPortals(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	var list []host.TargetInfo
	for _, portal := range portals {
		iqns, err := h.DiscoverTargetPortal(ctx, portal)
		if err != nil {
			return nil, err
		}
		for _, iqn := range iqns {
			if known[iqn] {
				continue
			}
			known[iqn] = true
			target := host.TargetInfo{IQN: iqn}
			if numbers, err := h.GetTargetDisks(ctx, portal, iqn); err == nil {
				target.Connected, target.DiskNumbers = len(numbers) > 0, numbers
			}
			list = append(list, target)
		}
	}
	return list, nil
}
