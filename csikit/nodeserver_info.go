package csikit

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
)

// checkVolumePath refuses a path at which no volume can be. CSI wants NotFound for a
// volume that is not at the path of the request.
func checkVolumePath(volumeID, path string) error {
	isDrive := len(path) >= 3 && path[1] == ':' && strings.ContainsRune(`\/`, rune(path[2]))
	if isDrive || strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\`) {
		return nil
	}
	return refuse(ErrNotFound, "volume_path", "is no absolute path, volume %s is not there", volumeID)
}

// NodeExpandVolume grows the file system of a volume.
func (s *nodeServer) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	capacity, err := capacityOf(r.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	if r.GetVolumeCapability() != nil {
		capability, err := s.capability(r.GetVolumeCapability(), ErrInvalid)
		if err != nil {
			return nil, err
		}
		if accessOf(capability).ReadOnly { // it grows where it is written
			return &csi.NodeExpandVolumeResponse{}, nil
		}
	}
	if err := checkVolumePath(r.GetVolumeId(), r.GetVolumePath()); err != nil {
		return nil, err
	}
	result, err := s.node.Expand(ctx, node.ExpandRequest{
		VolumeID: r.GetVolumeId(), Path: r.GetVolumePath(),
		RequiredBytes: capacity.RequiredBytes, LimitBytes: capacity.LimitBytes})
	if err != nil {
		return nil, s.expandError(ctx, r, err)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: result.CapacityBytes}, nil
}

// expandError gives an error of Expand the code that CSI wants. FailedPrecondition would
// tell a kubelet never to try again on this node, while a disk that has not grown yet
// does so in a moment.
func (s *nodeServer) expandError(ctx context.Context, r *csi.NodeExpandVolumeRequest, err error) error {
	err = s.unknown(ctx, r.GetVolumeId(), err)
	switch {
	case host.IsKind(err, host.KindPrecondition):
		return recode(ErrUnavailable, err)
	case host.IsKind(err, host.KindInvalid) && r.GetCapacityRange().GetLimitBytes() > 0:
		return recode(ErrOutOfRange, err)
	default:
		return err
	}
}

// NodeGetVolumeStats says how full a volume is. A path with something else than a
// volume is one at which the volume is not found.
func (s *nodeServer) NodeGetVolumeStats(ctx context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := checkVolumePath(r.GetVolumeId(), r.GetVolumePath()); err != nil {
		return nil, err
	}
	stats, err := s.node.Stats(ctx, node.StatsRequest{VolumeID: r.GetVolumeId(), Path: r.GetVolumePath()})
	if host.IsKind(err, host.KindPrecondition) {
		return nil, recode(ErrNotFound, err)
	}
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{
		Unit: csi.VolumeUsage_BYTES, Total: stats.TotalBytes, Used: stats.UsedBytes, Available: stats.AvailableBytes,
	}}}, nil
}

// NodeGetVolumeHealth says what is wrong with a volume as the node sees it, and what
// the backend adds. Without a path the node can say nothing.
func (s *nodeServer) NodeGetVolumeHealth(ctx context.Context, r *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	var conditions []node.HealthCondition
	if r.GetStagingTargetPath() != "" || r.GetVolumePublishPath() != "" {
		health, err := s.node.Health(ctx, node.HealthRequest{
			VolumeID: r.GetVolumeId(), StagingPath: r.GetStagingTargetPath(), TargetPath: r.GetVolumePublishPath()})
		if err != nil {
			return nil, err
		}
		conditions = health.Conditions
	} else if s.driver.backend != nil {
		if _, err := s.driver.backend.GetVolume(ctx, VolumeRequest{VolumeID: r.GetVolumeId()}); err != nil {
			return nil, err
		}
	}
	if reporter, ok := s.backend.(NodeHealth); ok {
		more, err := reporter.NodeVolumeHealth(ctx, r.GetVolumeId())
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, more...)
	}
	statuses, err := conditionAnswers(conditions, secretsOf(r))
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeHealthResponse{
		VolumeHealth: &csi.VolumeHealth{VolumeId: r.GetVolumeId(), HealthStatuses: statuses}}, nil
}

// NodeGetStorageHealth says whether the node reaches the backend.
func (s *nodeServer) NodeGetStorageHealth(ctx context.Context, r *csi.NodeGetStorageHealthRequest) (*csi.NodeGetStorageHealthResponse, error) {
	reporter, ok := s.backend.(NodeStorageHealth)
	if !ok {
		return nil, refuse(ErrUnsupported, "NodeGetStorageHealth", "the backend of this driver cannot do it")
	}
	conditions, err := reporter.StorageHealth(ctx, r.GetSecrets())
	if err != nil {
		return nil, err
	}
	answer, known := &csi.NodeGetStorageHealthResponse{}, secretsOf(r)
	said := map[StorageCondition]bool{}
	for _, c := range conditions {
		if c.Reason == "" || len(c.Reason) > idBytesMax {
			return nil, wrong("a storage condition with reason %.32q, CSI wants 1 to %d bytes", c.Reason, idBytesMax)
		}
		key := StorageCondition{Unreachable: c.Unreachable, Reason: c.Reason}
		if said[key] {
			continue
		}
		said[key] = true
		status := csi.StorageHealthErrorType_STORAGE_DEGRADED
		if c.Unreachable {
			status = csi.StorageHealthErrorType_STORAGE_UNREACHABLE
		}
		answer.BackendHealth = append(answer.BackendHealth, &csi.NodeGetStorageHealthResponse_StorageBackendHealth{
			Status: status, Reason: c.Reason, Message: messageAnswer(c.Message, known)})
	}
	return answer, nil
}

// NodeGetInfo says who the node is, where, and how many volumes it takes.
func (s *nodeServer) NodeGetInfo(ctx context.Context, _ *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	answer := &csi.NodeGetInfoResponse{NodeId: s.NodeID}
	if topology, ok := s.backend.(NodeTopology); ok {
		place, err := topology.NodeTopology(ctx)
		if err == nil {
			err = checkTopology(place)
		}
		if err != nil {
			return nil, err
		}
		answer.AccessibleTopology = &csi.Topology{Segments: place}
	}
	if limiter, ok := s.backend.(NodeLimiter); ok {
		volumesMax, err := limiter.MaxVolumesPerNode(ctx)
		if err == nil && volumesMax < 0 {
			err = wrong("%d volumes for this node, negative", volumesMax)
		}
		if err != nil {
			return nil, err
		}
		answer.MaxVolumesPerNode = volumesMax
	}
	return answer, nil
}
