package node_test

import (
	"context"
	"errors"

	"github.com/csi-windows/csi-windows/host"
)

// upstream is a host with the manners of the official csi-proxy: its errors are all
// of one kind, a repeated change is often a failure, and a link that leads nowhere
// is none.
func upstream(h host.Host) host.Host { return upstreamHost{official(h), h} }

type upstreamHost struct {
	host.Host
	inner host.Host
}

// plain is an error as it comes over the wire from a server that knows no kinds.
func plain(err error) error {
	var failed *host.Error
	if !errors.As(err, &failed) || failed.Kind == host.KindUnsupported {
		return err
	}
	return &host.Error{Op: failed.Op, Object: failed.Object, Kind: host.KindInternal, Cause: failed.Cause}
}

func plainOf[T any](value T, err error) (T, error) { return value, plain(err) }

func (u upstreamHost) refuse(op, path string) error {
	return &host.Error{Op: op, Object: path, Kind: host.KindInternal, Cause: errors.New("the system cannot do that")}
}

func (u upstreamHost) PathExists(ctx context.Context, path string) (bool, error) {
	return plainOf(u.Host.PathExists(ctx, path))
}

func (u upstreamHost) Mkdir(ctx context.Context, path string) error {
	return plain(u.Host.Mkdir(ctx, path))
}

func (u upstreamHost) Rmdir(ctx context.Context, path string, force bool) error {
	if exists, err := u.Host.PathExists(ctx, path); err != nil || !exists {
		return u.refuse("Rmdir", path)
	}
	return plain(u.Host.Rmdir(ctx, path, force))
}

func (u upstreamHost) CreateSymlink(ctx context.Context, source, target string) error {
	if exists, err := u.Host.PathExists(ctx, target); err != nil || exists {
		return u.refuse("CreateSymlink", target)
	}
	return plain(u.Host.CreateSymlink(ctx, source, target))
}

func (u upstreamHost) IsSymlink(ctx context.Context, path string) (bool, error) {
	link, err := u.inner.GetLink(ctx, path)
	if err != nil || link.Kind == host.NotALink || link.Kind == host.LinkMountPoint {
		return false, plain(err)
	}
	return plainOf(u.Host.PathExists(ctx, link.Target))
}

func (u upstreamHost) ListDiskLocations(ctx context.Context) (map[uint32]host.DiskLocation, error) {
	return plainOf(u.Host.ListDiskLocations(ctx))
}

func (u upstreamHost) PartitionDisk(ctx context.Context, number uint32) error {
	return plain(u.Host.PartitionDisk(ctx, number))
}

func (u upstreamHost) Rescan(ctx context.Context) error { return plain(u.Host.Rescan(ctx)) }

func (u upstreamHost) ListDiskIDs(ctx context.Context) (map[uint32]host.DiskIDs, error) {
	return plainOf(u.Host.ListDiskIDs(ctx))
}

func (u upstreamHost) SetDiskState(ctx context.Context, number uint32, online bool) error {
	return plain(u.Host.SetDiskState(ctx, number, online))
}

func (u upstreamHost) GetDiskState(ctx context.Context, number uint32) (bool, error) {
	return plainOf(u.Host.GetDiskState(ctx, number))
}

func (u upstreamHost) ListVolumesOnDisk(ctx context.Context, disk, partition uint32) ([]string, error) {
	ids, err := u.Host.ListVolumesOnDisk(ctx, disk, partition)
	if err == nil && len(ids) == 0 {
		return []string{""}, nil
	}
	return ids, plain(err)
}

func (u upstreamHost) MountVolume(ctx context.Context, volumeID, path string) error {
	link, err := u.inner.GetLink(ctx, path)
	if err != nil || link.Kind != host.NotALink {
		return u.refuse("MountVolume", path)
	}
	return plain(u.Host.MountVolume(ctx, volumeID, path))
}

func (u upstreamHost) UnmountVolume(ctx context.Context, volumeID, path string) error {
	link, err := u.inner.GetLink(ctx, path)
	if err != nil || link.Kind != host.LinkMountPoint {
		return u.refuse("UnmountVolume", path)
	}
	return plain(u.Host.UnmountVolume(ctx, volumeID, path))
}

func (u upstreamHost) IsVolumeFormatted(ctx context.Context, volumeID string) (bool, error) {
	return plainOf(u.Host.IsVolumeFormatted(ctx, volumeID))
}

func (u upstreamHost) FormatVolume(ctx context.Context, volumeID string) error {
	return plain(u.Host.FormatVolume(ctx, volumeID))
}

func (u upstreamHost) ResizeVolume(ctx context.Context, volumeID string, sizeBytes int64) error {
	return plain(u.Host.ResizeVolume(ctx, volumeID, sizeBytes))
}

func (u upstreamHost) GetVolumeStats(ctx context.Context, volumeID string) (host.VolumeStats, error) {
	return plainOf(u.Host.GetVolumeStats(ctx, volumeID))
}

func (u upstreamHost) GetDiskNumberFromVolumeID(ctx context.Context, volumeID string) (uint32, error) {
	return plainOf(u.Host.GetDiskNumberFromVolumeID(ctx, volumeID))
}

func (u upstreamHost) GetVolumeIDFromTargetPath(ctx context.Context, path string) (string, error) {
	return plainOf(u.Host.GetVolumeIDFromTargetPath(ctx, path))
}

func (u upstreamHost) WriteVolumeCache(ctx context.Context, volumeID string) error {
	return plain(u.Host.WriteVolumeCache(ctx, volumeID))
}
