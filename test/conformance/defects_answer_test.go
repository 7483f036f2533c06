package conformance_test

import (
	"context"
	"maps"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// wrongAnswers are hosts that do everything right and tell one thing wrong.
func wrongAnswers() []defect {
	return []defect{
		{"size of a disk", plain(func(h host.Host) host.Host { return wrongSize{h} }), "disk/listed"},
		{"page 83 in upper case", plain(func(h host.Host) host.Host { return upperIDs{h} }), "disk/listed"},
		{"adapter and target swapped", plain(func(h host.Host) host.Host { return swappedLocation{h} }), "disk/listed"},
		{"online always", plain(func(h host.Host) host.Host { return alwaysOnline{h} }), "disk/online-offline"},
		{"a disk that has gone is listed", plain(func(h host.Host) host.Host { return &remembersDisks{Host: h} }), "disk/gone"},
		{"no volumes of a partition", plain(func(h host.Host) host.Host { return ignoresPartition{h} }), "disk/partition"},
		{"everything is formatted", plain(func(h host.Host) host.Host { return alwaysFormatted{h} }), "volume/format"},
		{"nothing is used", plain(func(h host.Host) host.Host { return nothingUsed{h} }), "volume/stats"},
		{"the volume of the drive is the closest", plain(func(h host.Host) host.Host { return driveIsClosest{h} }), "volume/closest"},
		{"no mounts", plain(func(h host.Host) host.Host { return noMounts{h} }), "volume/mount"},
		{"a mount point is no link", plain(func(h host.Host) host.Host { return noLinks{h} }), "volume/mount"},
		{"a label that is not there", plain(func(h host.Host) host.Host { return wrongLabel{h} }), "volume/format-with"},
		{"everything exists", plain(func(h host.Host) host.Host { return everythingExists{h} }), "filesystem/rmdir"},
		{"a dangling link does not exist", plain(func(h host.Host) host.Host { return followsLinks{h} }), "filesystem/dangling-link"},
		{"a link leads elsewhere", plain(func(h host.Host) host.Host { return wrongTarget{h} }), "filesystem/links"},
		{"every disk is the target's", plain(func(h host.Host) host.Host { return everyDisk{h} }), "iscsi/target"},
		{"serial number of nobody", plain(func(h host.Host) host.Host { return noSerial{h} }), "system/bios"},
		{"a service by its exact name only", plain(func(h host.Host) host.Host { return exactName{h} }), "system/service"},
	}
}

type wrongSize struct{ host.Host }

func (h wrongSize) GetDiskStats(ctx context.Context, n uint32) (host.DiskStats, error) {
	stats, err := h.Host.GetDiskStats(ctx, n)
	stats.TotalBytes -= 512
	return stats, err
}

type upperIDs struct{ host.Host }

func (h upperIDs) ListDiskIDs(ctx context.Context) (map[uint32]host.DiskIDs, error) {
	all, err := h.Host.ListDiskIDs(ctx)
	for n, ids := range all {
		all[n] = host.DiskIDs{Page83: strings.ToUpper(ids.Page83), SerialNumber: ids.SerialNumber}
	}
	return all, err
}

type swappedLocation struct{ host.Host }

func (h swappedLocation) ListDiskLocations(ctx context.Context) (map[uint32]host.DiskLocation, error) {
	all, err := h.Host.ListDiskLocations(ctx)
	for n, l := range all {
		l.Adapter, l.Target = l.Target, l.Adapter
		all[n] = l
	}
	return all, err
}

type alwaysOnline struct{ host.Host }

func (h alwaysOnline) GetDiskState(ctx context.Context, n uint32) (bool, error) {
	_, err := h.Host.GetDiskState(ctx, n)
	return err == nil, err
}

type remembersDisks struct {
	host.Host
	seen map[uint32]host.DiskIDs
}

func (h *remembersDisks) ListDiskIDs(ctx context.Context) (map[uint32]host.DiskIDs, error) {
	all, err := h.Host.ListDiskIDs(ctx)
	if h.seen == nil {
		h.seen = map[uint32]host.DiskIDs{}
	}
	maps.Copy(h.seen, all)
	return maps.Clone(h.seen), err
}

type ignoresPartition struct{ host.Host }

func (h ignoresPartition) ListVolumesOnDisk(ctx context.Context, disk, _ uint32) ([]string, error) {
	return h.Host.ListVolumesOnDisk(ctx, disk, 0)
}

type alwaysFormatted struct{ host.Host }

func (h alwaysFormatted) IsVolumeFormatted(context.Context, string) (bool, error) { return true, nil }

type nothingUsed struct{ host.Host }

func (h nothingUsed) GetVolumeStats(ctx context.Context, id string) (host.VolumeStats, error) {
	stats, err := h.Host.GetVolumeStats(ctx, id)
	stats.UsedBytes = 0
	return stats, err
}

type driveIsClosest struct{ host.Host }

func (h driveIsClosest) GetClosestVolumeIDFromTargetPath(ctx context.Context, path string) (string, error) {
	if _, err := h.Host.GetClosestVolumeIDFromTargetPath(ctx, path); err != nil {
		return "", err
	}
	return h.Host.GetClosestVolumeIDFromTargetPath(ctx, `C:\k`)
}

type noMounts struct{ host.Host }

func (h noMounts) ListMounts(context.Context) ([]host.Mount, error) { return nil, nil }

type noLinks struct{ host.Host }

func (h noLinks) IsSymlink(ctx context.Context, path string) (bool, error) {
	info, err := h.GetLink(ctx, path)
	return info.Kind == host.LinkSymlink, err
}

type wrongLabel struct{ host.Host }

func (h wrongLabel) FormatVolumeWith(ctx context.Context, id string, options host.FormatOptions) error {
	if options.Label == "Scratch" {
		options.Label = ""
	}
	return h.Host.FormatVolumeWith(ctx, id, options)
}

type everythingExists struct{ host.Host }

func (h everythingExists) PathExists(context.Context, string) (bool, error) { return true, nil }

type followsLinks struct{ host.Host }

func (h followsLinks) PathExists(ctx context.Context, path string) (bool, error) {
	info, err := h.GetLink(ctx, path)
	if err == nil && info.Kind == host.LinkSymlink {
		path = info.Target
	}
	return h.Host.PathExists(ctx, path)
}

type wrongTarget struct{ host.Host }

func (h wrongTarget) GetLink(ctx context.Context, path string) (host.LinkInfo, error) {
	info, err := h.Host.GetLink(ctx, path)
	info.Target += "x"
	return info, err
}

type everyDisk struct{ host.Host }

func (h everyDisk) GetTargetDisks(ctx context.Context, portal host.TargetPortal, iqn string) ([]uint32, error) {
	if _, err := h.Host.GetTargetDisks(ctx, portal, iqn); err != nil {
		return nil, err
	}
	var numbers []uint32
	all, err := h.ListDiskIDs(ctx)
	for n := range all {
		numbers = append(numbers, n)
	}
	return numbers, err
}

type noSerial struct{ host.Host }

func (h noSerial) GetBIOSSerialNumber(context.Context) (string, error) { return "", nil }

type exactName struct{ host.Host }

func (h exactName) GetService(ctx context.Context, name string) (host.ServiceInfo, error) {
	if name == strings.ToLower(name) && name != "" && !strings.ContainsAny(name, "/\\\x01") && len(name) < 256 {
		return host.ServiceInfo{}, &host.Error{Op: "GetService", Kind: host.KindNotFound}
	}
	return h.Host.GetService(ctx, name)
}
