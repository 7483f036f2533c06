package standin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// vhdxSignature begins the file that stands for a virtual disk in the node's
// name space; its medium is a file of the server's. Source: MS-VHDX, file type identifier.
const vhdxSignature = "vhdxfile"

// virtualDisks are the open virtual disks. A backing file is opened once.
type virtualDisks struct {
	mu   sync.Mutex
	open map[uint64]*virtualDisk
	last uint64
}

type virtualDisk struct {
	path      string
	image     string
	sizeBytes int64
	attached  bool
	number    uint32
	program   uint64 // whose it is, see programs
}

func diskOperations() map[Op]operation {
	return map[Op]operation{
		OpCreateDisk:   {"CreateDisk", false, runCreateDisk},
		OpOpenDisk:     {"OpenDisk", false, runOpenDisk},
		OpAttachDisk:   {"AttachDisk", false, runAttachDisk},
		OpDetachDisk:   {"DetachDisk", false, runDetachDisk},
		OpPhysicalPath: {"PhysicalPath", false, runPhysicalPath},
		OpCloseDisk:    {"CloseDisk", false, runCloseDisk},
	}
}

// clear forgets the disks of a node that is gone.
func (v *virtualDisks) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.open)
}

// closeOf closes the disks of a program.
func (v *virtualDisks) closeOf(ctx context.Context, program uint64, node Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, d := range v.open {
		if d.program == program {
			_ = d.close(ctx, node) // the disk was pulled meanwhile
			delete(v.open, id)
		}
	}
}

func (v *virtualDisks) addLocked(d *virtualDisk) uint64 {
	if v.open == nil {
		v.open = map[uint64]*virtualDisk{}
	}
	v.last += 4
	v.open[v.last] = d
	return v.last
}

func (v *virtualDisks) inUseLocked(path string) bool {
	for _, d := range v.open {
		if strings.EqualFold(d.path, path) {
			return true
		}
	}
	return false
}

// medium is the file with a disk's content.
func (s *Server) medium(path string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(path)))
	return filepath.Join(s.diskFolder, hex.EncodeToString(sum[:8])+".img")
}

func diskError(call, path string, code uint32) error {
	return &win32.Error{Call: call, Object: path, Code: code}
}

// runCreateDisk is CreateVirtualDisk: ERROR_FILE_EXISTS when the file is there.
func runCreateDisk(c *call) error {
	size, path := c.in.u64(), c.in.text()
	if err := c.read(); err != nil {
		return err
	}
	const sector = 512
	if path == "" || size == 0 || size%sector != 0 || size > 1<<46 || c.server.diskFolder == "" {
		return diskError("CreateVirtualDisk", path, win32.ErrInvalidParameter)
	}
	v := &c.server.disks
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.inUseLocked(path) {
		return diskError("CreateVirtualDisk", path, win32.ErrSharingViolation)
	}
	if _, err := c.node.FileAttributes(c.ctx, path); err == nil {
		return diskError("CreateVirtualDisk", path, win32.ErrFileExists)
	}
	d := &virtualDisk{path: path, image: c.server.medium(path), sizeBytes: int64(size), program: c.conn.program}
	if err := makeMedium(d.image, d.sizeBytes); err != nil {
		return err
	}
	if err := c.node.WriteFile(c.ctx, path, []byte(vhdxSignature)); err != nil {
		return err
	}
	c.out.u64(v.addLocked(d))
	return nil
}

// makeMedium makes an empty sparse file, in place of one that is left over.
func makeMedium(path string, sizeBytes int64) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(sizeBytes), file.Close())
}

// runOpenDisk is OpenVirtualDisk.
func runOpenDisk(c *call) error {
	path := c.in.text()
	if err := c.read(); err != nil {
		return err
	}
	v := &c.server.disks
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.inUseLocked(path) {
		return diskError("OpenVirtualDisk", path, win32.ErrSharingViolation)
	}
	head, err := c.node.ReadFile(c.ctx, path)
	if err != nil {
		return err
	}
	d := &virtualDisk{path: path, image: c.server.medium(path), program: c.conn.program}
	info, err := os.Stat(d.image)
	if err != nil || !strings.HasPrefix(string(head), vhdxSignature) {
		return diskError("OpenVirtualDisk", path, errFileCorrupt)
	}
	d.sizeBytes = info.Size()
	c.out.u64(v.addLocked(d))
	return nil
}

// errFileCorrupt is ERROR_FILE_CORRUPT.
const errFileCorrupt = 1392

// onDisk ends the reading of the request and works on the open disk it is about.
func (c *call) onDisk(do func(d *virtualDisk) error) error {
	id := c.in.u64()
	if err := c.read(); err != nil {
		return err
	}
	v := &c.server.disks
	v.mu.Lock()
	defer v.mu.Unlock()
	d := v.open[id]
	if d == nil {
		return diskError("virtual disk", "", win32.ErrInvalidHandle)
	}
	err := do(d)
	if err == nil && c.op == OpCloseDisk {
		delete(v.open, id)
	}
	return err
}

// runAttachDisk is AttachVirtualDisk. The disk has the identifier that
// Microsoft's virtual disks have: NAA, company 0x00224 8. Source: ntddstor.h.
func runAttachDisk(c *call) error {
	return c.onDisk(func(d *virtualDisk) error {
		if d.attached {
			return diskError("AttachVirtualDisk", d.path, win32.ErrSharingViolation)
		}
		sum := sha256.Sum256([]byte(d.image))
		number, err := c.node.AttachDisk(c.ctx, sim.DiskSpec{
			Image: d.image, SizeBytes: d.sizeBytes, Bus: "FileBackedVirtual",
			IDs: []sim.DeviceID{{CodeSet: 1, Type: 3, ID: append([]byte{0x60, 0x02, 0x24, 0x80}, sum[:12]...)}},
		})
		if err != nil {
			return err
		}
		d.attached, d.number = true, number
		c.out.u32(number)
		return nil
	})
}

func runDetachDisk(c *call) error {
	return c.onDisk(func(d *virtualDisk) error {
		if !d.attached {
			return diskError("DetachVirtualDisk", d.path, win32.ErrNotReady)
		}
		return d.detach(c.ctx, c.node)
	})
}

func (d *virtualDisk) detach(ctx context.Context, node Node) error {
	if err := node.DetachDisk(ctx, d.number); err != nil {
		return err
	}
	d.attached = false
	return nil
}

// runPhysicalPath is GetVirtualDiskPhysicalPath.
func runPhysicalPath(c *call) error {
	return c.onDisk(func(d *virtualDisk) error {
		if !d.attached {
			return diskError("GetVirtualDiskPhysicalPath", d.path, win32.ErrNotReady)
		}
		c.out.text(fmt.Sprintf(`\\.\PhysicalDrive%d`, d.number))
		return nil
	})
}

// runCloseDisk is CloseHandle on a virtual disk: without a permanent lifetime
// the disk goes with its handle.
func runCloseDisk(c *call) error {
	return c.onDisk(func(d *virtualDisk) error { return d.close(c.ctx, c.node) })
}

func (d *virtualDisk) close(ctx context.Context, node Node) error {
	if !d.attached {
		return nil
	}
	return d.detach(ctx, node)
}
