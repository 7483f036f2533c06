package main

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// fakeNode answers from fields. With foreign set it is a csi-proxy that lacks
// our additions.
type fakeNode struct {
	host.Host // nil: a call that no test expects panics
	foreign   bool
	failure   error
	closed    bool
}

// addition is the error of a method this node may lack.
func (f *fakeNode) addition(op string) error {
	if f.foreign {
		return &host.Error{Op: op, Kind: host.KindUnsupported}
	}
	return f.failure
}

func (f *fakeNode) Close() error { f.closed = true; return nil }

func (f *fakeNode) APIs(context.Context) ([]apiRow, error) {
	return []apiRow{{"disk", "v1", []string{"v1beta3", "v1"}}, {"iscsi", "", nil}}, f.failure
}

var fakeDisks = []host.DiskInfo{
	{Number: 11, Location: host.DiskLocation{Adapter: "0", Bus: "0", Target: "0", LUNID: "1"},
		IDs:          host.DiskIDs{Page83: "naa.6002248000000001", SerialNumber: "S-1"},
		FriendlyName: "Msft \x1b[31mVirtual Disk", BusType: "SCSI", Style: host.StyleRaw, SizeBytes: 1 << 40, Offline: true, OfflineReason: "Policy", ReadOnly: true},
	{Number: 0, BusType: "NVMe", Style: host.StyleGPT, SizeBytes: 128 << 30, System: true, FriendlyName: "System"},
}

func (f *fakeNode) ListDisks(context.Context) ([]host.DiskInfo, error) {
	return fakeDisks, f.addition("ListDisks")
}

func (f *fakeNode) ListDiskIDs(context.Context) (map[uint32]host.DiskIDs, error) {
	ids := map[uint32]host.DiskIDs{}
	for _, d := range fakeDisks {
		ids[d.Number] = d.IDs
	}
	return ids, f.failure
}

func (f *fakeNode) ListDiskLocations(context.Context) (map[uint32]host.DiskLocation, error) {
	return map[uint32]host.DiskLocation{11: fakeDisks[0].Location}, nil
}

func (f *fakeNode) GetDiskStats(_ context.Context, number uint32) (host.DiskStats, error) {
	for _, d := range fakeDisks {
		if d.Number == number {
			return host.DiskStats{TotalBytes: d.SizeBytes}, nil
		}
	}
	return host.DiskStats{}, &host.Error{Op: "GetDiskStats", Kind: host.KindNotFound}
}

func (f *fakeNode) GetDiskState(_ context.Context, number uint32) (bool, error) {
	return number == 0, nil
}

const fakeVolumeID = `\\?\Volume{11111111-2222-3333-4444-555555555555}\`

func (f *fakeNode) ListVolumes(context.Context) ([]host.VolumeInfo, error) {
	return []host.VolumeInfo{
		{ID: fakeVolumeID, DiskNumber: 11, PartitionNumber: 2, FileSystem: "NTFS", Label: "data", SizeBytes: 10 << 30, FreeBytes: 1023,
			Health: host.HealthWarning, HealthDetail: "Scan needed", MountPaths: []string{`E:\`, `C:\var\lib\kubelet\m`}},
		{ID: `\\?\Volume{0}\`, DiskNumber: 0, PartitionNumber: 4, SizeBytes: 1 << 20, Health: host.HealthUnknown},
	}, f.addition("ListVolumes")
}

func (f *fakeNode) ListVolumesOnDisk(_ context.Context, number, _ uint32) ([]string, error) {
	if number == 0 {
		return []string{`\\?\Volume{0}\`}, nil
	}
	return []string{fakeVolumeID}, nil
}

func (f *fakeNode) IsVolumeFormatted(_ context.Context, id string) (bool, error) {
	return id == fakeVolumeID, nil
}

func (f *fakeNode) GetVolumeStats(context.Context, string) (host.VolumeStats, error) {
	return host.VolumeStats{TotalBytes: 10 << 30, UsedBytes: 4 << 30}, nil
}

func (f *fakeNode) ListMounts(context.Context) ([]host.Mount, error) {
	return []host.Mount{{VolumeID: fakeVolumeID, Path: `E:\`}, {VolumeID: fakeVolumeID, Path: `C:\var\lib\kubelet\m`}}, f.addition("ListMounts")
}

func (f *fakeNode) ListSmbGlobalMappings(context.Context) ([]host.SmbMapping, error) {
	return []host.SmbMapping{{RemotePath: `\\srv\b`, RequirePrivacy: true, Status: host.MappingOK},
		{RemotePath: `\\srv\a`, LocalPath: "Z:", Status: host.MappingDisconnected}}, f.addition("ListSmbGlobalMappings")
}

func (f *fakeNode) ListTargets(context.Context) ([]host.TargetInfo, error) {
	return []host.TargetInfo{{IQN: "iqn.2026-01.b", Connected: true, DiskNumbers: []uint32{3, 4}}, {IQN: "iqn.2026-01.a"}}, f.addition("ListTargets")
}

func (f *fakeNode) ListTargetPortals(context.Context) ([]host.TargetPortal, error) {
	return []host.TargetPortal{{Address: "192.0.2.1"}, {Address: "192.0.2.2"}}, nil
}

func (f *fakeNode) DiscoverTargetPortal(context.Context, host.TargetPortal) ([]string, error) {
	return []string{"iqn.2026-01.b", "iqn.2026-01.a"}, nil
}

func (f *fakeNode) GetTargetDisks(_ context.Context, _ host.TargetPortal, iqn string) ([]uint32, error) {
	if iqn == "iqn.2026-01.a" {
		return nil, &host.Error{Op: "GetTargetDisks", Kind: host.KindNotFound}
	}
	return []uint32{3, 4}, nil
}

func (f *fakeNode) GetService(_ context.Context, name string) (host.ServiceInfo, error) {
	if name == "csiproxy" || name == "none" {
		return host.ServiceInfo{}, &host.Error{Op: "GetService", Object: "service " + name, Kind: host.KindNotFound}
	}
	return host.ServiceInfo{DisplayName: "The " + name, StartType: host.StartManual, Status: host.ServiceRunning}, f.failure
}
