package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	zoneKey      = "topology.plain.example.com/zone"
	capacity     = 1 << 40 // bytes of each zone
	defaultBytes = 1 << 30
)

type controller struct {
	csi.UnimplementedControllerServer
	*driver
}

func (c *controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	answer := &csi.ControllerGetCapabilitiesResponse{}
	kinds := map[string]csi.ControllerServiceCapability_RPC_Type{
		"controller":     csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		"attach":         csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		"readonly":       csi.ControllerServiceCapability_RPC_PUBLISH_READONLY,
		"list":           csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
		"published":      csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES,
		"expand":         csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		"snapshot":       csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		"list-snapshots": csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		"get-snapshot":   csi.ControllerServiceCapability_RPC_GET_SNAPSHOT,
		"get-volume":     csi.ControllerServiceCapability_RPC_GET_VOLUME,
		"clone":          csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		"capacity":       csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		"modify":         csi.ControllerServiceCapability_RPC_MODIFY_VOLUME,
		"multi-writer":   csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if c.has(name) {
			answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{
				Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: kinds[name]}}})
		}
	}
	return answer, nil
}

func (c *controller) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if r.GetName() == "" || len(r.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "name and volume_capabilities are needed")
	}
	var made volume
	err := c.backend.change(func(s *state) error {
		for _, v := range s.Volumes {
			if v.Name == r.GetName() {
				if v.SizeBytes < r.GetCapacityRange().GetRequiredBytes() {
					return status.Error(codes.AlreadyExists, "there with another size")
				}
				made = *v
				return nil
			}
		}
		v := &volume{ID: s.id("vol"), Name: r.GetName(), SizeBytes: max(r.GetCapacityRange().GetRequiredBytes(), 1), Nodes: map[string]bool{}, Parameters: map[string]string{}}
		if r.GetCapacityRange() == nil {
			v.SizeBytes = defaultBytes
		}
		maps.Copy(v.Parameters, r.GetParameters())
		maps.Copy(v.Parameters, r.GetMutableParameters())
		if c.has("topology") {
			v.Zone = firstZone(r.GetAccessibilityRequirements())
		}
		if err := c.fill(s, v, r.GetVolumeContentSource()); err != nil {
			return err
		}
		s.Volumes[v.ID] = v
		made = *v
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer := &csi.Volume{VolumeId: made.ID, CapacityBytes: made.SizeBytes, ContentSource: r.GetVolumeContentSource(), VolumeContext: map[string]string{"name": made.Name}}
	if made.Zone != "" {
		answer.AccessibleTopology = []*csi.Topology{{Segments: map[string]string{zoneKey: made.Zone}}}
	}
	return &csi.CreateVolumeResponse{Volume: answer}, nil
}

func firstZone(r *csi.TopologyRequirement) string {
	for _, t := range slices.Concat(r.GetPreferred(), r.GetRequisite()) {
		if zone := t.GetSegments()[zoneKey]; zone != "" {
			return zone
		}
	}
	return ""
}

// fill makes the folder of a volume, with the files of its source.
func (c *controller) fill(s *state, v *volume, source *csi.VolumeContentSource) error {
	folder := c.backend.folder("volumes", v.ID)
	switch {
	case source.GetSnapshot() != nil:
		from := s.Snapshots[source.GetSnapshot().GetSnapshotId()]
		if from == nil || !c.has("snapshot") {
			return status.Error(codes.NotFound, "no such snapshot")
		}
		v.Source = from.ID
		return copyFiles(c.backend.folder("snapshots", from.ID), folder)
	case source.GetVolume() != nil:
		from := s.Volumes[source.GetVolume().GetVolumeId()]
		if from == nil || !c.has("clone") {
			return status.Error(codes.NotFound, "no such volume")
		}
		v.Source = from.ID
		return copyFiles(c.backend.folder("volumes", from.ID), folder)
	default:
		return os.MkdirAll(folder, 0o777)
	}
}

func (c *controller) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	err := c.backend.change(func(s *state) error {
		v := s.Volumes[r.GetVolumeId()]
		if v == nil {
			return nil
		}
		if len(v.Nodes) > 0 {
			return status.Error(codes.FailedPrecondition, "attached")
		}
		delete(s.Volumes, v.ID)
		return os.RemoveAll(c.backend.folder("volumes", v.ID))
	})
	return &csi.DeleteVolumeResponse{}, err
}

func (c *controller) ControllerPublishVolume(_ context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	err := c.backend.change(func(s *state) error {
		v := s.Volumes[r.GetVolumeId()]
		if v == nil {
			return status.Error(codes.NotFound, "no such volume")
		}
		if readonly, there := v.Nodes[r.GetNodeId()]; there && readonly != r.GetReadonly() {
			return status.Error(codes.AlreadyExists, "attached otherwise")
		}
		for other := range v.Nodes {
			if other != r.GetNodeId() && r.GetVolumeCapability().GetAccessMode().GetMode() < csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY {
				return status.Error(codes.FailedPrecondition, "attached to another node")
			}
		}
		v.Nodes[r.GetNodeId()] = r.GetReadonly()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"device": "/dev/" + r.GetVolumeId()}}, nil
}

func (c *controller) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	err := c.backend.change(func(s *state) error {
		if v := s.Volumes[r.GetVolumeId()]; v != nil {
			delete(v.Nodes, r.GetNodeId())
		}
		return nil
	})
	return &csi.ControllerUnpublishVolumeResponse{}, err
}

func (c *controller) ListVolumes(_ context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	answer := &csi.ListVolumesResponse{}
	err := c.backend.look(func(s *state) error {
		ids := slices.Sorted(maps.Keys(s.Volumes))
		from, to, next, err := page(len(ids), r.GetStartingToken(), r.GetMaxEntries())
		answer.NextToken = next
		for _, id := range ids[from:to] {
			v := s.Volumes[id]
			entry := &csi.ListVolumesResponse_Entry{Volume: &csi.Volume{VolumeId: id, CapacityBytes: v.SizeBytes}}
			if c.has("published") {
				entry.Status = &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: slices.Sorted(maps.Keys(v.Nodes))}
			}
			answer.Entries = append(answer.Entries, entry)
		}
		return err
	})
	return answer, err
}

// page cuts a list. A token is the place of the first entry.
func page(length int, token string, entries int32) (from, to int, next string, err error) {
	if token != "" {
		if from, err = strconv.Atoi(token); err != nil || from > length {
			return 0, 0, "", status.Error(codes.Aborted, "starting_token is none of ours")
		}
	}
	to = length
	if entries > 0 && from+int(entries) < length {
		to = from + int(entries)
		next = strconv.Itoa(to)
	}
	return from, to, next, nil
}

func (c *controller) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.GetVolumeCapabilities()}}, nil
}

func (c *controller) GetCapacity(_ context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	free := int64(capacity)
	err := c.backend.look(func(s *state) error {
		for _, v := range s.Volumes {
			if zone := r.GetAccessibleTopology().GetSegments()[zoneKey]; zone == "" || zone == v.Zone {
				free -= v.SizeBytes
			}
		}
		return nil
	})
	return &csi.GetCapacityResponse{AvailableCapacity: free}, err
}

func (c *controller) ControllerExpandVolume(_ context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	var size int64
	err := c.backend.change(func(s *state) error {
		v := s.Volumes[r.GetVolumeId()]
		if v == nil {
			return status.Error(codes.NotFound, "no such volume")
		}
		v.SizeBytes = max(v.SizeBytes, r.GetCapacityRange().GetRequiredBytes())
		size = v.SizeBytes
		return nil
	})
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: c.has("node-expand")}, err
}

func (c *controller) ControllerModifyVolume(_ context.Context, r *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	err := c.backend.change(func(s *state) error {
		v := s.Volumes[r.GetVolumeId()]
		if v == nil {
			return status.Error(codes.NotFound, "no such volume")
		}
		if r.GetMutableParameters()["bad"] != "" {
			return status.Error(codes.InvalidArgument, "parameter bad is not known")
		}
		maps.Copy(v.Parameters, r.GetMutableParameters())
		return nil
	})
	return &csi.ControllerModifyVolumeResponse{}, err
}
