package attacher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// reconcileEvery compares attachments with the driver's listing until ctx ends.
func (r *run) reconcileEvery(ctx context.Context, interval time.Duration) {
	ticker := r.clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := r.reconcile(ctx); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "Attachments were not compared with the driver's", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// reconcile lists what is published and has the attachments worked on that the
// listing tells otherwise of. It changes nothing itself, so that all work on an
// attachment stays in one line.
func (r *run) reconcile(ctx context.Context) error {
	before, err := r.attachments.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("read VolumeAttachments: %w", err)
	}
	candidates := map[types.UID]*storagev1.VolumeAttachment{}
	for _, va := range before {
		if va.Spec.Attacher == r.driver && va.DeletionTimestamp == nil {
			candidates[va.UID] = va
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	listed, err := r.list(ctx)
	if err != nil {
		return err
	}
	for _, va := range candidates {
		r.compare(va, listed)
	}
	return nil
}

// compare acts on what a listing says of an attachment that was there before
// the listing began.
func (r *run) compare(va *storagev1.VolumeAttachment, listed listing) {
	now, err := r.attachments.Get(va.Name)
	if err != nil || now.UID != va.UID || now.DeletionTimestamp != nil || now.Status.Attached != va.Status.Attached || r.memory.isPast(now) {
		return // it is under way, and the listing may be older
	}
	volumeID, nodeID, ok := r.listedAs(now)
	if !ok {
		return
	}
	switch isPublished, isKnown := listed.has(volumeID, nodeID); {
	case !isKnown:
	case !now.Status.Attached:
		// A call whose outcome was unknown has succeeded: asked again, the
		// driver gives what the status is to hold. No need to wait longer.
		if held, isHeld := r.memory.holding(va.Name); isPublished && isHeld && held.uid == va.UID && !held.isWritten {
			r.attachmentQueue.Add(va.Name)
		}
	case isPublished:
		r.memory.listed(va.UID)
	default:
		if isFirst, mind := r.memory.missed(va.UID); mind {
			r.log.Warn("The driver does not list an attached volume as attached",
				"attachment", va.Name, "volume", volumeID, "node", va.Spec.NodeName)
			r.memory.judge(va.Name, verdict{va.UID, isFirst})
			r.attachmentQueue.Add(va.Name)
		}
	}
}

// listedAs is how the driver's listing names an attachment.
func (r *run) listedAs(va *storagev1.VolumeAttachment) (volumeID, nodeID string, ok bool) {
	v, err := r.volumeOf(va)
	if err != nil {
		return "", "", false
	}
	nodeID = va.Annotations[nodeIDAnnotation]
	if nodeID == "" {
		if nodeID, err = r.registeredNodeID(va.Spec.NodeName); err != nil {
			return "", "", false
		}
	}
	volumeID = v.source.VolumeHandle
	if v.isMigrated {
		// The handle of a translated volume may lack parts that the node tells.
		if volumeID, err = r.translator.RepairVolumeHandle(r.driver, volumeID, nodeID); err != nil {
			return "", "", false
		}
	}
	return volumeID, nodeID, true
}

// repair makes good that an attached volume is not: it is attached again where
// its node is there, and given up where that is gone, so that it can be
// attached elsewhere.
func (r *run) repair(ctx context.Context, va *storagev1.VolumeAttachment, v verdict) error {
	_, absent := r.csiNodes.Get(va.Spec.NodeName)
	isGone, err := r.isNodeGone(ctx, va.Spec.NodeName, v.isFirst)
	if err != nil {
		return err
	}
	if !isGone {
		return r.attach(ctx, va)
	}
	text := fmt.Errorf("node %s is gone, and the driver does not list the volume as attached to it", va.Spec.NodeName)
	r.memory.setLost(va.UID, true)
	if _, err := r.csiNodes.Get(va.Spec.NodeName); absent != nil && err == nil {
		// It came back meanwhile, and that news came too early to wake this one.
		r.memory.setLost(va.UID, false)
		return r.attach(ctx, va)
	}
	change := object{"attached": false, "attachmentMetadata": nil}
	if message := failure(va.Status.AttachError, text, metav1.NewTime(r.clock.Now())); message != nil {
		change["attachError"] = message
	}
	written, err := r.patchAttachment(ctx, va, "mark as detached", object{"status": change}, "status")
	if err != nil {
		r.memory.setLost(va.UID, false)
		return ignoreGone(err)
	}
	r.memory.outdate(written, va.ResourceVersion)
	r.log.WarnContext(ctx, "Marked as detached", "attachment", va.Name, "error", text)
	return nil
}

// isNodeGone reports whether a node is gone. Its CSINode goes with it, but a
// little later: when in doubt for the first time the API server is asked, if
// it lets nodes be read.
func (r *run) isNodeGone(ctx context.Context, name string, ask bool) (bool, error) {
	_, err := r.csiNodes.Get(name)
	if err != nil {
		return apierrors.IsNotFound(err), ignoreGone(err)
	}
	if !ask {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	switch _, err = r.env.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read node %s: %w", name, err)
	default:
		return false, nil
	}
}

// listing is what a driver lists: the nodes that each volume is published to.
type listing map[string]published

type published struct {
	nodes map[string]bool
	// isUnknown says that the driver lists the volume without its nodes.
	isUnknown bool
}

// has reports whether a volume is published to a node, if that is known.
func (l listing) has(volumeID, nodeID string) (isPublished, isKnown bool) {
	p := l[volumeID]
	return p.nodes[nodeID], !p.isUnknown
}

// pagesMax ends a listing that never ends.
const pagesMax = 100_000

// list takes the whole listing, or none of it.
func (r *run) list(ctx context.Context) (listing, error) {
	all, seen := listing{}, map[string]bool{}
	token := ""
	for range pagesMax {
		page, err := r.listPage(ctx, token)
		if err != nil {
			return nil, err
		}
		for _, entry := range page.GetEntries() {
			if err := all.add(entry); err != nil {
				return nil, fmt.Errorf("list volumes: %w", err)
			}
		}
		token = page.GetNextToken()
		if token == "" {
			return all, nil
		}
		if seen[token] {
			return nil, errors.New("list volumes: a page names itself or an earlier one as the next")
		}
		seen[token] = true
	}
	return nil, fmt.Errorf("list volumes: there are more than %d pages", pagesMax)
}

func (r *run) listPage(ctx context.Context, token string) (*csi.ListVolumesResponse, error) {
	call, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	request := &csi.ListVolumesRequest{StartingToken: token, MaxEntries: int32(r.config.MaxEntries)} //nolint:gosec // checked by Config
	page, err := r.controller.ListVolumes(call, request)
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	return page, nil
}

func (l listing) add(entry *csi.ListVolumesResponse_Entry) error {
	id := entry.GetVolume().GetVolumeId()
	if id == "" {
		return errors.New("an entry has no volume id")
	}
	p := published{nodes: map[string]bool{}, isUnknown: entry.GetStatus() == nil}
	for _, node := range entry.GetStatus().GetPublishedNodeIds() {
		p.nodes[node] = true
	}
	if other, isTwice := l[id]; isTwice && !p.equal(other) {
		return fmt.Errorf("volume %q is listed twice with different nodes", id)
	}
	l[id] = p
	return nil
}

func (p published) equal(other published) bool {
	if p.isUnknown != other.isUnknown || len(p.nodes) != len(other.nodes) {
		return false
	}
	for node := range p.nodes {
		if !other.nodes[node] {
			return false
		}
	}
	return true
}
