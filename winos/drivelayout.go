package winos

import (
	"fmt"
	"strings"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
)

// Partition types. Source: MSFT_Partition, GptType and MbrType.
const (
	gptBasicData = "{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}"
	gptReserved  = "{e3c9e316-0b5c-4db8-817d-f92df00215ae}"
	mbrIFS       = 7
)

// Win32's numbers of PARTITION_STYLE. Those of MSFT_Disk differ.
const (
	win32StyleMBR = 0
	win32StyleGPT = 1
	win32StyleRaw = 2
)

const (
	driveLayoutHeaderBytes = 48
	partitionEntryBytes    = 144
	zeroGUID               = "{00000000-0000-0000-0000-000000000000}"
)

// driveLayout is DRIVE_LAYOUT_INFORMATION_EX without its empty entries.
type driveLayout struct {
	style      host.PartitionStyle
	partitions []agent.Partition
}

// decodeDriveLayout reads the partition table of a disk. An MBR table comes with
// its empty slots (type 0), in multiples of four; they are no partitions.
func decodeDriveLayout(b []byte) (driveLayout, error) {
	const name = "DRIVE_LAYOUT_INFORMATION_EX"
	if err := atLeast(b, name, 8); err != nil {
		return driveLayout{}, err
	}
	style, count := le.Uint32(b), le.Uint32(b[4:])
	if style == win32StyleRaw {
		return driveLayout{style: host.StyleRaw}, nil
	}
	if style > win32StyleRaw {
		return driveLayout{}, layoutError(name, "unknown partition style %d", style)
	}
	if need := driveLayoutHeaderBytes + uint64(count)*partitionEntryBytes; uint64(len(b)) < need {
		return driveLayout{}, layoutError(name, "%d bytes for %d entries", len(b), count)
	}
	layout := driveLayout{style: host.StyleMBR}
	if style == win32StyleGPT {
		layout.style = host.StyleGPT
	}
	for i := range int(count) {
		entry := b[driveLayoutHeaderBytes+i*partitionEntryBytes:][:partitionEntryBytes]
		if p, used := decodePartition(entry, style); used {
			layout.partitions = append(layout.partitions, p)
		}
	}
	return layout, nil
}

// decodePartition is PARTITION_INFORMATION_EX.
func decodePartition(entry []byte, style uint32) (p agent.Partition, used bool) {
	p = agent.Partition{
		OffsetBytes: int64(le.Uint64(entry[8:])),
		SizeBytes:   int64(le.Uint64(entry[16:])),
		Number:      le.Uint32(entry[24:]),
		Role:        agent.RoleData,
	}
	if style == win32StyleMBR {
		p.Type = fmt.Sprintf("0x%02x", entry[32])
		return p, entry[32] != 0
	}
	p.Type = guidText(entry[32:48])
	if p.Type == gptReserved {
		p.Role = agent.RoleReserved
	}
	return p, p.Type != zeroGUID
}

// guidText prints a GUID as Windows does: braces, lower case, the first three
// groups little endian.
func guidText(b []byte) string {
	return strings.ToLower(fmt.Sprintf("{%08x-%04x-%04x-%x-%x}",
		le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:16]))
}
