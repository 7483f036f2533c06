package snapshotter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotclients "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned/typed/volumesnapshot/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// snapshots are the contents of single snapshots.
type snapshots struct {
	contents, classes cache.Indexer
	client            snapshotclients.VolumeSnapshotContentInterface
	controller        csi.ControllerClient
	info              csiclient.Info
}

func snapshotContentOf(object *snapshotv1.VolumeSnapshotContent) *content {
	c := &content{
		words:        &snapshotWords,
		meta:         object.ObjectMeta,
		driver:       object.Spec.Driver,
		className:    value(object.Spec.VolumeSnapshotClassName),
		deletePolicy: object.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete,
		ref:          object.Spec.VolumeSnapshotRef,
		given:        value(object.Spec.Source.SnapshotHandle),
	}
	if handle := object.Spec.Source.VolumeHandle; handle != nil {
		c.volumes = []string{*handle}
	}
	if s := object.Status; s != nil {
		c.status = status{
			handle: value(s.SnapshotHandle), groupHandle: value(s.VolumeGroupSnapshotHandle),
			ready: value(s.ReadyToUse), readySet: s.ReadyToUse != nil,
			timeKnown: s.CreationTime != nil, restorableSet: s.RestoreSize != nil,
			failure: failureOf(s.Error),
		}
	}
	return c
}

// failureOf tells of the error in a status, be it without a text.
func failureOf(failure *snapshotv1.VolumeSnapshotError) string {
	switch {
	case failure == nil:
		return ""
	case failure.Message == nil:
		return "unknown"
	default:
		return *failure.Message
	}
}

// value is what a pointer points to, zero for nil.
func value[T any](pointer *T) (v T) {
	if pointer != nil {
		v = *pointer
	}
	return v
}

func (*snapshots) contentOf(object any) (*content, error) {
	typed, ok := object.(*snapshotv1.VolumeSnapshotContent)
	if !ok {
		return nil, fmt.Errorf("a %T is not a content of a snapshot", object)
	}
	return snapshotContentOf(typed), nil
}

func (s *snapshots) cached(name string) (*content, error) {
	object, found, err := s.contents.GetByKey(name)
	if err != nil || !found {
		return nil, err
	}
	return s.contentOf(object)
}

func (s *snapshots) class(name string) (parameters map[string]string, driver string, found bool, err error) {
	object, found, err := s.classes.GetByKey(name)
	if err != nil || !found {
		return nil, "", false, err
	}
	class := object.(*snapshotv1.VolumeSnapshotClass)
	return class.Parameters, class.Driver, true, nil
}

func (s *snapshots) patch(ctx context.Context, name string, data []byte, subresources ...string) (*content, error) {
	object, err := s.client.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return nil, err
	}
	return snapshotContentOf(object), nil
}

func (s *snapshots) take(ctx context.Context, c *content, request request) (*answer, error) {
	response, err := s.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{
		SourceVolumeId: c.volumes[0], Name: request.name, Parameters: request.parameters, Secrets: request.secrets,
	})
	if err != nil {
		return nil, err
	}
	a, err := answerOf(response.GetSnapshot())
	if err != nil {
		return nil, err
	}
	a.groupHandle = "" // it was taken alone
	return a, nil
}

func (s *snapshots) canLook() bool {
	return s.info.Controller[csi.ControllerServiceCapability_RPC_GET_SNAPSHOT] ||
		s.info.Controller[csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS]
}

func (s *snapshots) look(ctx context.Context, c *content, secrets map[string]string) (*answer, error) {
	handle := c.status.handle
	if handle == "" {
		handle = c.given
	}
	found, err := s.find(ctx, handle, secrets)
	if err != nil {
		return nil, err
	}
	a, err := answerOf(found)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look at snapshot %s: %w", handle, err)
	case a.handle != handle:
		return nil, fmt.Errorf("look at snapshot %s: the driver tells of snapshot %s", handle, a.handle)
	}
	return a, nil
}

func (s *snapshots) find(ctx context.Context, handle string, secrets map[string]string) (*csi.Snapshot, error) {
	if s.info.Controller[csi.ControllerServiceCapability_RPC_GET_SNAPSHOT] {
		response, err := s.controller.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: handle, Secrets: secrets})
		if err != nil {
			return nil, fmt.Errorf("GetSnapshot %s: %w", handle, err)
		}
		return response.GetSnapshot(), nil
	}
	response, err := s.controller.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: handle, Secrets: secrets})
	if err != nil {
		return nil, fmt.Errorf("ListSnapshots %s: %w", handle, err)
	}
	for _, entry := range response.GetEntries() {
		if entry.GetSnapshot().GetSnapshotId() == handle {
			return entry.GetSnapshot(), nil
		}
	}
	return nil, fmt.Errorf("ListSnapshots %s: the driver knows no such snapshot", handle)
}

func (s *snapshots) remove(ctx context.Context, _ *content, handle string, secrets map[string]string) error {
	_, err := s.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: handle, Secrets: secrets})
	return err
}

func (s *snapshots) statusOf(c *content, a *answer, now time.Time) map[string]any {
	fields := map[string]any{}
	commonStatus(fields, c, a)
	if c.status.handle == "" {
		fields["snapshotHandle"] = a.handle
	}
	if !c.status.timeKnown {
		taken := a.time
		if taken.IsZero() {
			taken = now
		}
		fields["creationTime"] = taken.UnixNano()
	}
	if !c.status.restorableSet && a.sizeBytes > 0 {
		fields["restoreSize"] = a.sizeBytes
	}
	if c.status.groupHandle == "" && a.groupHandle != "" {
		fields["volumeGroupSnapshotHandle"] = a.groupHandle
	}
	return fields
}

// commonStatus adds to the fields that are to change those that both kinds
// have.
func commonStatus(fields map[string]any, c *content, a *answer) {
	if !c.status.readySet || c.status.ready != a.ready {
		fields["readyToUse"] = a.ready
	}
	if c.status.failure != "" {
		fields["error"] = nil
	}
}

func (*snapshots) cleared() map[string]any {
	return map[string]any{"snapshotHandle": nil, "readyToUse": nil, "creationTime": nil, "restoreSize": nil}
}

// answerOf reads what the driver says of a snapshot.
func answerOf(snapshot *csi.Snapshot) (*answer, error) {
	if snapshot.GetSnapshotId() == "" {
		return nil, errors.New("the driver answered without a snapshot_id")
	}
	return &answer{
		handle: snapshot.GetSnapshotId(), groupHandle: snapshot.GetGroupSnapshotId(),
		ready: snapshot.GetReadyToUse(), time: timeOf(snapshot.GetCreationTime()), sizeBytes: snapshot.GetSizeBytes(),
	}, nil
}

// timeOf is when a snapshot was taken; zero when the driver does not know, be
// it that it says so with an empty time, which is one in 1970, or with one that a
// status has no number for.
func timeOf(taken *timestamppb.Timestamp) time.Time {
	if !taken.IsValid() || taken.GetSeconds() <= 0 || taken.GetSeconds() >= math.MaxInt64/int64(time.Second) {
		return time.Time{}
	}
	return taken.AsTime()
}
