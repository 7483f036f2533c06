package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func answerOf(s *snapshot) *csi.Snapshot {
	return &csi.Snapshot{SnapshotId: s.ID, SourceVolumeId: s.Volume, SizeBytes: s.SizeBytes, CreationTime: timestamppb.New(s.Created), ReadyToUse: true, GroupSnapshotId: s.Group}
}

// snap makes a snapshot unless one of that name is there.
func (d *driver) snap(s *state, name, of, group string) (*snapshot, error) {
	for _, one := range s.Snapshots {
		if one.Name == name {
			if one.Volume != of {
				return nil, status.Error(codes.AlreadyExists, "there of another volume")
			}
			return one, nil
		}
	}
	v := s.Volumes[of]
	if v == nil {
		return nil, status.Error(codes.NotFound, "no such volume")
	}
	made := &snapshot{ID: s.id("snap"), Name: name, Volume: of, Group: group, SizeBytes: v.SizeBytes, Created: time.Now()}
	if err := copyFiles(d.backend.folder("volumes", of), d.backend.folder("snapshots", made.ID)); err != nil {
		return nil, err
	}
	s.Snapshots[made.ID] = made
	return made, nil
}

func (d *driver) unsnap(s *state, id string) error {
	delete(s.Snapshots, id)
	return os.RemoveAll(d.backend.folder("snapshots", id))
}

func (c *controller) CreateSnapshot(_ context.Context, r *csi.CreateSnapshotRequest) (answer *csi.CreateSnapshotResponse, err error) {
	err = c.backend.change(func(s *state) error {
		made, err := c.snap(s, r.GetName(), r.GetSourceVolumeId(), "")
		if err == nil {
			answer = &csi.CreateSnapshotResponse{Snapshot: answerOf(made)}
		}
		return err
	})
	return answer, err
}

func (c *controller) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	return &csi.DeleteSnapshotResponse{}, c.backend.change(func(s *state) error { return c.unsnap(s, r.GetSnapshotId()) })
}

func (c *controller) GetSnapshot(_ context.Context, r *csi.GetSnapshotRequest) (answer *csi.GetSnapshotResponse, err error) {
	err = c.backend.look(func(s *state) error {
		one := s.Snapshots[r.GetSnapshotId()]
		if one == nil {
			return status.Error(codes.NotFound, "no such snapshot")
		}
		answer = &csi.GetSnapshotResponse{Snapshot: answerOf(one)}
		return nil
	})
	return answer, err
}

func (c *controller) ListSnapshots(_ context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	answer := &csi.ListSnapshotsResponse{}
	err := c.backend.look(func(s *state) error {
		var ids []string
		for _, id := range slices.Sorted(maps.Keys(s.Snapshots)) {
			one := s.Snapshots[id]
			if (r.GetSnapshotId() == "" || r.GetSnapshotId() == id) && (r.GetSourceVolumeId() == "" || r.GetSourceVolumeId() == one.Volume) {
				ids = append(ids, id)
			}
		}
		from, to, next, err := page(len(ids), r.GetStartingToken(), r.GetMaxEntries())
		answer.NextToken = next
		for _, id := range ids[from:to] {
			answer.Entries = append(answer.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: answerOf(s.Snapshots[id])})
		}
		return err
	})
	return answer, err
}

type group struct {
	csi.UnimplementedGroupControllerServer
	*driver
}

func (g *group) GroupControllerGetCapabilities(context.Context, *csi.GroupControllerGetCapabilitiesRequest) (*csi.GroupControllerGetCapabilitiesResponse, error) {
	return &csi.GroupControllerGetCapabilitiesResponse{Capabilities: []*csi.GroupControllerServiceCapability{{
		Type: &csi.GroupControllerServiceCapability_Rpc{Rpc: &csi.GroupControllerServiceCapability_RPC{
			Type: csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT}}}}}, nil
}

// groupAnswer is a group with its members.
func groupAnswer(s *state, id string) *csi.VolumeGroupSnapshot {
	answer := &csi.VolumeGroupSnapshot{GroupSnapshotId: id, ReadyToUse: true}
	for _, key := range slices.Sorted(maps.Keys(s.Snapshots)) {
		if one := s.Snapshots[key]; one.Group == id {
			answer.Snapshots = append(answer.Snapshots, answerOf(one))
			answer.CreationTime = timestamppb.New(one.Created)
		}
	}
	return answer
}

func (g *group) CreateVolumeGroupSnapshot(_ context.Context, r *csi.CreateVolumeGroupSnapshotRequest) (answer *csi.CreateVolumeGroupSnapshotResponse, err error) {
	err = g.backend.change(func(s *state) error {
		id := ""
		for known, name := range s.Groups {
			if name == r.GetName() {
				id = known
			}
		}
		if id == "" {
			for _, of := range r.GetSourceVolumeIds() {
				if s.Volumes[of] == nil {
					return status.Error(codes.NotFound, "no volume "+of)
				}
			}
			id = s.id("group")
			s.Groups[id] = r.GetName()
			for _, of := range r.GetSourceVolumeIds() {
				if _, err := g.snap(s, r.GetName()+"/"+of, of, id); err != nil {
					return err
				}
			}
		}
		answer = &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: groupAnswer(s, id)}
		return nil
	})
	return answer, err
}

func (g *group) DeleteVolumeGroupSnapshot(_ context.Context, r *csi.DeleteVolumeGroupSnapshotRequest) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	return &csi.DeleteVolumeGroupSnapshotResponse{}, g.backend.change(func(s *state) error {
		for id, one := range s.Snapshots {
			if one.Group == r.GetGroupSnapshotId() {
				if err := g.unsnap(s, id); err != nil {
					return err
				}
			}
		}
		delete(s.Groups, r.GetGroupSnapshotId())
		return nil
	})
}

func (g *group) GetVolumeGroupSnapshot(_ context.Context, r *csi.GetVolumeGroupSnapshotRequest) (answer *csi.GetVolumeGroupSnapshotResponse, err error) {
	err = g.backend.look(func(s *state) error {
		if _, there := s.Groups[r.GetGroupSnapshotId()]; !there {
			return status.Error(codes.NotFound, "no such group snapshot")
		}
		answer = &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: groupAnswer(s, r.GetGroupSnapshotId())}
		return nil
	})
	return answer, err
}
