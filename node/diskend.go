package node

import (
	"context"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

func (k diskKind) unstage(ctx context.Context, r UnstageRequest, found place) error {
	if found.kind == placeVolume {
		number, unused, err := k.unstageVolume(ctx, r, found)
		if err == nil && unused && r.Source.Disk == nil {
			return k.logoutUnused(ctx, r, number)
		}
		return err
	}
	if found.kind == placeLink {
		if err := k.host.Rmdir(ctx, found.path, false); err != nil {
			return err
		}
	}
	if r.Source.Disk == nil {
		return nil
	}
	return k.finishUnstage(ctx, r)
}

// finishUnstage does what is left of an unstage that was cut off after it had
// unmounted the volume.
func (k diskKind) finishUnstage(ctx context.Context, r UnstageRequest) error {
	d, err := k.lookForDisk(ctx, *r.Source.Disk)
	switch {
	case host.IsKind(err, host.KindNotFound): // detached already
		return k.unmark(ctx, r)
	case host.IsKind(err, host.KindPrecondition):
		k.log.Warn("which disk an unstage is to take offline is not known", "volume", r.VolumeID, "error", err)
		return nil
	case err != nil:
		return err
	case d.System || d.known && d.Offline:
		return k.unmark(ctx, r)
	}
	if !d.known {
		if begun, err := k.isBegun(ctx, r, d.Number); err != nil || !begun {
			return err
		}
	}
	if _, err = k.letGo(ctx, d.Number, r.StagingPath); err != nil {
		return err
	}
	return k.unmark(ctx, r)
}

// unstageVolume writes back what is cached, removes the mount point found, and
// takes the disk offline unless something else on it is in use. It returns the
// disk, and whether that is out of use now.
func (k diskKind) unstageVolume(ctx context.Context, r UnstageRequest, found place) (number uint32, unused bool, err error) {
	volume, err := k.mountedVolume(ctx, found.volumeID)
	gone := err != nil && k.isGone(ctx, found.volumeID, err)
	if err != nil && !gone {
		return 0, false, err
	}
	if gone {
		if err := k.dropGoneDisk(ctx, found); err != nil {
			return 0, false, err
		}
	}
	if gone && (found.isMount || found.leadsTo == "") {
		// The folder of the mount point stays, as it does when the volume is there.
		// An agent that has to see the volume for that cannot.
		err := k.host.UnmountVolume(ctx, found.volumeID, found.path)
		if err == nil || k.knows("GetVolume") {
			return 0, false, err
		}
	}
	if gone || !found.isMount && found.leadsTo != "" {
		// A mount point of nothing, or a link somebody put here: only it goes.
		return volume.DiskNumber, false, k.host.Rmdir(ctx, found.path, false)
	}
	release, err := k.locks.acquire(ctx, "Unstage", diskKey(volume.DiskNumber))
	if err != nil {
		return volume.DiskNumber, false, err
	}
	defer release()
	if err := k.mark(ctx, r, volume.DiskNumber); err != nil {
		return volume.DiskNumber, false, err
	}
	// The hold goes first: until the volume is unmounted, the path says whose it is.
	last, err := k.dropDiskHold(ctx, volume.ID, found.path)
	if err != nil {
		return volume.DiskNumber, false, err
	}
	// UnmountVolume writes the cache back first, and leaves the mount point when
	// that fails.
	if err := k.host.UnmountVolume(ctx, volume.ID, found.path); err != nil {
		return volume.DiskNumber, false, err
	}
	volume.MountPaths = slices.DeleteFunc(volume.MountPaths, func(path string) bool { return samePath(path, found.path) })
	if last {
		unused, err = k.letGoLocked(ctx, volume.DiskNumber, volume)
	}
	if err == nil {
		err = k.unmark(ctx, r)
	}
	return volume.DiskNumber, unused, err
}

// mountedVolume returns a volume with its disk and, from a host that can tell,
// where it is mounted.
func (k diskKind) mountedVolume(ctx context.Context, volumeID string) (host.VolumeInfo, error) {
	if k.knows("GetVolume") {
		volume, err := k.host.GetVolume(ctx, volumeID)
		if !k.lacking("GetVolume", err) {
			return volume, err
		}
	}
	number, err := k.host.GetDiskNumberFromVolumeID(ctx, volumeID)
	return host.VolumeInfo{ID: volumeID, DiskNumber: number}, err
}

// letGo takes a disk offline that is not mounted at stagingPath any more, so that a
// detach can finish, unless something on it is in use. It says whether the disk is
// out of use now.
func (k diskKind) letGo(ctx context.Context, number uint32, stagingPath string) (unused bool, err error) {
	release, err := k.locks.acquire(ctx, "Unstage", diskKey(number))
	if err != nil {
		return false, err
	}
	defer release()
	if last, err := k.isLastStage(ctx, number, stagingPath); err != nil || !last {
		return false, err
	}
	return k.letGoLocked(ctx, number, host.VolumeInfo{})
}

// letGoLocked is letGo under the lock of the disk. known is a volume of which the
// mount paths are known already.
func (k diskKind) letGoLocked(ctx context.Context, number uint32, known host.VolumeInfo) (unused bool, err error) {
	use, err := k.diskUse(ctx, number, known, isFolderMount)
	if err != nil {
		return false, err
	}
	if use != "" {
		k.log.Info("a disk stays online: it is in use", "disk", number, "use", use)
		return false, nil
	}
	return true, k.host.SetDiskState(ctx, number, false)
}

// isFolderMount is false for a drive letter. Windows gives one by itself to each volume
// that arrives, so for a volume that was staged it says nothing of a use.
func isFolderMount(path string) bool { return len(strings.TrimRight(path, `\`)) > len("C:") }

// isAnyMount is for volumes of which it is not known who uses them.
func isAnyMount(string) bool { return true }

// diskUse says what of a disk is in use: a mounted folder, a drive letter, or more
// volumes than a host that cannot list mounts can vouch for. Empty means nothing. On a
// disk with one volume, only the mount paths count for which isUse is true.
func (k diskKind) diskUse(ctx context.Context, number uint32, known host.VolumeInfo, isUse func(path string) bool) (use string, err error) {
	ids, err := k.host.ListVolumesOnDisk(ctx, number, 0)
	if err != nil {
		return "", err
	}
	if len(ids) > 1 {
		isUse = isAnyMount
	}
	for _, id := range ids {
		volume := known
		if !sameVolume(id, known.ID) && k.knows("GetVolume") {
			volume, err = k.host.GetVolume(ctx, id)
			if host.IsKind(err, host.KindNotFound) {
				continue
			}
			if err != nil && !k.lacking("GetVolume", err) {
				return "", err
			}
		}
		if at := slices.IndexFunc(volume.MountPaths, isUse); at >= 0 {
			return volume.MountPaths[at], nil
		}
	}
	if len(ids) > 1 && !k.knows("GetVolume") {
		return strings.Join(ids, ", "), nil
	}
	return "", nil
}
