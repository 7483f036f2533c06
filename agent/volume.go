package agent

import (
	"context"
	"slices"

	"github.com/csi-windows/csi-windows/host"
)

// volumeQuery carries out a question about one volume, given by its canonical id.
func volumeQuery[T any](ctx context.Context, a *Agent, op, volumeID string, ask func(context.Context, string) (T, error)) (T, error) {
	c := a.query(op, host.PrintableText(volumeID))
	id, err := parseVolumeID("volumeID", volumeID)
	if err != nil {
		var none T
		return none, c.refused(err)
	}
	return run(ctx, c, []want{shared(lockVolume, 0, id)}, func(ctx context.Context) (T, error) {
		return ask(ctx, id)
	})
}

// volumeChange carries out a change of one volume, given by its canonical id.
func (a *Agent) volumeChange(ctx context.Context, op, volumeID string, do func(context.Context, string) error) error {
	c := a.mutation(ctx, op, host.PrintableText(volumeID))
	id, err := parseVolumeID("volumeID", volumeID)
	if err != nil {
		return c.refused(err)
	}
	return exec(ctx, c, []want{exclusive(lockVolume, 0, id)}, func(ctx context.Context) error {
		return do(ctx, id)
	})
}

// ListVolumesOnDisk implements host.Volume.
func (a *Agent) ListVolumesOnDisk(ctx context.Context, diskNumber, partitionNumber uint32) ([]string, error) {
	return diskQuery(ctx, a, "ListVolumesOnDisk", diskNumber, func(ctx context.Context) ([]string, error) {
		// A disk that is not there has to be told from one without volumes.
		if _, _, err := a.os.DiskState(ctx, diskNumber); err != nil {
			return nil, err
		}
		ids, err := a.os.VolumeIDs(ctx, diskNumber, partitionNumber)
		if err != nil {
			return nil, err
		}
		return slices.DeleteFunc(ids, func(id string) bool { return id == "" }), nil
	})
}

// GetVolumeStats implements host.Volume.
func (a *Agent) GetVolumeStats(ctx context.Context, volumeID string) (host.VolumeStats, error) {
	return volumeQuery(ctx, a, "GetVolumeStats", volumeID, func(ctx context.Context, id string) (host.VolumeStats, error) {
		total, free, err := a.os.VolumeStats(ctx, id)
		if err != nil {
			return host.VolumeStats{}, err
		}
		return host.VolumeStats{TotalBytes: total, UsedBytes: total - free}, nil
	})
}

// GetDiskNumberFromVolumeID implements host.Volume.
func (a *Agent) GetDiskNumberFromVolumeID(ctx context.Context, volumeID string) (uint32, error) {
	return volumeQuery(ctx, a, "GetDiskNumberFromVolumeID", volumeID, a.os.VolumeDisk)
}

// WriteVolumeCache implements host.Volume.
func (a *Agent) WriteVolumeCache(ctx context.Context, volumeID string) error {
	return a.volumeChange(ctx, "WriteVolumeCache", volumeID, a.os.FlushVolume)
}

// GetVolume implements host.Volume.
func (a *Agent) GetVolume(ctx context.Context, volumeID string) (host.VolumeInfo, error) {
	return volumeQuery(ctx, a, "GetVolume", volumeID, func(ctx context.Context, id string) (host.VolumeInfo, error) {
		volume, err := a.os.Volume(ctx, id)
		if err != nil {
			return host.VolumeInfo{}, err
		}
		return a.volumeInfo(ctx, volume)
	})
}

// ListVolumes implements host.Volume.
func (a *Agent) ListVolumes(ctx context.Context) ([]host.VolumeInfo, error) {
	return nodeQuery(ctx, a, "ListVolumes", func(ctx context.Context) ([]host.VolumeInfo, error) {
		volumes, err := a.os.Volumes(ctx)
		if err != nil {
			return nil, err
		}
		infos := make([]host.VolumeInfo, 0, len(volumes))
		for _, volume := range volumes {
			info, err := a.volumeInfo(ctx, volume)
			if host.IsKind(err, host.KindNotFound) {
				continue // gone since the listing
			}
			if err != nil {
				return nil, err
			}
			infos = append(infos, info)
		}
		return infos, nil
	})
}

func (a *Agent) volumeInfo(ctx context.Context, volume OSVolume) (host.VolumeInfo, error) {
	paths, err := a.os.MountPaths(ctx, volume.ID)
	if err != nil {
		return host.VolumeInfo{}, err
	}
	info := host.VolumeInfo{
		ID: canonicalVolumeID(volume.ID), DiskNumber: volume.DiskNumber, PartitionNumber: volume.PartitionNumber,
		Label: volume.Label, SizeBytes: volume.SizeBytes, FreeBytes: volume.FreeBytes,
		ClusterBytes: volume.ClusterBytes, Health: volume.Health, HealthDetail: volume.HealthDetail,
		MountPaths: paths,
	}
	if hasFileSystem(volume) {
		info.FileSystem = volume.FileSystem
	}
	return info, nil
}

// ListMounts implements host.Volume.
func (a *Agent) ListMounts(ctx context.Context) ([]host.Mount, error) {
	return nodeQuery(ctx, a, "ListMounts", func(ctx context.Context) ([]host.Mount, error) {
		volumes, err := a.os.Volumes(ctx)
		if err != nil {
			return nil, err
		}
		var mounts []host.Mount
		for _, volume := range volumes {
			paths, err := a.os.MountPaths(ctx, volume.ID)
			if err != nil && !host.IsKind(err, host.KindNotFound) {
				return nil, err
			}
			for _, path := range paths {
				mounts = append(mounts, host.Mount{VolumeID: canonicalVolumeID(volume.ID), Path: path})
			}
		}
		return mounts, nil
	})
}

// ResizeVolume implements host.Volume.
func (a *Agent) ResizeVolume(ctx context.Context, volumeID string, sizeBytes int64) error {
	if sizeBytes < 0 {
		return a.mutation(ctx, "ResizeVolume", host.PrintableText(volumeID)).refused(invalid("sizeBytes", "%d is negative", sizeBytes))
	}
	return a.volumeChange(ctx, "ResizeVolume", volumeID, func(ctx context.Context, id string) error {
		volume, err := a.os.Volume(ctx, id)
		if err != nil {
			return err
		}
		target, err := a.resizeTarget(ctx, volume, sizeBytes)
		if err != nil || target == 0 {
			return err
		}
		return a.os.ResizeVolume(ctx, id, target)
	})
}

// resizeTarget is the partition size to grow to in bytes, or 0 when there is
// nothing worth doing.
func (a *Agent) resizeTarget(ctx context.Context, volume OSVolume, sizeBytes int64) (int64, error) {
	gainMin := a.policy.MinResizeGainBytes
	current := volume.PartitionSizeBytes
	if hasFileSystem(volume) && volume.SizeBytes > 0 && current-volume.SizeBytes > gainMin {
		// A run that was cut off has grown the partition but not the file system.
		current = volume.SizeBytes
	}
	if sizeBytes != 0 && sizeBytes-current <= gainMin {
		return 0, nil
	}
	_, maxBytes, err := a.os.SupportedSizes(ctx, volume.ID)
	if err != nil {
		return 0, err
	}
	if maxBytes <= 0 {
		// The query gives no answer while the defragmentation service is
		// disabled or holds the volume. Source: MSFT_Partition.GetSupportedSize.
		return 0, refuse(host.KindUnavailable, "the node does not say how large the partition can be; is the defragmentation service (defragsvc) disabled?")
	}
	if sizeBytes > maxBytes {
		return 0, refuse(host.KindExhausted, "%d bytes asked for, %d bytes are possible", sizeBytes, maxBytes)
	}
	if sizeBytes == 0 {
		sizeBytes = maxBytes
	}
	if sizeBytes-current <= gainMin {
		return 0, nil
	}
	return max(sizeBytes, volume.PartitionSizeBytes), nil
}
