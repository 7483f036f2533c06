package smb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/csi-windows/csi-windows/csikit"
)

// DeleteVolume implements csikit.Backend. The record says what becomes of the data.
func (b *Backend) DeleteVolume(ctx context.Context, request csikit.VolumeRequest) error {
	key, err := b.key(request.VolumeID)
	if errors.Is(err, csikit.ErrNotFound) {
		return nil // nothing of ours
	}
	if err != nil {
		return err
	}
	err = b.in(ctx, key.at, request.Secrets, func(r *root) error { return r.delete(key.folder) })
	if err != nil {
		return fmt.Errorf("volume %q: %w", request.VolumeID, deleteError(err))
	}
	return nil
}

// deleteError is the error of a delete. When share or base are not found, nobody knows
// whether the volume is gone.
func deleteError(err error) error {
	if errors.Is(err, csikit.ErrNotFound) {
		return fmt.Errorf("%s: %w", err.Error(), csikit.ErrPrecondition)
	}
	return err
}

// delete ends a volume, as its record says, or what is left of one.
func (r *root) delete(folder string) error {
	found, there, err := r.volume(folder)
	switch {
	case err != nil:
		return err
	case found == nil && there:
		return fmt.Errorf("the folder was not made by this driver, or its record is lost: %w", csikit.ErrPrecondition)
	case found != nil && found.Retained && there:
		return nil // deleted before
	case found != nil && found.OnDelete == onDeleteRetain && there:
		found.Retained = true
		return r.writeRecord(folder, *found)
	case found != nil && found.OnDelete == onDeleteArchive && there:
		err = r.archive(folder)
	case there:
		err = r.discard(folder, r.path(folder))
	}
	if err == nil && found != nil {
		err = r.removeRecord(folder)
	}
	if err != nil {
		return err
	}
	// What calls before this one did not come to.
	return errors.Join(r.discard(folder, r.path(privateFolder, folderNew, folder)), r.trash(folder).empty())
}

// discard moves a folder of a volume into the trash. It is gone for all others then.
func (r *root) discard(folder, path string) error {
	if _, err := r.share.Lstat(path); err != nil {
		return ignoreMissing(err)
	}
	if err := r.makeFolders(privateFolder, folderTrash, folder); err != nil {
		return err
	}
	return r.rename(path, r.trash(folder).path+`\`+freshName())
}

func (r *root) archive(folder string) error {
	if err := r.makeFolders(privateFolder, folderArchive); err != nil {
		return err
	}
	name := folder + "-" + time.Now().UTC().Format("20060102T150405.000000000Z")
	return r.rename(r.path(folder), r.path(privateFolder, folderArchive, name))
}
