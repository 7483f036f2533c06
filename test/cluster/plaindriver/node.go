package main

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type nodeServer struct {
	csi.UnimplementedNodeServer
	*driver
}

func (n *nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	answer := &csi.NodeGetInfoResponse{NodeId: n.node, MaxVolumesPerNode: 200}
	if n.has("topology") {
		answer.AccessibleTopology = &csi.Topology{Segments: map[string]string{zoneKey: n.zone}}
	}
	return answer, nil
}

func (n *nodeServer) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	answer := &csi.NodeGetCapabilitiesResponse{}
	for name, kind := range map[string]csi.NodeServiceCapability_RPC_Type{
		"stage": csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, "node-expand": csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		"multi-writer": csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		if n.has(name) {
			answer.Capabilities = append(answer.Capabilities, &csi.NodeServiceCapability{
				Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: kind}}})
		}
	}
	return answer, nil
}

func (n *nodeServer) NodeStageVolume(context.Context, *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	return &csi.NodeStageVolumeResponse{}, nil
}

func (n *nodeServer) NodeUnstageVolume(context.Context, *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (n *nodeServer) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	return &csi.NodeExpandVolumeResponse{CapacityBytes: r.GetCapacityRange().GetRequiredBytes()}, nil
}

// NodePublishVolume binds the volume's folder to the target.
func (n *nodeServer) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	source := n.backend.folder("volumes", r.GetVolumeId())
	if _, err := os.Stat(source); err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if err := os.MkdirAll(r.GetTargetPath(), 0o755); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if mounted(r.GetTargetPath()) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := syscall.Mount(source, r.GetTargetPath(), "", syscall.MS_BIND, ""); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *nodeServer) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	for mounted(r.GetTargetPath()) {
		if err := syscall.Unmount(r.GetTargetPath(), 0); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	if err := os.Remove(r.GetTargetPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
