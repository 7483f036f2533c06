package winos

import (
	"context"
	"fmt"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/layout"
	"github.com/csi-windows/csi-windows/winos/win32"
)

func diskObject(number uint32) string { return fmt.Sprintf("disk %d", number) }

// Disks returns every disk. Source: MSFT_Disk.
func (o *OS) Disks(ctx context.Context) ([]agent.OSDisk, error) {
	rows, err := diskTable.Rows(ctx, o.session)
	if err != nil {
		return nil, fail("Disks", "", err)
	}
	disks := make([]agent.OSDisk, len(rows))
	for i, row := range rows {
		disks[i] = row.disk()
	}
	return disks, nil
}

// Disk returns one disk. Source: MSFT_Disk.
func (o *OS) Disk(ctx context.Context, number uint32) (agent.OSDisk, error) {
	rows, err := diskTable.Rows(ctx, o.session, cim.Equal("Number", number))
	if err != nil {
		return agent.OSDisk{}, fail("Disk", diskObject(number), err)
	}
	if len(rows) == 0 {
		return agent.OSDisk{}, notFound("Disk", diskObject(number))
	}
	return rows[0].disk(), nil
}

// DiskState returns whether a disk is offline and read-only. Source:
// IOCTL_DISK_GET_DISK_ATTRIBUTES.
func (o *OS) DiskState(ctx context.Context, number uint32) (offline, readOnly bool, err error) {
	attributes, err := o.diskAttributes(ctx, number)
	if err != nil {
		return false, false, fail("DiskState", diskObject(number), err)
	}
	return attributes&win32.DiskAttributeOffline != 0, attributes&win32.DiskAttributeReadOnly != 0, nil
}

// DiskSizeBytes returns the size of a disk. Source: IOCTL_DISK_GET_LENGTH_INFO.
func (o *OS) DiskSizeBytes(ctx context.Context, number uint32) (sizeBytes int64, err error) {
	open := win32.Open{Access: win32.GenericRead, Share: win32.ShareRead | win32.ShareWrite}
	err = o.withHandle(ctx, diskPath(number), open, func(h win32.Handle) (err error) {
		sizeBytes, err = o.deviceLength(ctx, h)
		return err
	})
	if err != nil {
		return 0, fail("DiskSizeBytes", diskObject(number), err)
	}
	return sizeBytes, nil
}

// DiskIDs returns the page 0x83 identifier and the serial number. Source:
// IOCTL_STORAGE_QUERY_PROPERTY, StorageDeviceIdProperty and StorageDeviceProperty.
func (o *OS) DiskIDs(ctx context.Context, number uint32) (host.DiskIDs, error) {
	var ids host.DiskIDs
	err := o.withHandle(ctx, diskPath(number), queryOnly, func(h win32.Handle) error {
		identifiers, err := o.property(ctx, h, win32.StorageDeviceIDProperty)
		if err != nil {
			return err
		}
		device, err := o.property(ctx, h, win32.StorageDeviceProperty)
		if err != nil {
			return err
		}
		ids, err = diskIDs(identifiers, device)
		return err
	})
	if err != nil {
		return host.DiskIDs{}, fail("DiskIDs", diskObject(number), err)
	}
	return ids, nil
}

// property reads a storage property whole; nil when the device has none of it.
func (o *OS) property(ctx context.Context, h win32.Handle, property uint32) ([]byte, error) {
	const firstBytes, limitBytes = 1024, 1 << 18
	query := encodePropertyQuery(property)
	answer, err := o.controlGrowing(ctx, h, win32.IoctlStorageQueryProperty, query, firstBytes)
	if isWin32(err, win32.ErrInvalidFunction, win32.ErrNotSupported, win32.ErrInvalidParameter, win32.ErrNotFound, win32.ErrFileNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// A short buffer is filled and the call succeeds; the header says what is missing.
	need, err := descriptorSize(answer)
	if err != nil || int(need) <= len(answer) || need > limitBytes {
		return answer, err
	}
	return o.control(ctx, h, win32.IoctlStorageQueryProperty, query, int(need))
}

// Partitions returns the entries of the partition table. Source:
// IOCTL_DISK_GET_DRIVE_LAYOUT_EX.
func (o *OS) Partitions(ctx context.Context, number uint32) ([]agent.Partition, error) {
	var table driveLayout
	err := o.withHandle(ctx, diskPath(number), queryOnly, func(h win32.Handle) (err error) {
		table, err = o.driveLayout(ctx, h)
		return err
	})
	if err != nil {
		return nil, fail("Partitions", diskObject(number), err)
	}
	return table.partitions, nil
}

// driveLayout reads the partition table of an open disk. There is no way to ask
// for its size: the buffer grows until it fits.
func (o *OS) driveLayout(ctx context.Context, h win32.Handle) (driveLayout, error) {
	const entries = 8
	answer, err := o.controlGrowing(ctx, h, win32.IoctlDiskGetDriveLayoutEx, nil,
		layout.DriveLayoutPartitionEntry+entries*layout.PartitionBytes)
	if err != nil {
		return driveLayout{}, err
	}
	return decodeDriveLayout(answer)
}

// ReadDisk reads raw bytes of a disk.
func (o *OS) ReadDisk(ctx context.Context, number uint32, offsetBytes int64, buffer []byte) (int, error) {
	n, err := o.readDevice(ctx, diskPath(number), offsetBytes, buffer)
	if err != nil {
		return n, fail("ReadDisk", diskObject(number), err)
	}
	return n, nil
}

// readDevice reads raw bytes. Windows refuses a read that goes past the end of a
// device instead of cutting it short, so after a failure the rest that exists is
// read.
func (o *OS) readDevice(ctx context.Context, path string, offsetBytes int64, buffer []byte) (n int, err error) {
	open := win32.Open{Access: win32.GenericRead, Share: win32.ShareRead | win32.ShareWrite}
	err = o.withHandle(ctx, path, open, func(h win32.Handle) (err error) {
		n, err = o.api.ReadAt(ctx, h, buffer, offsetBytes)
		if err == nil || isWin32(err, win32.ErrHandleEOF) {
			return nil
		}
		length, lengthErr := o.deviceLength(ctx, h)
		if lengthErr != nil || offsetBytes+int64(len(buffer)) <= length {
			return err
		}
		n = 0
		if offsetBytes >= length {
			return nil
		}
		n, err = o.api.ReadAt(ctx, h, buffer[:length-offsetBytes], offsetBytes)
		return err
	})
	return n, err
}

// deviceLength returns the size of a disk or volume opened for reading.
func (o *OS) deviceLength(ctx context.Context, h win32.Handle) (int64, error) {
	answer, err := o.control(ctx, h, win32.IoctlDiskGetLengthInfo, nil, layout.LengthInformationBytes)
	if err != nil {
		return 0, err
	}
	return decodeLength(answer)
}
