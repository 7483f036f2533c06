package win32

import (
	"context"
	"errors"

	"golang.org/x/sys/windows"
)

// FindVolumes implements API.
func (system) FindVolumes(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var buffer [windows.MAX_PATH]uint16
	search, err := windows.FindFirstVolume(&buffer[0], uint32(len(buffer)))
	if err != nil {
		return nil, failure("FindFirstVolume", "", err)
	}
	defer func() { _ = windows.FindVolumeClose(search) }() // nothing is lost with it
	var volumes []string
	for {
		volumes = append(volumes, windows.UTF16ToString(buffer[:]))
		err := windows.FindNextVolume(search, &buffer[0], uint32(len(buffer)))
		if errors.Is(err, windows.ERROR_NO_MORE_FILES) {
			return volumes, nil
		}
		if err != nil {
			return nil, failure("FindNextVolume", "", err)
		}
	}
}

// VolumePathNames implements API.
func (system) VolumePathNames(ctx context.Context, volume string) ([]string, error) {
	const call = "GetVolumePathNamesForVolumeName"
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name, err := wide(call, volume)
	if err != nil {
		return nil, err
	}
	buffer := make([]uint16, windows.MAX_PATH)
	for {
		var n uint32
		err := windows.GetVolumePathNamesForVolumeName(name, &buffer[0], uint32(len(buffer)), &n)
		if errors.Is(err, windows.ERROR_MORE_DATA) && int(n) > len(buffer) {
			buffer = make([]uint16, n)
			continue
		}
		if err != nil {
			return nil, failure(call, volume, err)
		}
		return splitMultiSZ(buffer[:n]), nil
	}
}

// splitMultiSZ reads a list of texts, each ended by a NUL, ended by an empty one.
func splitMultiSZ(units []uint16) []string {
	var texts []string
	for len(units) > 0 && units[0] != 0 {
		text := windows.UTF16ToString(units)
		texts = append(texts, text)
		end := 0
		for end < len(units) && units[end] != 0 {
			end++
		}
		units = units[min(end+1, len(units)):]
	}
	return texts
}

// SetVolumeMountPoint implements API.
func (system) SetVolumeMountPoint(ctx context.Context, path, volume string) error {
	const call = "SetVolumeMountPoint"
	if err := ctx.Err(); err != nil {
		return err
	}
	name, err := wide(call, path)
	if err != nil {
		return err
	}
	target, err := wide(call, volume)
	if err != nil {
		return err
	}
	return failure(call, path, windows.SetVolumeMountPoint(name, target))
}

// DeleteVolumeMountPoint implements API.
func (system) DeleteVolumeMountPoint(ctx context.Context, path string) error {
	const call = "DeleteVolumeMountPoint"
	if err := ctx.Err(); err != nil {
		return err
	}
	name, err := wide(call, path)
	if err != nil {
		return err
	}
	return failure(call, path, windows.DeleteVolumeMountPoint(name))
}

// VolumeInformation implements API.
func (system) VolumeInformation(ctx context.Context, root string) (VolumeInfo, error) {
	const call = "GetVolumeInformation"
	if err := ctx.Err(); err != nil {
		return VolumeInfo{}, err
	}
	name, err := wide(call, root)
	if err != nil {
		return VolumeInfo{}, err
	}
	var label, fileSystem [windows.MAX_PATH + 1]uint16
	var info VolumeInfo
	var longest uint32
	err = windows.GetVolumeInformation(name, &label[0], uint32(len(label)), &info.Serial, &longest, &info.Flags,
		&fileSystem[0], uint32(len(fileSystem)))
	if err != nil {
		return VolumeInfo{}, failure(call, root, err)
	}
	info.Label, info.FileSystem = windows.UTF16ToString(label[:]), windows.UTF16ToString(fileSystem[:])
	return info, nil
}

// DiskFreeSpace implements API.
func (system) DiskFreeSpace(ctx context.Context, path string) (totalBytes, freeBytes uint64, err error) {
	const call = "GetDiskFreeSpaceEx"
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	name, err := wide(call, path)
	if err != nil {
		return 0, 0, err
	}
	// The total is the quota's where there is one, so what is free has to be too.
	var onDisk uint64
	err = windows.GetDiskFreeSpaceEx(name, &freeBytes, &totalBytes, &onDisk)
	return totalBytes, freeBytes, failure(call, path, err)
}
