package wire

import (
	"context"

	"github.com/csi-windows/csi-windows/wire/wirepb"
)

func newSmbGlobalMapping(ctx context.Context, s *site, q *wirepb.NewSmbGlobalMappingRequest) (*wirepb.NewSmbGlobalMappingResponse, error) {
	return &wirepb.NewSmbGlobalMappingResponse{},
		s.host.NewSmbGlobalMapping(ctx, q.GetRemotePath(), q.GetLocalPath(), q.GetUsername(), q.GetPassword())
}

func removeSmbGlobalMapping(ctx context.Context, s *site, q *wirepb.RemoveSmbGlobalMappingRequest) (*wirepb.RemoveSmbGlobalMappingResponse, error) {
	return &wirepb.RemoveSmbGlobalMappingResponse{}, s.host.RemoveSmbGlobalMapping(ctx, q.GetRemotePath())
}
