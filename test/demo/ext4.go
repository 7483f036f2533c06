package main

import (
	diskfs "github.com/diskfs/go-diskfs"
	"github.com/diskfs/go-diskfs/disk"
	"github.com/diskfs/go-diskfs/filesystem"
	"github.com/diskfs/go-diskfs/partition/gpt"
)

// makeExt4Disk makes an image as another system would: a GPT with one ext4
// partition, or one ext4 file system without any partition table.
func makeExt4Disk(path string, partitioned bool) (err error) {
	const (
		sizeBytes   = 128 << 20
		sectorBytes = 512
		firstSector = 2048
	)
	d, err := diskfs.Create(path, sizeBytes, diskfs.SectorSize512)
	if err != nil {
		return err
	}
	defer func() {
		if closed := d.Close(); err == nil {
			err = closed
		}
	}()
	spec := disk.FilesystemSpec{FSType: filesystem.TypeExt4, VolumeLabel: "precious"}
	if partitioned {
		table := &gpt.Table{LogicalSectorSize: sectorBytes, PhysicalSectorSize: sectorBytes, ProtectiveMBR: true,
			Partitions: []*gpt.Partition{{Index: 1, Start: firstSector, End: sizeBytes/sectorBytes - firstSector, Type: gpt.MicrosoftBasicData, Name: "data"}}}
		if err := d.Partition(table); err != nil {
			return err
		}
		spec.Partition = 1
	}
	_, err = d.CreateFilesystem(spec)
	return err
}
