package winos

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/layout"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// staleAttempts bounds how often a change is repeated because WMI's own copy of
// the disks was out of date.
const staleAttempts = 3

// findDisk returns the object of a disk that methods are called on.
func (o *OS) findDisk(ctx context.Context, number uint32) (diskHandle, error) {
	rows, err := diskHandleTable.Rows(ctx, o.session, cim.Equal("Number", number))
	if err != nil {
		return diskHandle{}, err
	}
	if len(rows) == 0 {
		return diskHandle{}, notFound("Disk", diskObject(number))
	}
	return rows[0], nil
}

// changeDisk runs a method of a disk. When Windows says that its copy of the
// disks is out of date it is refreshed and the method called again: nothing was
// done yet. Source: return value 40003.
func (o *OS) changeDisk(ctx context.Context, number uint32, path, method string, in cim.Values) (cim.Values, error) {
	for attempt := 1; ; attempt++ {
		out, err := o.call(ctx, diskHandleTable, path, method, in)
		if attempt >= staleAttempts || !returned(err, codeCacheOutOfDate) {
			return out, err
		}
		if err := o.refreshDisk(ctx, path); err != nil {
			return nil, err
		}
		fresh, err := o.findDisk(ctx, number)
		if err != nil {
			return nil, err
		}
		path = fresh.Path
	}
}

// refreshDisk makes WMI look at one disk again, after the whole node: Refresh
// alone still gives the old size. Source: Update-HostStorageCache, MSFT_Disk.Refresh.
func (o *OS) refreshDisk(ctx context.Context, path string) error {
	if err := o.updateStorageCache(ctx); err != nil {
		return err
	}
	_, err := o.call(ctx, diskHandleTable, path, "Refresh", nil)
	return err
}

func (o *OS) updateStorageCache(ctx context.Context) error {
	_, err := o.callStatic(ctx, storageSettings, "UpdateHostStorageCache", nil)
	return err
}

// Rescan looks for new, gone and grown disks. Source:
// MSFT_StorageSetting.UpdateHostStorageCache.
func (o *OS) Rescan(ctx context.Context) error {
	if err := o.updateStorageCache(ctx); err != nil {
		return fail("Rescan", "", err)
	}
	return nil
}

// InitializeDisk writes an empty GPT; Windows adds the reserved partition.
// A disk with a table is KindExists. Source: MSFT_Disk.Initialize.
func (o *OS) InitializeDisk(ctx context.Context, number uint32) error {
	disk, err := o.findDisk(ctx, number)
	if err == nil {
		_, err = o.changeDisk(ctx, number, disk.Path, "Initialize", cim.Values{"PartitionStyle": uint16(wmiStyleGPT)})
	}
	if err != nil {
		return fail("InitializeDisk", diskObject(number), err)
	}
	return nil
}

// CreateDataPartition makes one basic data partition in the largest free extent
// and waits until its volume is there. A drive letter that could not be given
// (42002) does not matter: the partition was made, and none was asked for.
// Source: MSFT_Disk.CreatePartition.
func (o *OS) CreateDataPartition(ctx context.Context, number uint32) error {
	err := o.createDataPartition(ctx, number)
	if err != nil {
		return fail("CreateDataPartition", diskObject(number), err)
	}
	return nil
}

func (o *OS) createDataPartition(ctx context.Context, number uint32) error {
	disk, err := o.findDisk(ctx, number)
	if err != nil {
		return err
	}
	before, err := o.Partitions(ctx, number)
	if err != nil {
		return err
	}
	in := cim.Values{"UseMaximumSize": true}
	if disk.Style == wmiStyleMBR {
		in["MbrType"] = uint16(mbrIFS)
	} else {
		in["GptType"] = gptBasicData
	}
	_, err = o.changeDisk(ctx, number, disk.Path, "CreatePartition", in)
	if err != nil && !returned(err, codeAccessPathIsUsed) {
		return err
	}
	return o.awaitVolume(ctx, number, before)
}

// awaitVolume waits until the partition that was not there before has a volume
// that can be opened. Windows makes the volume device, and its name, some time
// after the partition. Source: "Naming a Volume".
func (o *OS) awaitVolume(ctx context.Context, number uint32, before []agent.Partition) error {
	err := o.poll(ctx, func() (bool, error) {
		after, err := o.Partitions(ctx, number)
		if err != nil {
			return false, err
		}
		added := slices.IndexFunc(after, func(p agent.Partition) bool {
			return !slices.ContainsFunc(before, func(q agent.Partition) bool { return p.OffsetBytes == q.OffsetBytes })
		})
		if added < 0 {
			return false, nil
		}
		ids, err := o.VolumeIDs(ctx, number, after[added].Number)
		if err != nil || len(ids) == 0 {
			return false, err
		}
		err = o.withHandle(ctx, devicePath(ids[0]), queryOnly, func(win32.Handle) error { return nil })
		if isWin32(err, win32.ErrFileNotFound, win32.ErrPathNotFound) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the volume of the new partition has not arrived: %w", err)
	}
	return err
}

// SetDiskOnline brings a disk online or takes it offline; a disk that is there
// already is left alone. Source: MSFT_Disk.Online and Offline.
func (o *OS) SetDiskOnline(ctx context.Context, number uint32, online bool) error {
	method := "Offline"
	if online {
		method = "Online"
	}
	err := o.changeAttribute(ctx, number, win32.DiskAttributeOffline, !online, method, nil)
	if err != nil {
		return fail("SetDiskOnline", diskObject(number), err)
	}
	return nil
}

// changeAttribute calls a method that raises or clears an attribute of a disk,
// unless the disk itself says that it stands as wanted. WMI's own word on that
// may be old.
func (o *OS) changeAttribute(ctx context.Context, number uint32, attribute uint64, raise bool, method string, in cim.Values) error {
	attributes, err := o.diskAttributes(ctx, number)
	if err == nil && (attributes&attribute != 0) == raise {
		return nil
	}
	disk, err := o.findDisk(ctx, number)
	if err != nil {
		return err
	}
	_, err = o.changeDisk(ctx, number, disk.Path, method, in)
	return err
}

// diskAttributes reads the offline and read-only flags. Source:
// IOCTL_DISK_GET_DISK_ATTRIBUTES.
func (o *OS) diskAttributes(ctx context.Context, number uint32) (attributes uint64, err error) {
	err = o.withHandle(ctx, diskPath(number), queryOnly, func(h win32.Handle) error {
		answer, err := o.control(ctx, h, win32.IoctlDiskGetDiskAttributes, nil, layout.GetDiskAttributesBytes)
		if err != nil {
			return err
		}
		attributes, err = decodeDiskAttributes(answer)
		return err
	})
	return attributes, err
}

// SetDiskReadOnly raises or clears the read-only flag. Source:
// MSFT_Disk.SetAttributes, which documents 41000 for a raw disk; the control code
// below it has no such limit.
func (o *OS) SetDiskReadOnly(ctx context.Context, number uint32, readOnly bool) error {
	err := o.changeAttribute(ctx, number, win32.DiskAttributeReadOnly, readOnly, "SetAttributes", cim.Values{"IsReadOnly": readOnly})
	if returned(err, codeNotInitialized) {
		err = o.setReadOnlyAttribute(ctx, number, readOnly)
	}
	if err != nil {
		return fail("SetDiskReadOnly", diskObject(number), err)
	}
	return nil
}

// setReadOnlyAttribute is the read-only flag by IOCTL_DISK_SET_DISK_ATTRIBUTES.
func (o *OS) setReadOnlyAttribute(ctx context.Context, number uint32, readOnly bool) error {
	var attributes uint64
	if readOnly {
		attributes = win32.DiskAttributeReadOnly
	}
	open := win32.Open{Access: win32.GenericRead | win32.GenericWrite, Share: win32.ShareRead | win32.ShareWrite}
	return o.withHandle(ctx, diskPath(number), open, func(h win32.Handle) error {
		in := encodeDiskAttributes(attributes, win32.DiskAttributeReadOnly)
		_, err := o.control(ctx, h, win32.IoctlDiskSetDiskAttributes, in, 0)
		return err
	})
}
