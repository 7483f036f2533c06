package winos

import (
	"context"
	"fmt"
	"strings"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
)

const (
	mib = 1 << 20
	// gptBackupBytes is what the backup table needs at the end of a disk: 16 KiB
	// of entries and one sector of header, of the largest sector size there is.
	gptBackupBytes = 16<<10 + 4096
	// mbrLimitBytes is where MBR's 32-bit sector numbers end.
	mbrLimitBytes = 1 << 32 * 512
)

// FormatVolume makes a new file system; what is not chosen is left to Windows
// (quick format, default cluster size). Source: MSFT_Volume.Format.
func (o *OS) FormatVolume(ctx context.Context, id string, options host.FormatOptions) error {
	in := cim.Values{"FileSystem": fileSystemName(options.FileSystem)}
	if options.ClusterBytes != 0 {
		in["AllocationUnitSize"] = options.ClusterBytes
	}
	if options.Label != "" {
		in["FileSystemLabel"] = options.Label
	}
	if err := o.formatVolume(ctx, id, in); err != nil {
		return fail("FormatVolume", id, err)
	}
	return nil
}

// formatVolume retries when a volume that has just arrived is still being looked
// at by Windows itself, or not yet known to WMI.
func (o *OS) formatVolume(ctx context.Context, id string, in cim.Values) error {
	for attempt := 1; ; attempt++ {
		err := o.formatOnce(ctx, id, in)
		if attempt >= staleAttempts || !returned(err, codeCacheOutOfDate, codeNotInCache, codeDeviceBusy, codeInUse) {
			return err
		}
		if err := o.updateStorageCache(ctx); err != nil {
			return err
		}
	}
}

func (o *OS) formatOnce(ctx context.Context, id string, in cim.Values) error {
	rows, err := volumeObjectTable.Rows(ctx, o.session, cim.Equal("Path", id))
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return notFound("FormatVolume", id)
	}
	_, err = o.call(ctx, volumeObjectTable, rows[0].Path, "Format", in)
	return err
}

// fileSystemName gives a file system its spelling in MSFT_Volume.Format.
func fileSystemName(name string) string {
	for _, known := range []string{"NTFS", "ReFS", "ExFAT", "FAT32", "FAT"} {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	if name == "" {
		return "NTFS"
	}
	return name
}

// findPartition returns the object of a volume's partition.
func (o *OS) findPartition(ctx context.Context, id string) (partitionRow, volumePlace, error) {
	place, err := o.volumePlace(ctx, id)
	if err != nil {
		return partitionRow{}, place, err
	}
	rows, err := partitionTable.Rows(ctx, o.session,
		cim.Equal("DiskNumber", place.disk), cim.Equal("PartitionNumber", place.partition))
	if err != nil {
		return partitionRow{}, place, err
	}
	if len(rows) == 0 {
		return partitionRow{}, place, notFound("Partition", fmt.Sprintf("%s (disk %d, partition %d)", id, place.disk, place.partition))
	}
	return rows[0], place, nil
}

// SupportedSizes returns the smallest and largest size of the volume's partition,
// after Windows has looked at the disk again: before that a grown disk still has
// its old size. Source: MSFT_Partition.GetSupportedSize.
//
// That method fails when the defragmentation service is disabled or busy, and
// its answers may be NULL. Then the largest size is worked out from the disk and
// its layout; the smallest is the present one, as nobody but that service knows
// how far the files reach.
func (o *OS) SupportedSizes(ctx context.Context, id string) (minBytes, maxBytes int64, err error) {
	minBytes, maxBytes, err = o.supportedSizes(ctx, id)
	if err != nil {
		return 0, 0, fail("SupportedSizes", id, err)
	}
	return minBytes, maxBytes, nil
}

func (o *OS) supportedSizes(ctx context.Context, id string) (minBytes, maxBytes int64, err error) {
	disk, err := o.VolumeDisk(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	object, err := o.findDisk(ctx, disk)
	if err != nil {
		return 0, 0, err
	}
	if err := o.refreshDisk(ctx, object.Path); err != nil {
		return 0, 0, err
	}
	partition, place, err := o.findPartition(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	out, err := o.call(ctx, partitionTable, partition.Path, "GetSupportedSize", nil)
	smallest, hasMin := cim.Uint64(out, "SizeMin")
	largest, hasMax := cim.Uint64(out, "SizeMax")
	if err == nil && hasMin && hasMax && largest != 0 {
		return int64(smallest), int64(largest), nil
	}
	if err != nil && !returned(err, codeFailed, 2) {
		return 0, 0, err
	}
	return o.sizesFromLayout(ctx, place.extent)
}

// sizesFromLayout works the sizes out from the disk's size and partition table.
func (o *OS) sizesFromLayout(ctx context.Context, volume extent) (minBytes, maxBytes int64, err error) {
	disk, err := o.Disk(ctx, volume.disk)
	if err != nil {
		return 0, 0, err
	}
	partitions, err := o.Partitions(ctx, volume.disk)
	if err != nil {
		return 0, 0, err
	}
	return volume.lengthBytes, largestSize(disk.SizeBytes, disk.Style, partitions, volume), nil
}

// largestSize is how long the partition at an extent can become: up to the next
// partition or, less what the partition table needs, the end of the disk; on a
// 1 MiB boundary; never less than it is.
func largestSize(diskBytes int64, style host.PartitionStyle, partitions []agent.Partition, volume extent) int64 {
	end := diskBytes - gptBackupBytes
	if style == host.StyleMBR {
		end = min(diskBytes, mbrLimitBytes)
	}
	for _, p := range partitions {
		if p.OffsetBytes > volume.offsetBytes {
			end = min(end, p.OffsetBytes)
		}
	}
	return max(end/mib*mib-volume.offsetBytes, volume.lengthBytes)
}

// ResizeVolume changes partition and file system to sizeBytes of partition.
// Source: MSFT_Partition.Resize.
//
// The method, too, may fail for want of the defragmentation service, with the
// code for any failure. It succeeds once the service may run again.
func (o *OS) ResizeVolume(ctx context.Context, id string, sizeBytes int64) error {
	const op = "ResizeVolume"
	err := o.resizeVolume(ctx, id, uint64(sizeBytes))
	switch {
	case err == nil:
		return nil
	case returned(err, codeFailed) && o.isDisabled(ctx, defragService):
		return failAs(host.KindUnavailable, op, id, hinted(err, "the service "+defragService+" (Optimize drives) is disabled"))
	default:
		return fail(op, id, err)
	}
}

// defragService is the service that knows how far the files of a volume reach.
const defragService = "defragsvc"

// isDisabled reports whether a service is known not to be allowed to run.
func (o *OS) isDisabled(ctx context.Context, service string) bool {
	info, err := o.Service(ctx, service)
	return err == nil && info.StartType == host.StartDisabled
}

func (o *OS) resizeVolume(ctx context.Context, id string, sizeBytes uint64) error {
	for attempt := 1; ; attempt++ {
		partition, _, err := o.findPartition(ctx, id)
		if err != nil {
			return err
		}
		_, err = o.call(ctx, partitionTable, partition.Path, "Resize", cim.Values{"Size": sizeBytes})
		if attempt >= staleAttempts || !returned(err, codeCacheOutOfDate) {
			return err
		}
		if err := o.updateStorageCache(ctx); err != nil {
			return err
		}
	}
}
