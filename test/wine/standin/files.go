package standin

import (
	"strings"

	"github.com/csi-windows/csi-windows/winos/win32"
)

func fileOperations() map[Op]operation {
	return map[Op]operation{
		OpCreateFile:      {"CreateFile", false, runCreateFile},
		OpOpenAt:          {"OpenAt", false, runOpenAt},
		OpCloseHandle:     {"CloseHandle", false, runCloseHandle},
		OpInfo:            {"Info", false, runInfo},
		OpReadDir:         {"ReadDir", false, runReadDir},
		OpDelete:          {"Delete", false, runDelete},
		OpFinalPath:       {"FinalPath", false, runFinalPath},
		OpReadAt:          {"ReadAt", false, runReadAt},
		OpFlush:           {"Flush", false, runFlush},
		OpDeviceIoControl: {"DeviceIoControl", false, runDeviceIoControl},
		OpFileAttributes:  {"FileAttributes", false, runFileAttributes},
		OpCreateDirectory: {"CreateDirectory", false, runCreateDirectory},
	}
}

func (r *reader) open() win32.Open {
	return win32.Open{Access: r.u32(), Share: r.u32(), Create: r.flag(), Directory: r.flag()}
}

func runCreateFile(c *call) error {
	path, open := c.in.text(), c.in.open()
	if err := c.read(); err != nil {
		return err
	}
	h, err := c.node.CreateFile(c.ctx, path, open)
	if err != nil {
		return err
	}
	return c.addHandle(c.node, h)
}

func runOpenAt(c *call) error {
	id, name, open := c.in.u64(), c.in.text(), c.in.open()
	folder, err := c.readHandle(id)
	if err != nil {
		return err
	}
	h, err := folder.node.OpenAt(c.ctx, folder.handle, name, open)
	if err != nil {
		return err
	}
	return c.addHandle(folder.node, h)
}

// readHandle ends the reading of the request and finds the handle it is about.
func (c *call) readHandle(id uint64) (openHandle, error) {
	if err := c.read(); err != nil {
		return openHandle{}, err
	}
	return c.server.handles.get(id)
}

func runCloseHandle(c *call) error {
	id := c.in.u64()
	if err := c.read(); err != nil {
		return err
	}
	h, err := c.server.handles.remove(id)
	if err != nil || h.node != c.node { // a node that was replaced has closed its own
		return err
	}
	return h.node.CloseHandle(h.handle)
}

func runInfo(c *call) error {
	h, err := c.readHandle(c.in.u64())
	if err != nil {
		return err
	}
	info, err := h.node.Info(c.ctx, h.handle)
	if err != nil {
		return err
	}
	c.out.u32(info.Attributes)
	c.out.u32(info.ReparseTag)
	c.out.u64(uint64(info.SizeBytes))
	c.out.u64(info.VolumeSerial)
	c.out.raw(info.FileID[:])
	return nil
}

func runReadDir(c *call) error {
	h, err := c.readHandle(c.in.u64())
	if err != nil {
		return err
	}
	names, err := h.node.ReadDir(c.ctx, h.handle)
	if err != nil {
		return err
	}
	c.out.texts(names)
	return nil
}

func runDelete(c *call) error {
	h, err := c.readHandle(c.in.u64())
	if err != nil {
		return err
	}
	return h.node.Delete(c.ctx, h.handle)
}

func runFinalPath(c *call) error {
	h, err := c.readHandle(c.in.u64())
	if err != nil {
		return err
	}
	path, err := h.node.FinalPath(c.ctx, h.handle)
	if err != nil {
		return err
	}
	c.out.text(path)
	return nil
}

// buffer makes room for what a call gives back.
func buffer(call string, count uint32) ([]byte, error) {
	if count > dataMaxBytes {
		return nil, &win32.Error{Call: call, Code: win32.ErrInvalidParameter}
	}
	return make([]byte, count), nil
}

func runReadAt(c *call) error {
	id, offset, count := c.in.u64(), c.in.u64(), c.in.u32()
	h, err := c.readHandle(id)
	if err != nil {
		return err
	}
	data, err := buffer("ReadFile", count)
	if err != nil {
		return err
	}
	n, err := h.node.ReadAt(c.ctx, h.handle, data, int64(offset))
	if err != nil {
		return err
	}
	c.out.bytes(data[:n])
	return nil
}

func runFlush(c *call) error {
	h, err := c.readHandle(c.in.u64())
	if err != nil {
		return err
	}
	return h.node.FlushFileBuffers(c.ctx, h.handle)
}

// runDeviceIoControl writes the bytes that the node gave also when it failed;
// status drops them where the error number does not come with bytes.
func runDeviceIoControl(c *call) error {
	id, code, in, capacity := c.in.u64(), c.in.u32(), c.in.bytes(), c.in.u32()
	h, err := c.readHandle(id)
	if err != nil {
		return err
	}
	out, err := buffer("DeviceIoControl", capacity)
	if err != nil {
		return err
	}
	n, err := h.node.DeviceIoControl(c.ctx, h.handle, code, in, out)
	c.out.bytes(out[:min(max(n, 0), len(out))])
	return err
}

func runFileAttributes(c *call) error {
	path := c.in.text()
	if err := c.read(); err != nil {
		return err
	}
	attributes, err := c.node.FileAttributes(c.ctx, path)
	if err != nil {
		return err
	}
	c.out.u32(attributes)
	return nil
}

// runCreateDirectory is CreateDirectoryW: a final backslash is no error.
func runCreateDirectory(c *call) error {
	path := c.in.text()
	if err := c.read(); err != nil {
		return err
	}
	h, err := c.node.CreateFile(c.ctx, strings.TrimRight(path, `\/`), win32.Open{
		Access: win32.FileReadAttr | win32.Synchronize, Share: win32.ShareRead | win32.ShareWrite | win32.ShareDelete,
		Create: true, Directory: true,
	})
	if err != nil {
		return err
	}
	return c.node.CloseHandle(h)
}
