package smb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/csi-windows/csi-windows/csikit"
)

// CreateSnapshot implements csikit.Snapshotter. A snapshot is a copy: what changes
// while it is made is in it or not, file by file. It is made beside the volume, on
// the server, and is there when it is complete.
func (b *Backend) CreateSnapshot(ctx context.Context, request csikit.CreateSnapshotRequest) (snapshot csikit.Snapshot, err error) {
	for name := range request.Parameters {
		if !strings.HasPrefix(name, paramsOfProvisioner) {
			return snapshot, fmt.Errorf("parameter %q is unknown; snapshots have none: %w", name, csikit.ErrInvalid)
		}
	}
	volume, err := b.key(request.SourceVolumeID)
	if err != nil {
		return snapshot, fmt.Errorf("source: %w", err)
	}
	folder, err := newFolder(volume.at, request.Name)
	if err != nil {
		return snapshot, err
	}
	err = b.in(ctx, volume.at, request.Secrets, func(r *root) error {
		found, err := r.snapshots().present(folder, request.Name)
		if found == nil && err == nil {
			found, err = r.snapshot(volume, folder, request.Name)
		}
		if err == nil {
			snapshot = snapshotOf(snapshotKey{volume.at, folder}, *found)
		}
		return err
	})
	if err != nil {
		return csikit.Snapshot{}, fmt.Errorf("snapshot %q: %w", request.Name, err)
	}
	return snapshot, nil
}

// snapshot copies a volume of this base.
func (r *root) snapshot(volume volumeKey, folder, name string) (*record, error) {
	source, err := r.existing(volume.folder)
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", volume, err)
	}
	if err := r.makeFolders(privateFolder, folderSnapshots); err != nil {
		return nil, err
	}
	to := r.snapshots()
	wanted := record{Name: name, SizeBytes: source.SizeBytes, OnDelete: onDeleteRemove, Source: volume.String()}
	return to.make(folder, wanted, func(resume bool) error { return clone(r, volume.folder, to, folder, resume) })
}

func snapshotOf(key snapshotKey, found record) csikit.Snapshot {
	return csikit.Snapshot{
		ID: key.String(), SourceVolumeID: found.Source, SizeBytes: found.SizeBytes, CreatedAt: found.CreatedAt, Ready: true,
	}
}

// GetSnapshot implements csikit.Snapshotter.
func (b *Backend) GetSnapshot(ctx context.Context, request csikit.SnapshotRequest) (snapshot csikit.Snapshot, err error) {
	key, err := b.snapshotKey(request.SnapshotID)
	if err != nil {
		return snapshot, err
	}
	err = b.in(ctx, key.at, request.Secrets, func(r *root) error {
		found, err := r.snapshots().existing(key.folder)
		snapshot = snapshotOf(key, found)
		return err
	})
	if err != nil {
		return csikit.Snapshot{}, fmt.Errorf("snapshot %q: %w", request.SnapshotID, err)
	}
	return snapshot, nil
}

// DeleteSnapshot implements csikit.Snapshotter.
func (b *Backend) DeleteSnapshot(ctx context.Context, request csikit.SnapshotRequest) error {
	key, err := b.snapshotKey(request.SnapshotID)
	if errors.Is(err, csikit.ErrNotFound) {
		return nil // nothing of ours
	}
	if err != nil {
		return err
	}
	err = b.in(ctx, key.at, request.Secrets, func(r *root) error { return r.snapshots().delete(key.folder) })
	if err != nil {
		return fmt.Errorf("snapshot %q: %w", request.SnapshotID, deleteError(err))
	}
	return nil
}

// ListSnapshots implements csikit.SnapshotLister: the snapshots of the volumes in
// the configured sources, or those that the filters name wherever they are.
func (b *Backend) ListSnapshots(ctx context.Context, request csikit.ListSnapshotsRequest) (page csikit.SnapshotPage, err error) {
	if request.SnapshotID != "" {
		return b.oneSnapshot(ctx, request)
	}
	q := query{places: b.places(), page: request.Page, secrets: request.Secrets, base: (*root).snapshots, wants: (*entry).exists}
	if request.SourceVolumeID != "" {
		volume, err := b.key(request.SourceVolumeID)
		if err != nil {
			return page, noSuchFilter(err)
		}
		q.places = []location{volume.at}
		q.wants = func(e *entry) bool { return e.exists() && e.found.Source == request.SourceVolumeID }
	}
	entries, next, err := b.list(ctx, q)
	for _, e := range entries {
		page.Snapshots = append(page.Snapshots, snapshotOf(snapshotKey{e.at, e.folder}, *e.found))
	}
	page.NextToken = next
	return page, err
}

func (b *Backend) oneSnapshot(ctx context.Context, request csikit.ListSnapshotsRequest) (page csikit.SnapshotPage, err error) {
	snapshot, err := b.GetSnapshot(ctx, csikit.SnapshotRequest{SnapshotID: request.SnapshotID, Secrets: request.Secrets})
	if err != nil {
		return page, noSuchFilter(err)
	}
	if request.SourceVolumeID == "" || request.SourceVolumeID == snapshot.SourceVolumeID {
		page.Snapshots = []csikit.Snapshot{snapshot}
	}
	return page, nil
}

// noSuchFilter is the error of a list for a filter that names nothing: none.
func noSuchFilter(err error) error {
	if errors.Is(err, csikit.ErrNotFound) || errors.Is(err, csikit.ErrInvalid) {
		return nil
	}
	return err
}
