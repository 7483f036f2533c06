package sim

import (
	"context"
	"os"

	"github.com/csi-windows/csi-windows/sim/tree"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// onFiles passes a call about files to the name space, through the gate and only
// while the node runs.
func onFiles[T any](ctx context.Context, n *Node, call, object string, do func() (T, error)) (T, error) {
	return gated(ctx, &n.gate, site{prefix: "win32." + call, object: object}, func() (T, error) {
		if n.off.Load() {
			var zero T
			return zero, n.poweredOff(call, object)
		}
		return do()
	})
}

// onHandle is onFiles for a call on an open object, which the log names by its path.
func onHandle[T any](ctx context.Context, n *Node, call string, h win32.Handle, do func() (T, error)) (T, error) {
	return onFiles(ctx, n, call, n.handlePath(h), do)
}

// handlePath is the path of an open object. While nobody watches the calls it
// is left empty.
func (n *Node) handlePath(h win32.Handle) string {
	if !n.gate.armed.Load() {
		return ""
	}
	n.mu.RLock()
	d := n.devices[h]
	n.mu.RUnlock()
	if d != nil {
		return d.path
	}
	path, err := n.files.FinalPath(context.Background(), h)
	if err != nil {
		return "" // closed, or gone with its volume
	}
	return path
}

// alone is onFiles for calls that return nothing but an error.
func alone(ctx context.Context, n *Node, call, object string, do func() error) error {
	_, err := onFiles(ctx, n, call, object, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// CreateFile implements win32.API.
func (n *Node) CreateFile(ctx context.Context, path string, open win32.Open) (win32.Handle, error) {
	return onFiles(ctx, n, "CreateFile", path, func() (win32.Handle, error) {
		if tree.IsDevice(path) {
			return n.openDevice(path, open)
		}
		n.look()
		return n.files.CreateFile(ctx, path, open)
	})
}

// OpenAt implements win32.API.
func (n *Node) OpenAt(ctx context.Context, folder win32.Handle, name string, open win32.Open) (win32.Handle, error) {
	return onFiles(ctx, n, "OpenAt", name, func() (win32.Handle, error) { return n.files.OpenAt(ctx, folder, name, open) })
}

// Info implements win32.API.
func (n *Node) Info(ctx context.Context, h win32.Handle) (win32.FileInfo, error) {
	return onHandle(ctx, n, "Info", h, func() (win32.FileInfo, error) { return n.files.Info(ctx, h) })
}

// ReadDir implements win32.API.
func (n *Node) ReadDir(ctx context.Context, h win32.Handle) ([]string, error) {
	return onHandle(ctx, n, "ReadDir", h, func() ([]string, error) { return n.files.ReadDir(ctx, h) })
}

// Delete implements win32.API.
func (n *Node) Delete(ctx context.Context, h win32.Handle) error {
	return alone(ctx, n, "Delete", n.handlePath(h), func() error { return n.files.Delete(ctx, h) })
}

// FinalPath implements win32.API.
func (n *Node) FinalPath(ctx context.Context, h win32.Handle) (string, error) {
	return onHandle(ctx, n, "FinalPath", h, func() (string, error) { return n.files.FinalPath(ctx, h) })
}

// CreateSymlink implements win32.API.
func (n *Node) CreateSymlink(ctx context.Context, folder win32.Handle, name, target string, directory bool) error {
	return alone(ctx, n, "CreateSymlink", name, func() error { return n.files.CreateSymlink(ctx, folder, name, target, directory) })
}

// FindVolumes implements win32.API. Source: FindFirstVolumeW.
func (n *Node) FindVolumes(ctx context.Context) ([]string, error) {
	return onFiles(ctx, n, "FindVolumes", "", func() ([]string, error) {
		n.look()
		n.mu.RLock()
		defer n.mu.RUnlock()
		var names []string
		for _, v := range n.volumesLocked() {
			names = append(names, v.name)
		}
		return names, nil
	})
}

// VolumePathNames implements win32.API.
func (n *Node) VolumePathNames(ctx context.Context, volume string) ([]string, error) {
	return onFiles(ctx, n, "VolumePathNames", volume, func() ([]string, error) { return n.files.VolumePathNames(ctx, volume) })
}

// SetVolumeMountPoint implements win32.API.
func (n *Node) SetVolumeMountPoint(ctx context.Context, path, volume string) error {
	return alone(ctx, n, "SetVolumeMountPoint", path, func() error { return n.files.SetVolumeMountPoint(ctx, path, volume) })
}

// DeleteVolumeMountPoint implements win32.API.
func (n *Node) DeleteVolumeMountPoint(ctx context.Context, path string) error {
	return alone(ctx, n, "DeleteVolumeMountPoint", path, func() error { return n.files.DeleteVolumeMountPoint(ctx, path) })
}

// FileAttributes implements win32.API.
func (n *Node) FileAttributes(ctx context.Context, path string) (uint32, error) {
	return onFiles(ctx, n, "FileAttributes", path, func() (uint32, error) { return n.files.FileAttributes(ctx, path) })
}

// VolumeInformation implements win32.API. A volume without a file system that
// Windows knows is ERROR_UNRECOGNIZED_VOLUME. Source: GetVolumeInformationW.
func (n *Node) VolumeInformation(ctx context.Context, root string) (win32.VolumeInfo, error) {
	return onFiles(ctx, n, "VolumeInformation", root, func() (win32.VolumeInfo, error) {
		id, err := n.files.VolumeAt(ctx, root)
		if err != nil {
			return win32.VolumeInfo{}, err
		}
		n.mu.RLock()
		defer n.mu.RUnlock()
		v := n.volumeLocked(id)
		if v == nil { // a share
			return win32.VolumeInfo{FileSystem: "NTFS"}, nil
		}
		if v.fs.Name == "" {
			return win32.VolumeInfo{}, &win32.Error{Call: "GetVolumeInformation", Object: root, Code: win32.ErrUnrecognizedVolume}
		}
		info := win32.VolumeInfo{FileSystem: v.fs.Name, Label: v.fs.Label, Serial: uint32(v.fs.Serial)}
		if v.readOnly() {
			info.Flags |= win32.ReadOnlyVolumeFlag
		}
		return info, nil
	})
}

// shareBytes is the capacity of a share that names none.
const shareBytes = 1 << 40

// DiskFreeSpace implements win32.API. Source: GetDiskFreeSpaceExW.
func (n *Node) DiskFreeSpace(ctx context.Context, path string) (totalBytes, freeBytes uint64, err error) {
	type space struct{ total, free int64 }
	s, err := onFiles(ctx, n, "DiskFreeSpace", path, func() (space, error) {
		id, err := n.files.VolumeAt(ctx, path)
		if err != nil {
			return space{}, err
		}
		n.mu.RLock()
		defer n.mu.RUnlock()
		if v := n.volumeLocked(id); v != nil {
			if v.fs.Name == "" {
				return space{}, &win32.Error{Call: "GetDiskFreeSpaceEx", Object: path, Code: win32.ErrUnrecognizedVolume}
			}
			return space{v.fs.TotalBytes, n.freeBytesLocked(v)}, nil
		}
		total, free, code := n.shareSpaceLocked(id)
		if code != 0 {
			return space{}, &win32.Error{Call: "GetDiskFreeSpaceEx", Object: path, Code: code}
		}
		return space{total, free}, nil
	})
	return uint64(s.total), uint64(s.free), err
}

// shareSpaceLocked is the capacity of a share and what its files leave of it.
func (n *Node) shareSpaceLocked(unc string) (total, free int64, code uint32) {
	serverName, shareName, _ := splitRemote(unc)
	server := n.smbServerLocked(serverName)
	if server == nil {
		return 0, 0, win32.ErrBadNetPath
	}
	share := server.share(shareName)
	if share == nil {
		return 0, 0, win32.ErrBadNetName
	}
	if total = share.SizeBytes; total == 0 {
		total = shareBytes
	}
	return total, max(total-usedBytes(share.Folder, 4096), 0), 0
}

// SystemDirectory implements win32.API.
func (n *Node) SystemDirectory() string { return `C:\Windows\system32` }

// WriteFile implements FileController.
func (n *Node) WriteFile(ctx context.Context, path string, data []byte) error {
	return n.files.WriteFile(ctx, path, data)
}

// ReadFile implements FileController.
func (n *Node) ReadFile(ctx context.Context, path string) ([]byte, error) {
	return n.files.ReadFile(ctx, path)
}

// ListDir implements FileController.
func (n *Node) ListDir(ctx context.Context, path string) ([]string, error) {
	folder, err := n.files.HostPath(ctx, path)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// MakeDir implements FileController.
func (n *Node) MakeDir(ctx context.Context, path string) error { return n.files.MakeFolder(ctx, path) }

// MakeLink implements FileController.
func (n *Node) MakeLink(ctx context.Context, path, target string) error {
	return n.files.MakeLink(ctx, path, target, tree.FolderSymlink)
}

// SwapForLink implements FileController.
func (n *Node) SwapForLink(ctx context.Context, path, target string) (string, error) {
	return n.files.ForceSwap(ctx, path, target)
}

// RemoveFile implements FileController.
func (n *Node) RemoveFile(ctx context.Context, path string) error {
	h, err := n.files.CreateFile(ctx, path, win32.Open{Access: win32.AccessDelete, Share: win32.ShareRead | win32.ShareWrite | win32.ShareDelete})
	if err != nil {
		return err
	}
	defer func() { _ = n.files.CloseHandle(h) }()
	return n.files.Delete(ctx, h)
}
