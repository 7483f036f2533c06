package wiretest

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// PathExists implements host.Filesystem.
func (h *Host) PathExists(ctx context.Context, path string) (bool, error) {
	return reply(h.Exists, h.record(ctx, "PathExists", path))
}

// Mkdir implements host.Filesystem.
func (h *Host) Mkdir(ctx context.Context, path string) error {
	return h.record(ctx, "Mkdir", path)
}

// Rmdir implements host.Filesystem.
func (h *Host) Rmdir(ctx context.Context, path string, force bool) error {
	return h.record(ctx, "Rmdir", path, force)
}

// RmdirContents implements host.Filesystem.
func (h *Host) RmdirContents(ctx context.Context, path string) error {
	return h.record(ctx, "RmdirContents", path)
}

// CreateSymlink implements host.Filesystem.
func (h *Host) CreateSymlink(ctx context.Context, sourcePath, targetPath string) error {
	return h.record(ctx, "CreateSymlink", sourcePath, targetPath)
}

// IsSymlink implements host.Filesystem.
func (h *Host) IsSymlink(ctx context.Context, path string) (bool, error) {
	return reply(h.Symlink, h.record(ctx, "IsSymlink", path))
}

// GetLink implements host.Filesystem.
func (h *Host) GetLink(ctx context.Context, path string) (host.LinkInfo, error) {
	return reply(h.Link, h.record(ctx, "GetLink", path))
}

// GetPathStats implements host.Filesystem.
func (h *Host) GetPathStats(ctx context.Context, path string) (host.VolumeStats, error) {
	return reply(h.VolumeStats, h.record(ctx, "GetPathStats", path))
}
