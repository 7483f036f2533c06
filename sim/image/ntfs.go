package image

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// NTFS boot sector fields (byte offsets). Source: NTFS $Boot, BIOS parameter block.
const (
	ntfsMark         = "NTFS    "
	ntfsTotalSectors = 0x28
	ntfsSerial       = 0x48
	// ntfsDefaultMFT is the cluster where Windows puts the MFT of a large volume.
	ntfsDefaultMFT  = 0xC0000
	ntfsMaxClusters = 1<<32 - 1
)

func hasNTFSMark(boot []byte) bool { return string(boot[3:11]) == ntfsMark && hasBootMark(boot) }

func detectNTFS(v volume, boot []byte) (FileSystem, bool) {
	le := binary.LittleEndian
	sector, perCluster := int64(le.Uint16(boot[0x0B:])), ntfsSectorsPerCluster(boot[0x0D])
	total := le.Uint64(boot[ntfsTotalSectors:])
	if !hasNTFSMark(boot) || !isSectorSize(sector) || perCluster == 0 || total == 0 || total > uint64(v.size/sector) {
		return FileSystem{}, false
	}
	cluster := sector * perCluster
	return FileSystem{
		Name: NTFS, Serial: le.Uint64(boot[ntfsSerial:]), ClusterBytes: uint32(cluster),
		TotalBytes: int64(total) * sector / cluster * cluster, Label: readLabel(v),
	}, true
}

func isSectorSize(n int64) bool { return n >= SectorBytes && n <= 4096 && n&(n-1) == 0 }

// ntfsSectorsPerCluster decodes the field: a count up to 128, and above that
// the negative of a power of two, which is how clusters beyond 64 KiB fit. 0 is
// a bad value.
func ntfsSectorsPerCluster(field byte) int64 {
	switch n := int64(field); {
	case n <= 0x80:
		if n&(n-1) != 0 {
			return 0
		}
		return n
	case n >= 0xF4: // 2^12 sectors, 2 MiB
		return 1 << (256 - n)
	default:
		return 0
	}
}

func ntfsSectorsPerClusterField(sectors uint32) byte {
	if sectors <= 0x80 {
		return byte(sectors)
	}
	return negativeLog2(sectors)
}

// ntfsRecordField says how large a record is: in clusters, or as the negative
// of the power of two of its bytes when it is smaller than a cluster.
func ntfsRecordField(recordBytes, clusterBytes uint32) byte {
	if recordBytes >= clusterBytes {
		return byte(recordBytes / clusterBytes)
	}
	return negativeLog2(recordBytes)
}

func negativeLog2(n uint32) byte { return byte(-bits.TrailingZeros32(n)) }

func formatNTFS(f formatting) error {
	label, err := labelField(f.Label)
	if err != nil {
		return err
	}
	// The last sector of the partition holds the copy of the boot sector and is
	// not part of the file system.
	sectors := uint64(f.size/SectorBytes - 1)
	clusters := sectors * SectorBytes / uint64(f.ClusterBytes)
	if clusters > ntfsMaxClusters {
		return fmt.Errorf("NTFS with clusters of %d bytes: %w", f.ClusterBytes, ErrTooManyClusters)
	}
	boot := make([]byte, bootAreaBytes)
	le := binary.LittleEndian
	copy(boot, "\xEB\x52\x90"+ntfsMark)
	le.PutUint16(boot[0x0B:], SectorBytes)
	boot[0x0D] = ntfsSectorsPerClusterField(f.ClusterBytes / SectorBytes)
	boot[0x15] = 0xF8              // fixed disk
	le.PutUint16(boot[0x18:], 63)  // sectors per track
	le.PutUint16(boot[0x1A:], 255) // heads
	le.PutUint32(boot[0x1C:], f.hiddenSectors())
	le.PutUint32(boot[0x24:], 0x00800080)
	le.PutUint64(boot[ntfsTotalSectors:], sectors)
	le.PutUint64(boot[0x30:], min(ntfsDefaultMFT, clusters/3))
	le.PutUint64(boot[0x38:], 2) // the MFT's mirror
	boot[0x40] = ntfsRecordField(1024, f.ClusterBytes)
	boot[0x44] = ntfsRecordField(4096, f.ClusterBytes)
	le.PutUint64(boot[ntfsSerial:], f.Serial)
	boot[510], boot[511] = 0x55, 0xAA
	copy(boot[labelOffset:], label)
	if err := f.begin(boot); err != nil {
		return err
	}
	return f.write(f.size-SectorBytes, boot[:SectorBytes])
}

// resizeNTFS rewrites the boot sector and its copy for a new size. The old copy
// is zeroed: it lies inside the volume now, or behind it.
func resizeNTFS(w io.WriterAt, boot []byte, offsetBytes, newSizeBytes int64) error {
	le := binary.LittleEndian
	oldCopy := int64(le.Uint64(boot[ntfsTotalSectors:])) * int64(le.Uint16(boot[0x0B:]))
	newCopy := newSizeBytes - SectorBytes
	if oldCopy < newCopy {
		if err := zero(w, offsetBytes+oldCopy, SectorBytes); err != nil {
			return err
		}
	}
	le.PutUint64(boot[ntfsTotalSectors:], uint64(newSizeBytes/int64(le.Uint16(boot[0x0B:]))-1))
	if _, err := w.WriteAt(boot, offsetBytes+newCopy); err != nil {
		return err
	}
	_, err := w.WriteAt(boot, offsetBytes)
	return err
}
