package conformance_test

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// noEffects are hosts that say a change was made and make none.
func noEffects() []defect {
	return []defect{
		{"partition", plain(func(h host.Host) host.Host { return idle{Host: h, partition: true} }), "disk/partition"},
		{"rescan", plain(func(h host.Host) host.Host { return idle{Host: h, rescan: true} }), "volume/grow"},
		{"offline", plain(func(h host.Host) host.Host { return idle{Host: h, state: true} }), "disk/online-offline"},
		{"read-only", plain(func(h host.Host) host.Host { return idle{Host: h, readOnly: true} }), "disk/read-only"},
		{"format", plain(func(h host.Host) host.Host { return idle{Host: h, format: true} }), "volume/format"},
		{"mount", plain(func(h host.Host) host.Host { return idle{Host: h, mount: true} }), "volume/mount"},
		{"unmount", plain(func(h host.Host) host.Host { return idle{Host: h, unmount: true} }), "volume/unmount"},
		{"resize", plain(func(h host.Host) host.Host { return idle{Host: h, resize: true} }), "volume/grow"},
		{"flush", plain(func(h host.Host) host.Host { return idle{Host: h, flush: true} }), "volume/flush"},
		{"mkdir", plain(func(h host.Host) host.Host { return idle{Host: h, mkdir: true} }), "filesystem/mkdir"},
		{"rmdir", plain(func(h host.Host) host.Host { return idle{Host: h, rmdir: true} }), "filesystem/rmdir"},
		{"rmdir of contents", plain(func(h host.Host) host.Host { return idle{Host: h, contents: true} }), "filesystem/rmdir-contents"},
		{"symlink", plain(func(h host.Host) host.Host { return idle{Host: h, symlink: true} }), "filesystem/links"},
		{"unmap", plain(func(h host.Host) host.Host { return idle{Host: h, unmap: true} }), "smb/mapping"},
		{"logout", plain(func(h host.Host) host.Host { return idle{Host: h, logout: true} }), "iscsi/target"},
		{"service stop", plain(func(h host.Host) host.Host { return idle{Host: h, stop: true} }), "system/service-start-stop"},
	}
}

// idle is a host that answers some changes with success without making them, unless
// they would fail anyway.
type idle struct {
	host.Host
	partition, rescan, state, readOnly, format, mount, unmount, resize, flush bool
	mkdir, rmdir, contents, symlink, unmap, logout, stop                      bool
}

// or does nothing when on.
func or(on bool, do func() error) error {
	if on {
		return nil
	}
	return do()
}

func (h idle) PartitionDisk(ctx context.Context, n uint32) error {
	return or(h.partition, func() error { return h.Host.PartitionDisk(ctx, n) })
}

func (h idle) Rescan(ctx context.Context) error {
	return or(h.rescan, func() error { return h.Host.Rescan(ctx) })
}

func (h idle) SetDiskState(ctx context.Context, n uint32, online bool) error {
	return or(h.state, func() error { return h.Host.SetDiskState(ctx, n, online) })
}

func (h idle) SetDiskReadOnly(ctx context.Context, n uint32, readOnly bool) error {
	return or(h.readOnly, func() error { return h.Host.SetDiskReadOnly(ctx, n, readOnly) })
}

func (h idle) FormatVolume(ctx context.Context, id string) error {
	return or(h.format, func() error { return h.Host.FormatVolume(ctx, id) })
}

func (h idle) MountVolume(ctx context.Context, id, path string) error {
	return or(h.mount, func() error { return h.Host.MountVolume(ctx, id, path) })
}

func (h idle) UnmountVolume(ctx context.Context, id, path string) error {
	return or(h.unmount, func() error { return h.Host.UnmountVolume(ctx, id, path) })
}

func (h idle) ResizeVolume(ctx context.Context, id string, sizeBytes int64) error {
	return or(h.resize, func() error { return h.Host.ResizeVolume(ctx, id, sizeBytes) })
}

func (h idle) WriteVolumeCache(ctx context.Context, id string) error {
	return or(h.flush, func() error { return h.Host.WriteVolumeCache(ctx, id) })
}

func (h idle) Mkdir(ctx context.Context, path string) error {
	return or(h.mkdir, func() error { return h.Host.Mkdir(ctx, path) })
}

func (h idle) Rmdir(ctx context.Context, path string, force bool) error {
	return or(h.rmdir, func() error { return h.Host.Rmdir(ctx, path, force) })
}

func (h idle) RmdirContents(ctx context.Context, path string) error {
	return or(h.contents, func() error { return h.Host.RmdirContents(ctx, path) })
}

func (h idle) CreateSymlink(ctx context.Context, source, target string) error {
	return or(h.symlink, func() error { return h.Host.CreateSymlink(ctx, source, target) })
}

func (h idle) RemoveSmbGlobalMapping(ctx context.Context, remote string) error {
	return or(h.unmap, func() error { return h.Host.RemoveSmbGlobalMapping(ctx, remote) })
}

func (h idle) DisconnectTarget(ctx context.Context, portal host.TargetPortal, iqn string) error {
	return or(h.logout, func() error { return h.Host.DisconnectTarget(ctx, portal, iqn) })
}

func (h idle) StopService(ctx context.Context, name string, force bool) error {
	return or(h.stop, func() error { return h.Host.StopService(ctx, name, force) })
}
