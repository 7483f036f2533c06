package csikit

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
)

// nodeServer is the Node service over a NodeBackend, which says where the data is,
// and a node.Node, which does the work.
type nodeServer struct {
	DefaultNode
	driver  *Driver
	backend NodeBackend
	node    node.Node
	stats   *statsKnown // nil when they can always be told
}

func newNodeServer(d *Driver) *nodeServer {
	return &nodeServer{
		DefaultNode: DefaultNode{NodeID: d.nodeID, Capabilities: d.nodeCapabilities()},
		driver:      d, backend: d.nodeBackend, node: d.node, stats: newStatsKnown(d.nodeBackend, d.node),
	}
}

// capability checks the capability of a request. Which modes a volume can do the
// controller has decided, unless the NodeBackend wants to: what it cannot do is of the
// kind exceeds. What no volume can do here, as block access or ext4, is a bad field
// whatever the call.
//
// Source: CSI spec.md, Error Scheme, and Exceeds capabilities of each call.
func (s *nodeServer) capability(asked *csi.VolumeCapability, exceeds error) (Capability, error) {
	capability, err := capabilityOf(asked)
	checker, ok := s.backend.(CapabilityChecker)
	if !ok || err != nil {
		return capability, err
	}
	if err = checker.CheckCapability(capability); says(err, codes.InvalidArgument) {
		err = recode(exceeds, err)
	}
	return capability, err
}

// recode makes another kind of an error, for calls of which CSI wants one. The text stays.
func recode(kind, err error) error { return fmt.Errorf("%w: %v", kind, err) } //nolint:errorlint // the old kind must not be found

// source asks the backend where the data of a volume is.
func (s *nodeServer) source(ctx context.Context, request NodeSourceRequest) (node.Source, error) {
	source, err := s.backend.NodeSource(ctx, request)
	if err != nil {
		return node.Source{}, err
	}
	set := 0
	for _, isSet := range []bool{source.Disk != nil, source.ISCSI != nil, source.SMB != nil} {
		if isSet {
			set++
		}
	}
	if set > 1 || set == 0 && !request.Ending {
		return node.Source{}, wrong("a node source with %d of Disk, ISCSI and SMB, exactly one is wanted", set)
	}
	return source, nil
}

// NodeStageVolume makes a volume usable on the node.
func (s *nodeServer) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	capability, err := s.capability(r.GetVolumeCapability(), ErrPrecondition)
	if err != nil {
		return nil, err
	}
	format, err := formatOf(capability, "volume_context", r.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	source, err := s.source(ctx, NodeSourceRequest{
		VolumeID: r.GetVolumeId(), VolumeContext: r.GetVolumeContext(), PublishContext: r.GetPublishContext(), Secrets: r.GetSecrets()})
	if err != nil {
		return nil, err
	}
	access := accessOf(capability)
	err = s.node.Stage(ctx, node.StageRequest{
		VolumeID: r.GetVolumeId(), StagingPath: r.GetStagingTargetPath(), Source: source,
		Format: format, Access: access, Grow: !access.ReadOnly})
	if err != nil {
		return nil, s.unknown(ctx, r.GetVolumeId(), err)
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume takes a volume from the node. A volume nobody knows is taken away
// all the same: what is at the path says what it is.
func (s *nodeServer) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	source, err := s.source(ctx, NodeSourceRequest{VolumeID: r.GetVolumeId(), Ending: true})
	if err != nil && !says(err, codes.NotFound) && !says(err, codes.InvalidArgument) {
		return nil, err
	}
	err = s.node.Unstage(ctx, node.UnstageRequest{VolumeID: r.GetVolumeId(), StagingPath: r.GetStagingTargetPath(), Source: source})
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume makes a staged volume visible to a pod.
func (s *nodeServer) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	capability, err := s.capability(r.GetVolumeCapability(), ErrPrecondition)
	if err != nil {
		return nil, err
	}
	if r.GetStagingTargetPath() == "" {
		return nil, refuse(ErrPrecondition, "staging_target_path", "is missing: the volume has to be staged first")
	}
	err = s.node.Publish(ctx, node.PublishRequest{
		VolumeID: r.GetVolumeId(), StagingPath: r.GetStagingTargetPath(), TargetPath: r.GetTargetPath(),
		ReadOnly: r.GetReadonly(), Access: accessOf(capability)})
	if err != nil {
		return nil, s.unknown(ctx, r.GetVolumeId(), err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// unknown tells a volume that is not staged from one that does not exist. It is asked
// only after a failure: what works costs no question. Without a Backend in the same
// process the NodeBackend is asked for what it knows without the network.
func (s *nodeServer) unknown(ctx context.Context, volumeID string, err error) error {
	if !host.IsKind(err, host.KindPrecondition) && !host.IsKind(err, host.KindNotFound) {
		return err
	}
	var asked error
	if s.driver.backend != nil {
		_, asked = s.driver.backend.GetVolume(ctx, VolumeRequest{VolumeID: volumeID})
	} else {
		_, asked = s.backend.NodeSource(ctx, NodeSourceRequest{VolumeID: volumeID, Ending: true})
	}
	if says(asked, codes.NotFound) {
		return asked
	}
	return err
}

// NodeUnpublishVolume takes a volume from a pod.
func (s *nodeServer) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := s.node.Unpublish(ctx, node.UnpublishRequest{VolumeID: r.GetVolumeId(), TargetPath: r.GetTargetPath()}); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
