package client

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// PathExists implements host.Filesystem.
func (c *Client) PathExists(ctx context.Context, path string) (bool, error) {
	answer, err := call[*wirepb.PathExistsResponse](ctx, c, wire.GroupFilesystem, &wirepb.PathExistsRequest{Path: path})
	return answer.GetExists(), err
}

// Mkdir implements host.Filesystem.
func (c *Client) Mkdir(ctx context.Context, path string) error {
	return do[*wirepb.MkdirResponse](ctx, c, wire.GroupFilesystem, &wirepb.MkdirRequest{Path: path})
}

// Rmdir implements host.Filesystem.
func (c *Client) Rmdir(ctx context.Context, path string, force bool) error {
	return do[*wirepb.RmdirResponse](ctx, c, wire.GroupFilesystem, &wirepb.RmdirRequest{Path: path, Force: force})
}

// RmdirContents implements host.Filesystem.
func (c *Client) RmdirContents(ctx context.Context, path string) error {
	return do[*wirepb.RmdirContentsResponse](ctx, c, wire.GroupFilesystem, &wirepb.RmdirContentsRequest{Path: path})
}

// CreateSymlink implements host.Filesystem.
func (c *Client) CreateSymlink(ctx context.Context, sourcePath, targetPath string) error {
	return do[*wirepb.CreateSymlinkResponse](ctx, c, wire.GroupFilesystem,
		&wirepb.CreateSymlinkRequest{SourcePath: sourcePath, TargetPath: targetPath})
}

// IsSymlink implements host.Filesystem.
func (c *Client) IsSymlink(ctx context.Context, path string) (bool, error) {
	answer, err := call[*wirepb.IsSymlinkResponse](ctx, c, wire.GroupFilesystem, &wirepb.IsSymlinkRequest{Path: path})
	return answer.GetIsSymlink(), err
}

// GetLink implements host.Filesystem.
func (c *Client) GetLink(ctx context.Context, path string) (host.LinkInfo, error) {
	answer, err := call[*wirepb.GetLinkResponse](ctx, c, wire.GroupExtension, &wirepb.GetLinkRequest{Path: path})
	return host.LinkInfo{Kind: host.LinkKind(answer.GetKind()), Target: answer.GetTarget()}, err
}

// GetPathStats implements host.Filesystem.
func (c *Client) GetPathStats(ctx context.Context, path string) (host.VolumeStats, error) {
	answer, err := call[*wirepb.GetPathStatsResponse](ctx, c, wire.GroupExtension, &wirepb.GetPathStatsRequest{Path: path})
	return host.VolumeStats{TotalBytes: answer.GetTotalBytes(), UsedBytes: answer.GetUsedBytes()}, err
}
