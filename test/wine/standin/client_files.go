package standin

import (
	"context"

	"github.com/csi-windows/csi-windows/winos/win32"
)

func (b *body) open(open win32.Open) {
	b.u32(open.Access)
	b.u32(open.Share)
	b.flag(open.Create)
	b.flag(open.Directory)
}

// onHandle starts a request about a handle.
func onHandle(h win32.Handle) body {
	var in body
	in.u64(uint64(h))
	return in
}

// about starts a request of texts.
func about(texts ...string) body {
	var in body
	for _, text := range texts {
		in.text(text)
	}
	return in
}

// alone runs an operation that answers with nothing.
func (c *Client) alone(ctx context.Context, op Op, name, object string, in body) error {
	out, err := c.win32(ctx, op, name, object, in)
	if err != nil {
		return err
	}
	return finish(name, out)
}

// CreateFile opens or makes an object by path.
func (c *Client) CreateFile(ctx context.Context, path string, open win32.Open) (win32.Handle, error) {
	in := about(path)
	in.open(open)
	return c.opened(ctx, OpCreateFile, "CreateFile", path, in)
}

// OpenAt opens or makes an object inside an open folder.
func (c *Client) OpenAt(ctx context.Context, folder win32.Handle, name string, open win32.Open) (win32.Handle, error) {
	in := onHandle(folder)
	in.text(name)
	in.open(open)
	return c.opened(ctx, OpOpenAt, "OpenAt", name, in)
}

func (c *Client) opened(ctx context.Context, op Op, name, object string, in body) (win32.Handle, error) {
	out, err := c.win32(ctx, op, name, object, in)
	if err != nil {
		return 0, err
	}
	h := win32.Handle(out.u64())
	return h, finish(name, out)
}

// CloseHandle closes a handle.
func (c *Client) CloseHandle(h win32.Handle) error {
	return c.alone(context.Background(), OpCloseHandle, "CloseHandle", "", onHandle(h))
}

// Info describes an open object.
func (c *Client) Info(ctx context.Context, h win32.Handle) (win32.FileInfo, error) {
	out, err := c.win32(ctx, OpInfo, "Info", "", onHandle(h))
	if err != nil {
		return win32.FileInfo{}, err
	}
	info := win32.FileInfo{Attributes: out.u32(), ReparseTag: out.u32(), SizeBytes: int64(out.u64()), VolumeSerial: out.u64()}
	copy(info.FileID[:], out.raw(len(info.FileID)))
	return info, finish("Info", out)
}

// ReadDir returns the names in an open folder.
func (c *Client) ReadDir(ctx context.Context, h win32.Handle) ([]string, error) {
	return c.list(ctx, OpReadDir, "ReadDir", "", onHandle(h))
}

func (c *Client) list(ctx context.Context, op Op, name, object string, in body) ([]string, error) {
	out, err := c.win32(ctx, op, name, object, in)
	if err != nil {
		return nil, err
	}
	list := out.texts()
	return list, finish(name, out)
}

// Delete deletes an open object.
func (c *Client) Delete(ctx context.Context, h win32.Handle) error {
	return c.alone(ctx, OpDelete, "Delete", "", onHandle(h))
}

// FinalPath is the path of an open object.
func (c *Client) FinalPath(ctx context.Context, h win32.Handle) (string, error) {
	return c.text(ctx, OpFinalPath, "FinalPath", onHandle(h))
}

func (c *Client) text(ctx context.Context, op Op, name string, in body) (string, error) {
	out, err := c.win32(ctx, op, name, "", in)
	if err != nil {
		return "", err
	}
	text := out.text()
	return text, finish(name, out)
}

// ReadAt reads bytes of a file, disk or volume.
func (c *Client) ReadAt(ctx context.Context, h win32.Handle, buffer []byte, offsetBytes int64) (int, error) {
	in := onHandle(h)
	in.u64(uint64(offsetBytes))
	in.count(len(buffer))
	out, err := c.win32(ctx, OpReadAt, "ReadFile", "", in)
	if err != nil {
		return 0, err
	}
	n := copy(buffer, out.bytes())
	return n, finish("ReadFile", out)
}

// DeviceIoControl sends a control; ERROR_MORE_DATA and
// ERROR_INSUFFICIENT_BUFFER come with bytes.
func (c *Client) DeviceIoControl(ctx context.Context, h win32.Handle, code uint32, input, output []byte) (int, error) {
	in := onHandle(h)
	in.u32(code)
	in.bytes(input)
	in.count(len(output))
	out, err := c.win32(ctx, OpDeviceIoControl, "DeviceIoControl", "", in)
	if out == nil {
		return 0, err
	}
	if err != nil && len(out.data) == 0 {
		return 0, err
	}
	n := copy(output, out.bytes())
	if failure := finish("DeviceIoControl", out); failure != nil {
		return 0, failure
	}
	return n, err
}

// FlushFileBuffers flushes a file or a volume.
func (c *Client) FlushFileBuffers(ctx context.Context, h win32.Handle) error {
	return c.alone(ctx, OpFlush, "FlushFileBuffers", "", onHandle(h))
}

// FindVolumes returns every volume name.
func (c *Client) FindVolumes(ctx context.Context) ([]string, error) {
	return c.list(ctx, OpFindVolumes, "FindVolumes", "", body{})
}

// VolumePathNames returns where a volume is mounted.
func (c *Client) VolumePathNames(ctx context.Context, volume string) ([]string, error) {
	return c.list(ctx, OpVolumePathNames, "VolumePathNames", volume, about(volume))
}

// SetVolumeMountPoint mounts a volume at a path with a final backslash.
func (c *Client) SetVolumeMountPoint(ctx context.Context, path, volume string) error {
	return c.alone(ctx, OpSetVolumeMountPoint, "SetVolumeMountPoint", path, about(path, volume))
}

// DeleteVolumeMountPoint removes a mount point.
func (c *Client) DeleteVolumeMountPoint(ctx context.Context, path string) error {
	return c.alone(ctx, OpDeleteVolumeMountPoint, "DeleteVolumeMountPoint", path, about(path))
}

// VolumeInformation describes the volume at a root.
func (c *Client) VolumeInformation(ctx context.Context, root string) (win32.VolumeInfo, error) {
	out, err := c.win32(ctx, OpVolumeInformation, "GetVolumeInformation", root, about(root))
	if err != nil {
		return win32.VolumeInfo{}, err
	}
	info := win32.VolumeInfo{FileSystem: out.text(), Label: out.text(), Serial: out.u32(), Flags: out.u32()}
	return info, finish("GetVolumeInformation", out)
}

// DiskFreeSpace returns total and free bytes.
func (c *Client) DiskFreeSpace(ctx context.Context, path string) (totalBytes, freeBytes uint64, err error) {
	out, err := c.win32(ctx, OpDiskFreeSpace, "GetDiskFreeSpaceEx", path, about(path))
	if err != nil {
		return 0, 0, err
	}
	totalBytes, freeBytes = out.u64(), out.u64()
	return totalBytes, freeBytes, finish("GetDiskFreeSpaceEx", out)
}

// FileAttributes returns the attributes of what is at a path.
func (c *Client) FileAttributes(ctx context.Context, path string) (uint32, error) {
	return c.number(ctx, OpFileAttributes, "GetFileAttributes", about(path))
}

func (c *Client) number(ctx context.Context, op Op, name string, in body) (uint32, error) {
	out, err := c.win32(ctx, op, name, "", in)
	if err != nil {
		return 0, err
	}
	number := out.u32()
	return number, finish(name, out)
}

// CreateDirectory makes a folder.
func (c *Client) CreateDirectory(ctx context.Context, path string) error {
	return c.alone(ctx, OpCreateDirectory, "CreateDirectory", path, about(path))
}
