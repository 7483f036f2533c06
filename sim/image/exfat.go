package image

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf16"
)

// exFAT boot sector fields (byte offsets). Source: exFAT file system
// specification, section 3.
const (
	exFATMark         = "EXFAT   "
	exFATTotalSectors = 72
	exFATHeapOffset   = 88
	exFATClusters     = 92
	exFATRoot         = 96
	exFATSerial       = 100
	exFATSectorShift  = 108
	exFATClusterShift = 109

	exFATTableSector = 24   // behind the main and the backup boot region
	exFATUpcaseBytes = 5836 // the up-case table the specification recommends
	exFATLabelUnits  = 11
	exFATLabelType   = 0x83
	exFATEntryBytes  = 32
)

func hasExFATMark(boot []byte) bool { return string(boot[3:11]) == exFATMark && hasBootMark(boot) }

func detectExFAT(v volume, boot []byte) (FileSystem, bool) {
	le := binary.LittleEndian
	sectorShift, clusterShift := boot[exFATSectorShift], boot[exFATClusterShift]
	if !hasExFATMark(boot) || sectorShift < 9 || sectorShift > 12 || clusterShift > 25-sectorShift {
		return FileSystem{}, false
	}
	// The clusters must lie within the file system, that within the volume, and
	// the root directory within the clusters.
	total, heap := le.Uint64(boot[exFATTotalSectors:]), uint64(le.Uint32(boot[exFATHeapOffset:]))
	clusters, root := uint64(le.Uint32(boot[exFATClusters:])), uint64(le.Uint32(boot[exFATRoot:]))
	if total > uint64(v.size>>sectorShift) || heap+clusters<<clusterShift > total || root < 2 || root > clusters+1 {
		return FileSystem{}, false
	}
	cluster := int64(1) << (sectorShift + clusterShift)
	return FileSystem{
		Name: ExFAT, Serial: uint64(le.Uint32(boot[exFATSerial:])), ClusterBytes: uint32(cluster),
		TotalBytes: int64(clusters) * cluster, Label: readExFATLabel(v, boot),
	}, true
}

// exFATRootOffset is the place of the root directory in the volume.
func exFATRootOffset(boot []byte) int64 {
	le := binary.LittleEndian
	heap, root := int64(le.Uint32(boot[exFATHeapOffset:])), int64(le.Uint32(boot[exFATRoot:]))-2
	return (heap + root<<boot[exFATClusterShift]) << boot[exFATSectorShift]
}

// readExFATLabel reads the label entry, by custom the first of the root directory.
func readExFATLabel(v volume, boot []byte) string {
	b, ok := v.read(exFATRootOffset(boot), exFATEntryBytes)
	if !ok || b[0] != exFATLabelType {
		return ""
	}
	return utf16Text(b[2:][:2*min(int(b[1]), exFATLabelUnits)])
}

// exFATLabelEntry encodes the directory entry of a label.
func exFATLabelEntry(label string) ([]byte, error) {
	units := utf16.Encode([]rune(label))
	if err := checkLabel(label, len(units), exFATLabelUnits, "\x00\"*/:<>?\\|"); err != nil {
		return nil, err
	}
	b := make([]byte, exFATEntryBytes)
	b[0], b[1] = exFATLabelType, byte(len(units))
	putUTF16(b[2:], label)
	return b, nil
}

func formatExFAT(f formatting) error {
	label, err := exFATLabelEntry(f.Label)
	if err != nil {
		return err
	}
	perCluster, total := int64(f.ClusterBytes/SectorBytes), f.size/SectorBytes
	tableSectors := ((total-exFATTableSector)/perCluster+2)*4/SectorBytes + 1
	heap := roundUp(exFATTableSector+tableSectors, perCluster)
	clusters := (total - heap) / perCluster
	bitmap := roundUp((clusters+7)/8, int64(f.ClusterBytes)) / int64(f.ClusterBytes)
	root := 2 + bitmap + roundUp(exFATUpcaseBytes, int64(f.ClusterBytes))/int64(f.ClusterBytes)
	if root-2 >= clusters {
		return fmt.Errorf("exFAT with %d clusters: %w", clusters, ErrClusterSize)
	}
	boot := make([]byte, SectorBytes)
	le := binary.LittleEndian
	copy(boot, "\xEB\x76\x90"+exFATMark)
	le.PutUint64(boot[64:], uint64(f.offset/SectorBytes))
	le.PutUint64(boot[exFATTotalSectors:], uint64(total))
	le.PutUint32(boot[80:], exFATTableSector)
	le.PutUint32(boot[84:], uint32(tableSectors))
	le.PutUint32(boot[exFATHeapOffset:], uint32(heap))
	le.PutUint32(boot[exFATClusters:], uint32(clusters))
	le.PutUint32(boot[exFATRoot:], uint32(root))
	le.PutUint32(boot[exFATSerial:], uint32(f.Serial))
	le.PutUint16(boot[104:], 0x0100) // revision 1.00
	boot[exFATSectorShift] = 9
	boot[exFATClusterShift] = byte(bits.TrailingZeros32(f.ClusterBytes / SectorBytes))
	boot[110], boot[111] = 1, 0x80 // one table; first fixed disk
	boot[510], boot[511] = 0x55, 0xAA
	if err := f.begin(boot); err != nil {
		return err
	}
	return f.write(exFATRootOffset(boot), label)
}
