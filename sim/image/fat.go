package image

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// FAT boot sector fields (byte offsets). Source: Microsoft FAT specification.
const (
	fatSectorBytes   = 11
	fatPerCluster    = 13
	fatReserved      = 14
	fatTables        = 16
	fatRootEntries   = 17
	fatTotal16       = 19
	fatMedia         = 21
	fatTableSectors  = 22
	fatTotal32       = 32
	fat32TableSize   = 36
	fatExtended      = 36 // drive number, mark, serial, label of FAT12 and FAT16
	fat32Extended    = 64 // the same of FAT32
	fatLabelBytes    = 11
	fatNoLabel       = "NO NAME    "
	fatMinClusters16 = 4085
	fatMinClusters32 = 65525
	fatMaxClusters32 = 0x0FFFFFF5
)

// hasFATParameters reports whether the sector holds a plausible parameter block.
func hasFATParameters(boot []byte) bool {
	le := binary.LittleEndian
	n := boot[fatPerCluster]
	return hasBootMark(boot) && (boot[0] == 0xEB || boot[0] == 0xE9) &&
		isSectorSize(int64(le.Uint16(boot[fatSectorBytes:]))) && n != 0 && n&(n-1) == 0 &&
		le.Uint16(boot[fatReserved:]) != 0 && (boot[fatTables] == 1 || boot[fatTables] == 2) && boot[fatMedia] >= 0xF0
}

func detectFAT(v volume, boot []byte) (FileSystem, bool) {
	if !hasFATParameters(boot) {
		return FileSystem{}, false
	}
	le := binary.LittleEndian
	sector := int64(le.Uint16(boot[fatSectorBytes:]))
	total, tableSectors := int64(le.Uint16(boot[fatTotal16:])), int64(le.Uint16(boot[fatTableSectors:]))
	if total == 0 {
		total = int64(le.Uint32(boot[fatTotal32:]))
	}
	fs := FileSystem{Name: FAT, ClusterBytes: uint32(sector) * uint32(boot[fatPerCluster])}
	extended := fatExtended
	if tableSectors == 0 { // this, not the text in the sector, makes it FAT32
		fs.Name, extended = FAT32, fat32Extended
		tableSectors = int64(le.Uint32(boot[fat32TableSize:]))
	}
	root := roundUp(int64(le.Uint16(boot[fatRootEntries:]))*32, sector) / sector
	data := total - int64(le.Uint16(boot[fatReserved:])) - int64(boot[fatTables])*tableSectors - root
	if total > v.size/sector || tableSectors == 0 || data < int64(boot[fatPerCluster]) {
		return FileSystem{}, false
	}
	fs.TotalBytes = data / int64(boot[fatPerCluster]) * int64(fs.ClusterBytes)
	if boot[extended+2] == 0x29 {
		fs.Serial = uint64(le.Uint32(boot[extended+3:]))
		if label := string(boot[extended+7:][:fatLabelBytes]); label != fatNoLabel {
			fs.Label = strings.ToValidUTF8(strings.TrimRight(label, " \x00"), "\uFFFD")
		}
	}
	return fs, true
}

// fatLabelOffset is the place of the label in the boot sector.
func fatLabelOffset(name string) int64 {
	if name == FAT32 {
		return fat32Extended + 7
	}
	return fatExtended + 7
}

// fatLabel encodes a label: 11 bytes, upper case, padded.
func fatLabel(label string) ([]byte, error) {
	label = strings.ToUpper(label)
	if err := checkLabel(label, len(label), fatLabelBytes, "\x00\"*+,./:;<=>?[\\]|"); err != nil {
		return nil, err
	}
	if label == "" {
		return []byte(fatNoLabel), nil
	}
	return fmt.Appendf(nil, "%-11s", label), nil
}

// fatShape is what the size of a volume makes of a FAT.
type fatShape struct {
	kind                                          string
	reserved, rootEntries, tableSectors, clusters int64
}

// shapeFAT computes the table size with the formula of the specification.
func (f formatting) shapeFAT() (fatShape, error) {
	s := fatShape{kind: "FAT16   ", reserved: 1, rootEntries: 512}
	perEntry := int64(256) // table entries in a sector
	if f.Name == FAT32 {
		s = fatShape{kind: "FAT32   ", reserved: 32}
		perEntry = 128
	}
	total, perCluster := f.size/SectorBytes, int64(f.ClusterBytes/SectorBytes)
	rootSectors := s.rootEntries * 32 / SectorBytes
	perTable := perEntry*perCluster + 2
	s.tableSectors = (total - s.reserved - rootSectors + perTable - 1) / perTable
	s.clusters = (total - s.reserved - rootSectors - 2*s.tableSectors) / perCluster
	fits := s.clusters >= fatMinClusters32 && s.clusters < fatMaxClusters32
	if f.Name == FAT {
		fits = s.clusters > 0 && s.clusters < fatMinClusters32
		if s.clusters < fatMinClusters16 {
			s.kind = "FAT12   "
		}
	}
	if !fits {
		return fatShape{}, fmt.Errorf("%s with %d clusters: %w", f.Name, s.clusters, ErrClusterSize)
	}
	return s, nil
}

func formatFAT(f formatting) error {
	label, err := fatLabel(f.Label)
	if err != nil {
		return err
	}
	s, err := f.shapeFAT()
	if err != nil {
		return err
	}
	boot := make([]byte, SectorBytes)
	le := binary.LittleEndian
	jump := "\xEB\x3C\x90" // over the parameters, to the boot code
	if f.Name == FAT32 {
		jump = "\xEB\x58\x90"
	}
	copy(boot, jump+"MSDOS5.0")
	le.PutUint16(boot[fatSectorBytes:], SectorBytes)
	boot[fatPerCluster], boot[fatTables], boot[fatMedia] = byte(f.ClusterBytes/SectorBytes), 2, 0xF8
	le.PutUint16(boot[fatReserved:], uint16(s.reserved))
	le.PutUint16(boot[fatRootEntries:], uint16(s.rootEntries))
	le.PutUint16(boot[24:], 63)  // sectors per track
	le.PutUint16(boot[26:], 255) // heads
	le.PutUint32(boot[28:], f.hiddenSectors())
	le.PutUint32(boot[fatTotal32:], uint32(f.size/SectorBytes))
	extended := fatExtended
	if f.Name == FAT32 {
		extended = fat32Extended
		le.PutUint32(boot[fat32TableSize:], uint32(s.tableSectors))
		le.PutUint32(boot[44:], 2) // root directory
		le.PutUint16(boot[48:], 1) // information sector
		le.PutUint16(boot[50:], 6) // copy of the boot sector
	} else {
		le.PutUint16(boot[fatTableSectors:], uint16(s.tableSectors))
	}
	boot[extended], boot[extended+2] = 0x80, 0x29
	le.PutUint32(boot[extended+3:], uint32(f.Serial))
	copy(boot[extended+7:], label)
	copy(boot[extended+18:], s.kind)
	boot[510], boot[511] = 0x55, 0xAA
	if err := f.begin(boot); err != nil || f.Name == FAT {
		return err
	}
	return f.write(6*SectorBytes, boot)
}
