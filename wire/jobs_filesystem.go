package wire

import (
	"context"

	"github.com/csi-windows/csi-windows/wire/wirepb"
)

func pathExists(ctx context.Context, s *site, q *wirepb.PathExistsRequest) (*wirepb.PathExistsResponse, error) {
	exists, err := s.host.PathExists(ctx, q.GetPath())
	return &wirepb.PathExistsResponse{Exists: exists}, err
}

func mkdir(ctx context.Context, s *site, q *wirepb.MkdirRequest) (*wirepb.MkdirResponse, error) {
	return &wirepb.MkdirResponse{}, s.host.Mkdir(ctx, q.GetPath())
}

func rmdir(ctx context.Context, s *site, q *wirepb.RmdirRequest) (*wirepb.RmdirResponse, error) {
	return &wirepb.RmdirResponse{}, s.host.Rmdir(ctx, q.GetPath(), q.GetForce())
}

func rmdirContents(ctx context.Context, s *site, q *wirepb.RmdirContentsRequest) (*wirepb.RmdirContentsResponse, error) {
	return &wirepb.RmdirContentsResponse{}, s.host.RmdirContents(ctx, q.GetPath())
}

func createSymlink(ctx context.Context, s *site, q *wirepb.CreateSymlinkRequest) (*wirepb.CreateSymlinkResponse, error) {
	return &wirepb.CreateSymlinkResponse{}, s.host.CreateSymlink(ctx, q.GetSourcePath(), q.GetTargetPath())
}

func isSymlink(ctx context.Context, s *site, q *wirepb.IsSymlinkRequest) (*wirepb.IsSymlinkResponse, error) {
	is, err := s.host.IsSymlink(ctx, q.GetPath())
	return &wirepb.IsSymlinkResponse{IsSymlink: is}, err
}
