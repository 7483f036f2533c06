package smb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/csikit"
)

var (
	_ csikit.Backend           = (*Backend)(nil)
	_ csikit.Cloner            = (*Backend)(nil)
	_ csikit.Expander          = (*Backend)(nil)
	_ csikit.Modifier          = (*Backend)(nil)
	_ csikit.VolumeLister      = (*Backend)(nil)
	_ csikit.Snapshotter       = (*Backend)(nil)
	_ csikit.SnapshotLister    = (*Backend)(nil)
	_ csikit.SnapshotRestorer  = (*Backend)(nil)
	_ csikit.HealthReporter    = (*Backend)(nil)
	_ csikit.CapacityReporter  = (*Backend)(nil)
	_ csikit.CapabilityChecker = (*Backend)(nil)
	_ csikit.ParameterChecker  = (*Backend)(nil)
	_ csikit.Prober            = (*Backend)(nil)
	_ csikit.NodeBackend       = (*Backend)(nil)
	_ csikit.NodeStorageHealth = (*Backend)(nil)
	_ csikit.StatsChecker      = (*Backend)(nil)
)

// Contexts of volumes have no keys: a node reads all it needs from the id.

// CreateVolume implements csikit.Backend. The size is remembered, not enforced.
func (b *Backend) CreateVolume(ctx context.Context, request csikit.CreateVolumeRequest) (csikit.Volume, error) {
	return b.create(ctx, request, nil)
}

// create makes a volume, empty or of a source, or returns the one of this name.
func (b *Backend) create(ctx context.Context, request csikit.CreateVolumeRequest, from *copySource) (volume csikit.Volume, err error) {
	at, mode, err := b.parameters(request.Parameters)
	if err == nil {
		mode, err = onDeleteOf(request.MutableParameters, mode)
	}
	if err != nil {
		return volume, err
	}
	if _, err := sizeOf(request.Capacity); err != nil {
		return volume, err
	}
	folder, err := newFolder(at, request.Name)
	if err != nil {
		return volume, err
	}
	err = b.in(ctx, at, request.Secrets, func(r *root) error {
		found, err := r.present(folder, request.Name)
		if found == nil && err == nil {
			wanted := record{Name: request.Name, OnDelete: mode}
			if from == nil {
				found, err = r.makeEmpty(folder, wanted, request.Capacity)
			} else {
				found, err = b.makeCopy(r, folder, wanted, request, *from)
			}
		}
		if err == nil {
			volume = volumeOf(volumeKey{at, folder}, *found)
		}
		return err
	})
	if err != nil {
		return csikit.Volume{}, fmt.Errorf("volume %q: %w", request.Name, err)
	}
	return volume, nil
}

// present is what there is of a name, complete, or nil.
func (r *root) present(folder, name string) (*record, error) {
	found, there, err := r.volume(folder)
	switch {
	case err != nil:
		return nil, err
	case found != nil && (found.Retained && there || found.Name != name):
		return nil, fmt.Errorf("folder %s of %s belongs to %q, which was deleted and retained, or to another volume: %w", folder, r.at, found.Name, csikit.ErrExists)
	case found == nil && there:
		return nil, fmt.Errorf("folder %s of %s was not made by this driver: %w", folder, r.at, csikit.ErrExists)
	case !there:
		return nil, nil
	case !found.Complete:
		return r.complete(folder, *found)
	}
	return found, nil
}

// makeEmpty makes an empty folder with a record.
func (r *root) makeEmpty(folder string, wanted record, capacity csikit.CapacityRange) (_ *record, err error) {
	if wanted.SizeBytes, err = sizeOf(capacity); err != nil {
		return nil, err
	}
	return r.make(folder, wanted, func(bool) error { return kindOf(r.share.Mkdir(r.path(folder), 0o777)) })
}

// make writes a record, makes what it tells of, and says in the record that it is
// complete. What makes it is told whether a call before this one began to make the same.
func (r *root) make(folder string, wanted record, makeFolder func(resume bool) error) (*record, error) {
	found, err := r.readRecord(folder)
	if err != nil {
		return nil, err
	}
	wanted.CreatedAt = time.Now().UTC()
	if err := r.writeRecord(folder, wanted); err != nil {
		return nil, err
	}
	if err := makeFolder(found != nil && found.Source == wanted.Source && !found.Retained); err != nil {
		return nil, err
	}
	return r.complete(folder, wanted)
}

func (r *root) complete(folder string, found record) (*record, error) {
	found.Complete = true
	return &found, r.writeRecord(folder, found)
}

func sizeOf(capacity csikit.CapacityRange) (int64, error) {
	required, limit := capacity.RequiredBytes, capacity.LimitBytes
	if required < 0 || limit < 0 || limit > 0 && required > limit {
		return 0, fmt.Errorf("size from %d to %d bytes: %w", required, limit, csikit.ErrOutOfRange)
	}
	if required == 0 {
		required = sizeBytesDefault
		if limit > 0 {
			required = min(required, limit)
		}
	}
	return required, nil
}

// volume is what there is of a volume: a record or nil, and whether its folder is there.
func (r *root) volume(folder string) (*record, bool, error) {
	found, err := r.readRecord(folder)
	if err != nil {
		return nil, false, err
	}
	there, err := r.exists(folder)
	return found, there, err
}

// existing is the record of a volume that exists, or ErrNotFound.
func (r *root) existing(folder string) (record, error) {
	found, there, err := r.volume(folder)
	if err == nil && (found == nil || !there || !found.Complete || found.Retained) {
		err = csikit.ErrNotFound
	}
	if err != nil {
		return record{}, err
	}
	return *found, nil
}

func volumeOf(key volumeKey, found record) csikit.Volume {
	volume := csikit.Volume{ID: key.String(), CapacityBytes: found.SizeBytes}
	switch {
	case strings.HasPrefix(found.Source, idPrefixSnapshot):
		volume.Source = &csikit.ContentSource{SnapshotID: found.Source}
	case found.Source != "":
		volume.Source = &csikit.ContentSource{VolumeID: found.Source}
	}
	return volume
}

// GetVolume implements csikit.Backend.
func (b *Backend) GetVolume(ctx context.Context, request csikit.VolumeRequest) (volume csikit.Volume, err error) {
	err = b.withVolume(ctx, request, func(_ *root, key volumeKey, found record) error {
		volume = volumeOf(key, found)
		return nil
	})
	return volume, err
}

// withVolume calls use with a volume that exists.
func (b *Backend) withVolume(ctx context.Context, request csikit.VolumeRequest, use func(*root, volumeKey, record) error) error {
	key, err := b.key(request.VolumeID)
	if err != nil {
		return err
	}
	err = b.in(ctx, key.at, request.Secrets, func(r *root) error {
		found, err := r.existing(key.folder)
		if err != nil {
			return err
		}
		return use(r, key, found)
	})
	if err != nil {
		return fmt.Errorf("volume %q: %w", request.VolumeID, err)
	}
	return nil
}

// ExpandVolume implements csikit.Expander. A folder has no size of its own, so the
// new one is remembered, and nodes have nothing to do.
func (b *Backend) ExpandVolume(ctx context.Context, request csikit.ExpandRequest) (volume csikit.Volume, err error) {
	sizeBytes, err := sizeOf(request.Capacity)
	if err != nil {
		return volume, err
	}
	err = b.withVolume(ctx, csikit.VolumeRequest{VolumeID: request.VolumeID, Secrets: request.Secrets}, func(r *root, key volumeKey, found record) error {
		if request.Capacity.LimitBytes > 0 && found.SizeBytes > request.Capacity.LimitBytes {
			return fmt.Errorf("it has %d bytes already, more than the limit of %d: %w", found.SizeBytes, request.Capacity.LimitBytes, csikit.ErrOutOfRange)
		}
		if request.Capacity.RequiredBytes > 0 && sizeBytes > found.SizeBytes {
			found.SizeBytes = sizeBytes
			if err := r.writeRecord(key.folder, found); err != nil {
				return err
			}
		}
		volume = volumeOf(key, found)
		return nil
	})
	return volume, err
}

// ModifyVolume implements csikit.Modifier: what becomes of the data at the end may be
// decided anew until then.
func (b *Backend) ModifyVolume(ctx context.Context, request csikit.ModifyRequest) error {
	return b.withVolume(ctx, csikit.VolumeRequest{VolumeID: request.VolumeID, Secrets: request.Secrets}, func(r *root, key volumeKey, found record) error {
		mode, err := onDeleteOf(request.MutableParameters, found.OnDelete)
		if err != nil || mode == found.OnDelete {
			return err
		}
		found.OnDelete = mode
		return r.writeRecord(key.folder, found)
	})
}
