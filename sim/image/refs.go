package image

import (
	"encoding/binary"
	"io"
)

// ReFS boot sector fields (byte offsets). It starts with the structure by which
// Windows recognizes a file system. Source: FILE_SYSTEM_RECOGNITION_STRUCTURE.
const (
	refsName          = "ReFS\x00\x00\x00\x00"
	refsIdentifier    = "FSRS"
	refsLength        = 0x14
	refsChecksum      = 0x16
	refsTotalSectors  = 0x18
	refsSectorBytes   = 0x20
	refsPerCluster    = 0x24
	refsVersion       = 0x28
	refsSerial        = 0x38
	refsContainer     = 0x40
	refsContainerSize = 64 << 20
)

func detectReFS(v volume, boot []byte) (FileSystem, bool) {
	le := binary.LittleEndian
	if string(boot[3:11]) != refsName || string(boot[0x10:0x14]) != refsIdentifier ||
		le.Uint16(boot[refsLength:]) > SectorBytes || le.Uint16(boot[refsChecksum:]) != recognitionChecksum(boot) {
		return FileSystem{}, false
	}
	sector, perCluster := int64(le.Uint32(boot[refsSectorBytes:])), int64(le.Uint32(boot[refsPerCluster:]))
	total := le.Uint64(boot[refsTotalSectors:])
	if !isSectorSize(sector) || perCluster < 1 || sector*perCluster > 64<<10 || total > uint64(v.size/sector) {
		return FileSystem{}, false
	}
	cluster := sector * perCluster
	return FileSystem{
		Name: ReFS, Serial: le.Uint64(boot[refsSerial:]), ClusterBytes: uint32(cluster),
		TotalBytes: int64(total) * sector / cluster * cluster, Label: readLabel(v),
	}, true
}

// recognitionChecksum adds up the bytes behind the jump, the checksum left out,
// and rotates the sum right by one bit before each.
// Source: "Computing a File System Recognition Checksum".
func recognitionChecksum(boot []byte) uint16 {
	var sum uint16
	length := min(int(binary.LittleEndian.Uint16(boot[refsLength:])), len(boot))
	for i := 3; i < length; i++ {
		if i != refsChecksum && i != refsChecksum+1 {
			sum = sum<<15 + sum>>1 + uint16(boot[i])
		}
	}
	return sum
}

func formatReFS(f formatting) error {
	label, err := labelField(f.Label)
	if err != nil {
		return err
	}
	boot := make([]byte, bootAreaBytes)
	le := binary.LittleEndian
	copy(boot[3:], refsName)
	copy(boot[0x10:], refsIdentifier)
	le.PutUint16(boot[refsLength:], SectorBytes)
	le.PutUint32(boot[refsSectorBytes:], SectorBytes)
	le.PutUint32(boot[refsPerCluster:], f.ClusterBytes/SectorBytes)
	boot[refsVersion], boot[refsVersion+1] = 3, 4 // Windows Server 2016 to 2019
	le.PutUint64(boot[refsSerial:], f.Serial)
	le.PutUint64(boot[refsContainer:], refsContainerSize)
	copy(boot[labelOffset:], label)
	setReFSSize(boot, f.size)
	return f.begin(boot)
}

// setReFSSize records the size of the volume, in whole clusters, and renews the
// checksum.
func setReFSSize(boot []byte, sizeBytes int64) {
	le := binary.LittleEndian
	perCluster := uint64(le.Uint32(boot[refsPerCluster:]))
	sectors := uint64(sizeBytes) / uint64(le.Uint32(boot[refsSectorBytes:]))
	le.PutUint64(boot[refsTotalSectors:], sectors/perCluster*perCluster)
	le.PutUint16(boot[refsChecksum:], recognitionChecksum(boot))
}

func resizeReFS(w io.WriterAt, boot []byte, offsetBytes, newSizeBytes int64) error {
	setReFSSize(boot, newSizeBytes)
	_, err := w.WriteAt(boot, offsetBytes)
	return err
}
