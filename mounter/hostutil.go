package mounter

import (
	"context"

	"github.com/csi-windows/csi-windows/host"
)

// Rescan makes the node look for new, gone and grown disks.
func (m *Mounter) Rescan() error {
	ctx, cancel := m.call()
	defer cancel()
	return m.host.Rescan(ctx)
}

// ExistsPath reports whether something is at the path; a dangling link is.
func (m *Mounter) ExistsPath(path string) (bool, error) {
	ctx, cancel := m.call()
	defer cancel()
	kind, err := m.kindOf(ctx, windowsPath(path))
	return err == nil && kind.mode != modeMissing, err
}

// PathExists is ExistsPath under the name of the kubelet's host utilities.
func (m *Mounter) PathExists(path string) (bool, error) { return m.ExistsPath(path) }

// MakeDir makes a folder and its missing parents. A folder, also one behind a live
// link or mount point, is success.
func (m *Mounter) MakeDir(path string) error {
	ctx, cancel := m.call()
	defer cancel()
	return m.host.Mkdir(ctx, windowsPath(path))
}

// Rmdir removes an empty folder, a link or a mount point. A missing path is success.
func (m *Mounter) Rmdir(path string) error {
	ctx, cancel := m.call()
	defer cancel()
	path = windowsPath(path)
	err := m.host.Rmdir(ctx, path, false)
	if err == nil {
		m.forget(path)
	}
	return err
}

// CleanupMountPoint unmounts a path and removes the folder that stays. It does with
// the host what mount.CleanupMountPoint does with the file system of the process.
func (m *Mounter) CleanupMountPoint(path string) error {
	if err := m.Unmount(path); err != nil {
		return err
	}
	return m.Rmdir(path)
}

// linksMax is how many links EvalHostSymlinks follows. Source: Symbolic Link
// Effects on File Systems Functions, limit of reparse points.
const linksMax = 63

// EvalHostSymlinks returns where the link at the path leads in the end: the path
// itself when it is no link, a mount point's path, or a path on a file server. Links
// above the path are not resolved. Without our additions a link is
// KindUnsupported.
func (m *Mounter) EvalHostSymlinks(path string) (string, error) {
	const op = "EvalHostSymlinks"
	ctx, cancel := m.call()
	defer cancel()
	path = windowsPath(path)
	for range linksMax {
		if isShare(path) {
			return path, nil
		}
		kind, err := m.kindOf(ctx, path)
		switch {
		case err != nil:
			return "", err
		case kind.mode == modeMissing:
			return "", missing(op, path)
		case kind.mode != modeLink:
			return path, nil
		}
		link, err := m.host.GetLink(ctx, path)
		if err != nil {
			return "", err
		}
		if !isLocal(link.Target) && !isShare(link.Target) {
			return "", &host.Error{Op: op, Object: path, Kind: host.KindUnsupported, Cause: errRelativeLink}
		}
		path = windowsPath(link.Target)
	}
	return "", &host.Error{Op: op, Object: path, Kind: host.KindPrecondition, Cause: errManyLinks}
}

// GetDeviceNameFromMount returns the id of the volume that is mounted at a path, or
// at what the link there leads to. The second argument, the folder of a driver,
// is ignored, as other mounters for Windows do.
func (m *Mounter) GetDeviceNameFromMount(mountPath, _ string) (string, error) {
	ctx, cancel := m.call()
	defer cancel()
	return m.host.GetVolumeIDFromTargetPath(ctx, windowsPath(mountPath))
}

// GetDiskNumber returns the number of the disk whose volume is mounted at a path.
func (m *Mounter) GetDiskNumber(mountPath string) (uint32, error) {
	return atVolume(m, mountPath, m.host.GetDiskNumberFromVolumeID)
}

// GetVolumeStats returns the sizes of the volume that is mounted at a path, or of the
// share that the path leads to, never those of the drive that holds the path. Without
// our additions a share fails.
func (m *Mounter) GetVolumeStats(mountPath string) (host.VolumeStats, error) {
	ctx, cancel := m.call()
	defer cancel()
	stats, err := m.host.GetPathStats(ctx, windowsPath(mountPath))
	if host.IsKind(err, host.KindUnsupported) {
		return atVolume(m, mountPath, m.host.GetVolumeStats)
	}
	return stats, err
}

// ResizeVolume grows the volume that is mounted at a path to the size of its disk. A
// disk that has grown is seen after Rescan.
func (m *Mounter) ResizeVolume(mountPath string) error {
	_, err := atVolume(m, mountPath, func(ctx context.Context, id string) (struct{}, error) {
		return struct{}{}, m.host.ResizeVolume(ctx, id, 0)
	})
	return err
}

// atVolume does something with the volume that is mounted at a path.
func atVolume[T any](m *Mounter, mountPath string, do func(ctx context.Context, volumeID string) (T, error)) (T, error) {
	ctx, cancel := m.call()
	defer cancel()
	id, err := m.host.GetVolumeIDFromTargetPath(ctx, windowsPath(mountPath))
	if err != nil {
		var none T
		return none, err
	}
	return do(ctx, id)
}
