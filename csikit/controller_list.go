package csikit

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// known is a size that may be unknown.
func known(sizeBytes int64) *wrapperspb.Int64Value {
	if sizeBytes == 0 {
		return nil
	}
	return wrapperspb.Int64(sizeBytes)
}

// pageOf is the part of a list that is asked for.
func pageOf(token string, maxEntries int32) (Page, error) {
	if maxEntries < 0 {
		return Page{}, refuse(ErrInvalid, "max_entries", "is %d, negative", maxEntries)
	}
	return Page{Token: token, MaxEntries: int(maxEntries)}, nil
}

// checkPage holds a part of a list to what was asked for. A token that leads to
// itself would have the caller go round for ever.
func checkPage(page Page, entries int, nextToken string) error {
	switch {
	case page.MaxEntries > 0 && entries > page.MaxEntries:
		return wrong("%d entries, asked was for at most %d", entries, page.MaxEntries)
	case nextToken != "" && nextToken == page.Token:
		return wrong("the next token is the one that was given")
	case len(nextToken) > idBytesMax:
		return wrong("the next token has %d bytes, CSI allows %d", len(nextToken), idBytesMax)
	}
	return checkPlain("the next token", nextToken)
}

// ListVolumes lists the volumes, and where they are attached.
func (c *controller) ListVolumes(ctx context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	lister, err := part[VolumeLister](c, "ListVolumes")
	if err != nil {
		return nil, err
	}
	page, err := pageOf(r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	list, err := lister.ListVolumes(ctx, page)
	if err != nil {
		return nil, err
	}
	if err := checkPage(page, len(list.Volumes), list.NextToken); err != nil {
		return nil, err
	}
	answer := &csi.ListVolumesResponse{NextToken: list.NextToken}
	for _, volume := range list.Volumes {
		v, err := c.driver.volumeAnswer(volume)
		if err != nil {
			return nil, err
		}
		entry := &csi.ListVolumesResponse_Entry{Volume: v}
		if is[Attacher](c.backend) {
			entry.Status = &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: volume.NodeIDs}
		}
		answer.Entries = append(answer.Entries, entry)
	}
	return answer, nil
}

// ListSnapshots lists snapshots. A filter that fits nothing gives an empty list.
func (c *controller) ListSnapshots(ctx context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	lister, err := part[SnapshotLister](c, "ListSnapshots")
	if err != nil {
		return nil, err
	}
	page, err := pageOf(r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	list, err := lister.ListSnapshots(ctx, ListSnapshotsRequest{
		Page: page, SourceVolumeID: r.GetSourceVolumeId(), SnapshotID: r.GetSnapshotId(), Secrets: r.GetSecrets()})
	if says(err, codes.NotFound) {
		return &csi.ListSnapshotsResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := checkPage(page, len(list.Snapshots), list.NextToken); err != nil {
		return nil, err
	}
	answer := &csi.ListSnapshotsResponse{NextToken: list.NextToken}
	for _, snapshot := range list.Snapshots {
		s, err := snapshotAnswer(snapshot, is[SnapshotPlacer](c.backend))
		if err != nil {
			return nil, err
		}
		if id := r.GetSnapshotId(); id != "" && s.GetSnapshotId() != id {
			return nil, wrong("snapshot %s, asked was for %s", s.GetSnapshotId(), id)
		}
		if id := r.GetSourceVolumeId(); id != "" && s.GetSourceVolumeId() != id {
			return nil, wrong("snapshot %s of volume %s, asked was for volume %s", s.GetSnapshotId(), s.GetSourceVolumeId(), id)
		}
		answer.Entries = append(answer.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: s})
	}
	return answer, nil
}

// ControllerGetVolumeHealth says what is wrong with a volume.
func (c *controller) ControllerGetVolumeHealth(
	ctx context.Context, r *csi.ControllerGetVolumeHealthRequest,
) (*csi.ControllerGetVolumeHealthResponse, error) {
	reporter, err := part[HealthReporter](c, "ControllerGetVolumeHealth")
	if err != nil {
		return nil, err
	}
	health, err := reporter.VolumeHealth(ctx, VolumeRequest{VolumeID: r.GetVolumeId(), Secrets: r.GetSecrets()})
	if err != nil {
		return nil, err
	}
	answer, err := healthAnswer(r.GetVolumeId(), health, secretsOf(r))
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: answer}, nil
}

// ControllerListVolumeHealth lists the volumes that something is wrong with.
func (c *controller) ControllerListVolumeHealth(
	ctx context.Context, r *csi.ControllerListVolumeHealthRequest,
) (*csi.ControllerListVolumeHealthResponse, error) {
	reporter, err := part[HealthReporter](c, "ControllerListVolumeHealth")
	if err != nil {
		return nil, err
	}
	page, err := pageOf(r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	list, err := reporter.ListVolumeHealth(ctx, page)
	if err != nil {
		return nil, err
	}
	if err := checkPage(page, len(list.Volumes), list.NextToken); err != nil {
		return nil, err
	}
	answer := &csi.ControllerListVolumeHealthResponse{NextToken: list.NextToken}
	for _, health := range list.Volumes {
		entry, err := healthAnswer(health.VolumeID, health, secretsOf(r))
		if err != nil {
			return nil, err
		}
		answer.Entries = append(answer.Entries, entry)
	}
	return answer, nil
}

func healthAnswer(volumeID string, health VolumeHealth, known secrets) (*csi.VolumeHealth, error) {
	if health.VolumeID != volumeID {
		return nil, wrong("the health of volume %.128q, asked was for %q", health.VolumeID, volumeID)
	}
	statuses, err := conditionAnswers(health.Conditions, known)
	if err = first(checkID("the volume id", volumeID), err); err != nil {
		return nil, err
	}
	return &csi.VolumeHealth{VolumeId: volumeID, HealthStatuses: statuses}, nil
}
