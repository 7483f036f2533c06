package snapshotter

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// lacking is what a driver lacks to take snapshots, and groups of them; empty
// where it can.
func lacking(info csiclient.Info) (snapshots, groups string) {
	if !info.Controller[csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT] {
		return "CREATE_DELETE_SNAPSHOT", "CREATE_DELETE_SNAPSHOT"
	}
	if !info.GroupController[csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT] {
		return "", "CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT"
	}
	return "", ""
}

// readable tells whether contents may be read that can only be refused: beside
// a driver without snapshots nobody needs to give the rights for them, and
// older clusters do not have the kinds.
func (s *Snapshotter) readable(ctx context.Context, groups bool) (bool, error) {
	var err error
	if groups {
		_, err = s.env.Snapshots.GroupsnapshotV1().VolumeGroupSnapshotContents().List(ctx, metav1.ListOptions{Limit: 1})
	} else {
		_, err = s.env.Snapshots.SnapshotV1().VolumeSnapshotContents().List(ctx, metav1.ListOptions{Limit: 1})
	}
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// refuse does for a content what can be done beside a driver that cannot take
// such snapshots: it says so, and a content that names no snapshot goes. The
// snapshot-controller has put a finalizer on it that nobody else takes away.
func (m *machine) refuse(ctx context.Context, k *known, c *content) (*content, error) {
	lack := fmt.Errorf("driver %s lacks the capability %s", m.driver, m.lacks)
	switch {
	case c.released() && (c.outcomeUnknown() || c.deletePolicy && c.handle() != "" && !c.isMember()):
		// There is, or may be, a snapshot of a time when the driver could.
		m.cannotRemove(k, c, fmt.Errorf("remove %s %s: %w", c.words.noun, c.handle(), lack))
		return nil, nil
	case c.released() && c.protected():
		return m.letGo(ctx, c)
	case c.deleting() || c.status.ready || c.isMember():
		return nil, nil
	}
	text := "Failed to create " + c.words.noun
	if c.status.failure == text+": "+lack.Error() {
		return nil, nil // trying again is of no use
	}
	return nil, m.failed(ctx, k, c, c.words.createFailed, text, lack)
}
