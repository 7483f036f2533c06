package winos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/layout"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// VolumeIDs returns the volumes on a disk; partition 0 means all. Partitions
// without a volume, such as the reserved one, add nothing. Source:
// MSFT_Partition.AccessPaths.
func (o *OS) VolumeIDs(ctx context.Context, diskNumber, partitionNumber uint32) ([]string, error) {
	conditions := []cim.Condition{cim.Equal("DiskNumber", diskNumber)}
	if partitionNumber != 0 {
		conditions = append(conditions, cim.Equal("PartitionNumber", partitionNumber))
	}
	rows, err := partitionTable.Rows(ctx, o.session, conditions...)
	if err != nil {
		return nil, fail("VolumeIDs", diskObject(diskNumber), err)
	}
	var ids []string
	for _, row := range rows {
		if id := row.volumeID(); id != "" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Volumes returns every volume that lies on a disk. Source: MSFT_Volume and
// MSFT_Partition, joined by the volume name.
func (o *OS) Volumes(ctx context.Context) ([]agent.OSVolume, error) {
	rows, err := volumeTable.Rows(ctx, o.session)
	if err != nil {
		return nil, fail("Volumes", "", err)
	}
	partitions, err := partitionTable.Rows(ctx, o.session)
	if err != nil {
		return nil, fail("Volumes", "", err)
	}
	byVolume := make(map[string]partitionRow, len(partitions))
	for _, p := range partitions {
		byVolume[strings.ToLower(p.volumeID())] = p
	}
	var volumes []agent.OSVolume
	for _, row := range rows {
		v := row.volume()
		p, ok := byVolume[strings.ToLower(v.ID)]
		if !ok {
			continue // a CD drive, or a volume on several disks
		}
		v.DiskNumber, v.PartitionNumber, v.PartitionSizeBytes = p.Disk, p.Number, int64(p.SizeBytes)
		volumes = append(volumes, v)
	}
	return volumes, nil
}

// Volume returns one volume. Source: MSFT_Volume for the file system, the
// device for the place.
func (o *OS) Volume(ctx context.Context, id string) (agent.OSVolume, error) {
	place, err := o.volumePlace(ctx, id)
	if err != nil {
		return agent.OSVolume{}, fail("Volume", id, err)
	}
	rows, err := volumeTable.Rows(ctx, o.session, cim.Equal("Path", id))
	if err != nil {
		return agent.OSVolume{}, fail("Volume", id, err)
	}
	if len(rows) == 0 {
		return agent.OSVolume{}, notFound("Volume", id)
	}
	v := rows[0].volume()
	v.DiskNumber, v.PartitionNumber, v.PartitionSizeBytes = place.disk, place.partition, place.lengthBytes
	return v, nil
}

// volumePlace is where a volume lies.
type volumePlace struct {
	extent
	partition uint32
}

// volumePlace asks the volume device for its partition. Source:
// IOCTL_STORAGE_GET_DEVICE_NUMBER and IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS.
func (o *OS) volumePlace(ctx context.Context, id string) (volumePlace, error) {
	var place volumePlace
	err := o.withHandle(ctx, devicePath(id), queryOnly, func(h win32.Handle) error {
		first, err := o.singleExtent(ctx, h)
		if err != nil {
			return err
		}
		answer, err := o.control(ctx, h, win32.IoctlStorageGetDeviceNumber, nil, layout.DeviceNumberBytes)
		if err != nil {
			return err
		}
		device, err := decodeDeviceNumber(answer)
		place = volumePlace{extent: first, partition: device.partition}
		return err
	})
	return place, err
}

// singleExtent returns the extent of a volume, or the first of several on one
// disk. A volume on several disks is KindPrecondition.
func (o *OS) singleExtent(ctx context.Context, h win32.Handle) (extent, error) {
	answer, err := o.controlGrowing(ctx, h, win32.IoctlVolumeGetDiskExtents, nil, layout.VolumeDiskExtentsBytes)
	if err != nil {
		return extent{}, err
	}
	extents, count, err := decodeExtents(answer)
	if err != nil {
		return extent{}, err
	}
	if count == 0 || int(count) != len(extents) {
		return extent{}, layoutError("VOLUME_DISK_EXTENTS", "%d of %d extents", len(extents), count)
	}
	for _, e := range extents[1:] {
		if e.disk != extents[0].disk {
			return extent{}, failAs(host.KindPrecondition, "VolumeDisk", "", fmt.Errorf("the volume spans disks %d and %d", extents[0].disk, e.disk))
		}
	}
	return extents[0], nil
}

// VolumeDisk returns the disk of a volume. Source: IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS.
func (o *OS) VolumeDisk(ctx context.Context, id string) (uint32, error) {
	var first extent
	err := o.withHandle(ctx, devicePath(id), queryOnly, func(h win32.Handle) (err error) {
		first, err = o.singleExtent(ctx, h)
		return err
	})
	if err != nil {
		return 0, fail("VolumeDisk", id, err)
	}
	return first.disk, nil
}

// VolumeFileSystem returns the file system that Windows has recognised on a
// volume, "" for none. Source: GetVolumeInformationW, ERROR_UNRECOGNIZED_VOLUME.
func (o *OS) VolumeFileSystem(ctx context.Context, id string) (string, error) {
	info, err := o.api.VolumeInformation(ctx, id)
	var failed *win32.Error
	if errors.As(err, &failed) && failed.Code == win32.ErrUnrecognizedVolume {
		return "", nil
	}
	if err != nil {
		return "", fail("VolumeFileSystem", id, err)
	}
	return info.FileSystem, nil
}

// VolumeStats returns size and free bytes of a formatted volume. Source:
// GetDiskFreeSpaceExW on the volume's root folder.
func (o *OS) VolumeStats(ctx context.Context, id string) (totalBytes, freeBytes int64, err error) {
	total, free, err := o.api.DiskFreeSpace(ctx, id)
	if err != nil {
		return 0, 0, fail("VolumeStats", id, err)
	}
	totalBytes, freeBytes = sizesOf(total, free)
	return totalBytes, freeBytes, nil
}

// sizesOf makes sizes of what Windows answers. There are file servers that say
// 2^63 bytes or more for no limit, and more free bytes than there are bytes at all.
func sizesOf(total, free uint64) (totalBytes, freeBytes int64) {
	total = min(total, math.MaxInt64)
	return int64(total), int64(min(free, total))
}

// ReadVolume reads raw bytes of a volume.
func (o *OS) ReadVolume(ctx context.Context, id string, offsetBytes int64, buffer []byte) (int, error) {
	n, err := o.readDevice(ctx, devicePath(id), offsetBytes, buffer)
	if err != nil {
		return n, fail("ReadVolume", id, err)
	}
	return n, nil
}

// FlushVolume writes everything cached for the volume to its disk. A volume that
// is mounted read-only has nothing to write. Source: FlushFileBuffers on a volume.
func (o *OS) FlushVolume(ctx context.Context, id string) error {
	open := win32.Open{Access: win32.GenericRead | win32.GenericWrite, Share: win32.ShareRead | win32.ShareWrite}
	err := o.withHandle(ctx, devicePath(id), open, func(h win32.Handle) error {
		return o.api.FlushFileBuffers(ctx, h)
	})
	if isWin32(err, win32.ErrWriteProtect) {
		info, infoErr := o.api.VolumeInformation(ctx, id)
		if infoErr == nil && info.Flags&win32.ReadOnlyVolumeFlag != 0 {
			return nil
		}
	}
	if err != nil {
		return fail("FlushVolume", id, err)
	}
	return nil
}

// MountPaths returns where the volume is mounted. Source:
// GetVolumePathNamesForVolumeNameW.
func (o *OS) MountPaths(ctx context.Context, id string) ([]string, error) {
	paths, err := o.api.VolumePathNames(ctx, id)
	if err != nil {
		return nil, fail("MountPaths", id, err)
	}
	return paths, nil
}
