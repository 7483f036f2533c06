package snapshotter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	groupv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/client-go/tools/cache"
)

// groups are the contents of group snapshots.
type groups struct {
	contents, classes cache.Indexer
	api               groupAPI
	controller        csi.GroupControllerClient
}

// groupContentOf reads a content of any version.
func groupContentOf(raw any) (*content, error) {
	object, err := groupContentV1(raw)
	if err != nil {
		return nil, err
	}
	c := &content{
		words:        &groupWords,
		meta:         object.ObjectMeta,
		driver:       object.Spec.Driver,
		className:    value(object.Spec.VolumeGroupSnapshotClassName),
		deletePolicy: object.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete,
		ref:          object.Spec.VolumeGroupSnapshotRef,
		volumes:      object.Spec.Source.VolumeHandles,
	}
	if given := object.Spec.Source.GroupSnapshotHandles; given != nil {
		c.given, c.givenMembers = given.VolumeGroupSnapshotHandle, given.VolumeSnapshotHandles
	}
	if s := object.Status; s != nil {
		c.status = status{
			handle: value(s.VolumeGroupSnapshotHandle),
			ready:  value(s.ReadyToUse), readySet: s.ReadyToUse != nil,
			timeKnown: s.CreationTime != nil,
			failure:   failureOf(s.Error),
		}
		for _, info := range s.VolumeSnapshotInfoList {
			c.status.members = append(c.status.members, member{
				Volume: info.VolumeHandle, Handle: info.SnapshotHandle,
				TimeNs: info.CreationTime, Ready: info.ReadyToUse, SizeBytes: info.RestoreSize,
			})
		}
	}
	return c, nil
}

func (*groups) contentOf(object any) (*content, error) { return groupContentOf(object) }

func (g *groups) cached(name string) (*content, error) {
	object, found, err := g.contents.GetByKey(name)
	if err != nil || !found {
		return nil, err
	}
	return groupContentOf(object)
}

func (g *groups) class(name string) (parameters map[string]string, driver string, found bool, err error) {
	object, found, err := g.classes.GetByKey(name)
	if err != nil || !found {
		return nil, "", false, err
	}
	// All versions spell these fields alike.
	data, err := json.Marshal(object)
	if err != nil {
		return nil, "", false, err
	}
	var class groupv1.VolumeGroupSnapshotClass
	if err := json.Unmarshal(data, &class); err != nil {
		return nil, "", false, err
	}
	return class.Parameters, class.Driver, true, nil
}

func (g *groups) patch(ctx context.Context, name string, data []byte, subresources ...string) (*content, error) {
	object, err := g.api.patch(ctx, name, data, subresources...)
	if err != nil {
		return nil, err
	}
	return groupContentOf(object)
}

func (g *groups) take(ctx context.Context, c *content, request request) (*answer, error) {
	response, err := g.controller.CreateVolumeGroupSnapshot(ctx, &csi.CreateVolumeGroupSnapshotRequest{
		Name: request.name, SourceVolumeIds: c.volumes, Parameters: request.parameters, Secrets: request.secrets,
	})
	if err != nil {
		return nil, err
	}
	a, err := groupAnswerOf(response.GetGroupSnapshot())
	if err == nil && !c.released() {
		// Nobody would miss the snapshot of one volume before it is needed. What is
		// to be removed need not be whole.
		err = a.lacks(c.volumes)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// lacks is the error of an answer without a snapshot of each volume. Volumes are
// counted, as a driver may name them in another way than they were named to it.
func (a *answer) lacks(volumes []string) error {
	named := 0
	for _, one := range a.members {
		if one.Handle != "" {
			named++
		}
	}
	if named < len(volumes) {
		return fmt.Errorf("group snapshot %s has %d snapshots of %d volumes", a.handle, named, len(volumes))
	}
	return nil
}

// canLook: a driver that takes group snapshots can tell of them, by CSI.
func (*groups) canLook() bool { return true }

func (g *groups) look(ctx context.Context, c *content, secrets map[string]string) (*answer, error) {
	handle := c.status.handle
	if handle == "" {
		handle = c.given
	}
	response, err := g.controller.GetVolumeGroupSnapshot(ctx, &csi.GetVolumeGroupSnapshotRequest{
		GroupSnapshotId: handle, SnapshotIds: memberHandles(c), Secrets: secrets,
	})
	if err != nil {
		return nil, fmt.Errorf("GetVolumeGroupSnapshot %s: %w", handle, err)
	}
	a, err := groupAnswerOf(response.GetGroupSnapshot())
	switch {
	case err != nil:
		return nil, fmt.Errorf("GetVolumeGroupSnapshot %s: %w", handle, err)
	case a.handle != handle:
		return nil, fmt.Errorf("GetVolumeGroupSnapshot %s: the driver tells of group snapshot %s", handle, a.handle)
	}
	return a, nil
}

func (g *groups) remove(ctx context.Context, c *content, handle string, secrets map[string]string) error {
	_, err := g.controller.DeleteVolumeGroupSnapshot(ctx, &csi.DeleteVolumeGroupSnapshotRequest{
		GroupSnapshotId: handle, SnapshotIds: memberHandles(c), Secrets: secrets,
	})
	return err
}

// memberHandles are the members' handles, as the driver gave them or, for a
// group that was there before, as its content does.
func memberHandles(c *content) []string {
	if len(c.status.members) == 0 {
		return c.givenMembers
	}
	var handles []string
	for _, member := range c.status.members {
		handles = append(handles, member.Handle)
	}
	return handles
}

func (g *groups) statusOf(c *content, a *answer, now time.Time) map[string]any {
	fields := map[string]any{}
	commonStatus(fields, c, a)
	if c.status.handle == "" {
		fields["volumeGroupSnapshotHandle"] = a.handle
	}
	if !c.status.timeKnown {
		taken := a.time
		if taken.IsZero() {
			taken = now
		}
		fields["creationTime"] = taken.UTC().Format(time.RFC3339)
	}
	if members, changed := g.membersOf(c, a); changed {
		fields[g.api.membersField] = members
	}
	return fields
}

func (*groups) cleared() map[string]any {
	return map[string]any{"volumeGroupSnapshotHandle": nil, "readyToUse": nil, "creationTime": nil, "error": nil}
}

// membersOf gives the members to put into the status. Who they are is said
// once, when the group is taken; later answers tell how they are. The members
// of a group that was there before have contents of their own.
func (g *groups) membersOf(c *content, a *answer) (members []member, changed bool) {
	if !c.dynamic() {
		return nil, false
	}
	if len(c.status.members) == 0 {
		if !g.api.memberStates {
			return withoutState(a.members), len(a.members) > 0
		}
		return a.members, len(a.members) > 0
	}
	if !g.api.memberStates {
		return nil, false
	}
	said := map[string]member{}
	for _, member := range a.members {
		said[member.Handle] = member
	}
	for _, was := range c.status.members {
		is, ok := said[was.Handle]
		if !ok {
			is = was
		}
		if value(is.Ready) != value(was.Ready) || value(is.SizeBytes) != value(was.SizeBytes) {
			changed = true
		} else {
			is = was
		}
		members = append(members, is)
	}
	return members, changed
}

func withoutState(members []member) []member {
	var pairs []member
	for _, one := range members {
		pairs = append(pairs, member{Volume: one.Volume, Handle: one.Handle})
	}
	return pairs
}

// groupAnswerOf reads what the driver says of a group snapshot.
func groupAnswerOf(group *csi.VolumeGroupSnapshot) (*answer, error) {
	if group.GetGroupSnapshotId() == "" {
		return nil, errors.New("the driver answered without a group_snapshot_id")
	}
	a := &answer{handle: group.GetGroupSnapshotId(), ready: group.GetReadyToUse(), time: timeOf(group.GetCreationTime())}
	for _, snapshot := range group.GetSnapshots() {
		ready := snapshot.GetReadyToUse()
		one := member{Volume: snapshot.GetSourceVolumeId(), Handle: snapshot.GetSnapshotId(), Ready: &ready}
		if taken := timeOf(snapshot.GetCreationTime()); !taken.IsZero() {
			ns := taken.UnixNano()
			one.TimeNs = &ns
		}
		if size := snapshot.GetSizeBytes(); size > 0 {
			one.SizeBytes = &size
		}
		a.members = append(a.members, one)
	}
	return a, nil
}
