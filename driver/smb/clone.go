package smb

import (
	"context"
	"fmt"

	"github.com/csi-windows/csi-windows/csikit"
)

// copySource is a volume or snapshot that is copied.
type copySource struct {
	id     string
	at     location // where its record is
	folder string
}

// CloneVolume implements csikit.Cloner. Files that change meanwhile are copied as
// they are read.
func (b *Backend) CloneVolume(ctx context.Context, request csikit.CreateVolumeRequest) (csikit.Volume, error) {
	if request.Source == nil || request.Source.VolumeID == "" {
		return csikit.Volume{}, fmt.Errorf("no volume to copy is named: %w", csikit.ErrInvalid)
	}
	key, err := b.key(request.Source.VolumeID)
	if err != nil {
		return csikit.Volume{}, fmt.Errorf("source: %w", err)
	}
	return b.create(ctx, request, &copySource{key.String(), key.at, key.folder})
}

// RestoreSnapshot implements csikit.SnapshotRestorer.
func (b *Backend) RestoreSnapshot(ctx context.Context, request csikit.CreateVolumeRequest) (csikit.Volume, error) {
	if request.Source == nil || request.Source.SnapshotID == "" {
		return csikit.Volume{}, fmt.Errorf("no snapshot to copy is named: %w", csikit.ErrInvalid)
	}
	key, err := b.snapshotKey(request.Source.SnapshotID)
	if err != nil {
		return csikit.Volume{}, fmt.Errorf("source: %w", err)
	}
	return b.create(ctx, request, &copySource{key.String(), key.at.snapshots(), key.folder})
}

// makeCopy makes a copy of a source that is at least as large.
func (b *Backend) makeCopy(r *root, folder string, wanted record, request csikit.CreateVolumeRequest, source copySource) (made *record, err error) {
	use := func(from *root) error {
		found, err := from.existing(source.folder)
		if err != nil {
			return fmt.Errorf("source %q: %w", source.id, err)
		}
		capacity := request.Capacity
		capacity.RequiredBytes = max(capacity.RequiredBytes, found.SizeBytes)
		if wanted.SizeBytes, err = sizeOf(capacity); err != nil {
			return err
		}
		wanted.Source = source.id
		made, err = r.make(folder, wanted, func(resume bool) error { return clone(from, source.folder, r, folder, resume) })
		return err
	}
	if r.at.sameShare(source.at) {
		return made, use(&root{r.ctx, source.at, r.share})
	}
	return made, b.in(r.ctx, source.at, request.Secrets, use)
}

// clone copies into a folder of the driver, which then becomes the volume at once.
func clone(from *root, fromFolder string, to *root, toFolder string, resume bool) error {
	if err := to.makeFolders(privateFolder, folderNew); err != nil {
		return err
	}
	half := to.path(privateFolder, folderNew, toFolder)
	discard := func(path string) error { return to.discard(toFolder, path) }
	if !resume {
		if err := discard(half); err != nil {
			return err
		}
	}
	c := &copier{from: from, to: to, discard: discard, resume: resume, above: map[uint64]bool{}, buffer: make([]byte, copyBufferBytes)}
	if err := c.folder(from.path(fromFolder), half); err != nil {
		return err
	}
	if err := to.trash(toFolder).empty(); err != nil {
		return err
	}
	return to.rename(half, to.path(toFolder))
}
