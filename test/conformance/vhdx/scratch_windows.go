package vhdx

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"

	"github.com/csi-windows/csi-windows/test/conformance"
)

// namePattern is what the files are called; the star is made up.
const namePattern = "csi-conformance-*.vhdx"

// layoutMaxBytes is room for the largest table Windows makes: 128 partitions.
const layoutMaxBytes = layoutHeaderBytes + 128*partitionBytes

// scratch makes disks in files of a folder.
type scratch struct{ dir string }

// New makes a Scratch that keeps its files in a folder, that for temporary files
// when dir is empty. The folder must be on a volume that is neither compressed nor
// encrypted, and the process one of an administrator.
func New(dir string) (conformance.Scratch, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := enableManageVolume(); err != nil {
		return nil, fmt.Errorf("scratch disks: %w", err)
	}
	return &scratch{dir}, nil
}

// disk is a disk in a file. The handle is 0 once it was removed.
type disk struct {
	handle windows.Handle
	path   string
	number uint32
}

// Create implements conformance.Scratch.
func (s *scratch) Create(_ context.Context, sizeBytes int64) (conformance.Disk, error) {
	path, err := freeName(s.dir)
	if err != nil {
		return nil, fmt.Errorf("scratch disk: %w", err)
	}
	d := &disk{path: path}
	if d.handle, err = createDisk(path, sizeBytes); err != nil {
		return nil, fmt.Errorf("scratch disk %s: %w", path, err)
	}
	if err := d.attach(); err != nil {
		return nil, errors.Join(fmt.Errorf("scratch disk %s: %w", path, err), windows.CloseHandle(d.handle), os.Remove(path))
	}
	return d, nil
}

// freeName is a path in the folder that nobody uses: the file is made, which checks
// that it can be, and taken away again for CreateVirtualDisk, which makes its own.
func freeName(dir string) (string, error) {
	file, err := os.CreateTemp(dir, namePattern)
	if err != nil {
		return "", err
	}
	return file.Name(), errors.Join(file.Close(), os.Remove(file.Name()))
}

func (d *disk) attach() (err error) {
	if err := attachDisk(d.handle); err != nil {
		return err
	}
	d.number, err = physicalNumber(d.handle)
	return err
}

// Number implements conformance.Disk.
func (d *disk) Number() uint32 { return d.number }

// Known implements conformance.Disk. Windows gives the disk its names.
func (d *disk) Known() conformance.Known { return conformance.Known{} }

// check fails unless the handle's disk still has the number.
func (d *disk) check() error {
	if d.handle == 0 {
		return fmt.Errorf("the scratch disk in %s was removed", d.path)
	}
	number, err := physicalNumber(d.handle)
	if err == nil && number != d.number {
		err = fmt.Errorf("the scratch disk in %s has turned from disk %d into %d", d.path, d.number, number)
	}
	return err
}

// open opens the disk, once it is sure that it is the one.
func (d *disk) open(access uint32) (*device, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	return openDisk(d.number, access)
}

// Look implements conformance.Disk.
func (d *disk) Look(context.Context) (conformance.DiskState, error) {
	state := conformance.DiskState{Number: d.number}
	dev, err := d.open(windows.GENERIC_READ)
	if err != nil {
		return state, err
	}
	defer dev.close()
	length, err := dev.ask(ioctlLength, 8)
	if err == nil && len(length) < 8 {
		err = fmt.Errorf("the length of %s in %d bytes", dev.path, len(length))
	}
	if err != nil {
		return state, err
	}
	state.SizeBytes = int64(binary.LittleEndian.Uint64(length))
	attributes, err := dev.ask(ioctlAttributes, attributesBytes)
	if err != nil {
		return state, err
	}
	if state.Offline, state.ReadOnly, err = readAttributes(attributes); err != nil {
		return state, err
	}
	layout, err := dev.ask(ioctlLayout, layoutMaxBytes)
	if err != nil {
		return state, err
	}
	state.Style, state.Partitions, err = readLayout(layout)
	return state, err
}

// Holds implements conformance.Disk.
func (d *disk) Holds(_ context.Context, volumeID string) (bool, error) {
	if err := d.check(); err != nil {
		return false, err
	}
	volume, err := openVolume(volumeID)
	if err != nil {
		return false, err
	}
	defer volume.close()
	const oneExtentBytes = 32 // a volume on more disks is none of ours
	extents, err := volume.ask(ioctlExtents, oneExtentBytes)
	if err != nil {
		return false, err
	}
	disks, err := readExtents(extents)
	return err == nil && len(disks) == 1 && disks[0] == d.number, err
}

// WriteRaw implements conformance.Disk.
func (d *disk) WriteRaw(_ context.Context, offsetBytes int64, data []byte) error {
	dev, err := d.open(windows.GENERIC_READ | windows.GENERIC_WRITE)
	if err != nil {
		return err
	}
	defer dev.close()
	return dev.writeAt(offsetBytes, data)
}

// Grow implements conformance.Disk. A Windows that does not resize an attached disk
// gets it detached, which may change its number.
func (d *disk) Grow(_ context.Context, sizeBytes int64) error {
	if err := d.check(); err != nil {
		return err
	}
	if resizeDisk(d.handle, sizeBytes) == nil {
		return nil
	}
	if err := detachDisk(d.handle); err != nil {
		return err
	}
	return errors.Join(resizeDisk(d.handle, sizeBytes), d.attach())
}

// Replug implements conformance.Disk.
func (d *disk) Replug(context.Context) error {
	if err := d.check(); err != nil {
		return err
	}
	if err := detachDisk(d.handle); err != nil {
		return err
	}
	return d.attach()
}

// Remove implements conformance.Disk. It detaches before it closes, so that a
// handle somebody else holds does not keep the disk.
func (d *disk) Remove(context.Context) error {
	if d.handle == 0 {
		return nil
	}
	detachErr := detachDisk(d.handle)
	closeErr := windows.CloseHandle(d.handle)
	d.handle = 0
	removeErr := os.Remove(d.path)
	if errors.Is(removeErr, fs.ErrNotExist) {
		removeErr = nil
	}
	return errors.Join(detachErr, closeErr, removeErr)
}
