package winos

import (
	"fmt"
	"strings"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/layout"
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

const zeroGUID = "{00000000-0000-0000-0000-000000000000}"

// driveLayout is DRIVE_LAYOUT_INFORMATION_EX without its empty entries.
type driveLayout struct {
	style      host.PartitionStyle
	partitions []agent.Partition
}

// decodeDriveLayout reads the partition table of a disk. An MBR table comes with
// its empty slots (type 0), in multiples of four; they are no partitions.
func decodeDriveLayout(b []byte) (driveLayout, error) {
	const name = "DRIVE_LAYOUT_INFORMATION_EX"
	// For a raw disk the two numbers may be all there is.
	if err := atLeast(b, name, int(layout.DriveLayoutPartitionCount)+4); err != nil {
		return driveLayout{}, err
	}
	style, count := layout.DriveLayoutPartitionStyle.Get(b), layout.DriveLayoutPartitionCount.Get(b)
	if style == win32StyleRaw {
		return driveLayout{style: host.StyleRaw}, nil
	}
	if style > win32StyleRaw {
		return driveLayout{}, layoutError(name, "unknown partition style %d", style)
	}
	if need := layout.DriveLayoutPartitionEntry + uint64(count)*layout.PartitionBytes; uint64(len(b)) < need {
		return driveLayout{}, layoutError(name, "%d bytes for %d entries", len(b), count)
	}
	table := driveLayout{style: host.StyleMBR}
	if style == win32StyleGPT {
		table.style = host.StyleGPT
	}
	for i := range int(count) {
		entry := b[layout.DriveLayoutPartitionEntry+i*layout.PartitionBytes:][:layout.PartitionBytes]
		if p, used := decodePartition(entry, style); used {
			table.partitions = append(table.partitions, p)
		}
	}
	return table, nil
}

// decodePartition is PARTITION_INFORMATION_EX.
func decodePartition(entry []byte, style uint32) (p agent.Partition, used bool) {
	p = agent.Partition{
		OffsetBytes: int64(layout.PartitionStartingOffset.Get(entry)),
		SizeBytes:   int64(layout.PartitionPartitionLength.Get(entry)),
		Number:      layout.PartitionPartitionNumber.Get(entry),
		Role:        agent.RoleData,
	}
	if style == win32StyleMBR {
		kind := layout.PartitionMBRType.Get(entry)
		p.Type = fmt.Sprintf("0x%02x", kind)
		return p, kind != 0
	}
	p.Type = guidText(layout.PartitionGPTType.Get(entry))
	if p.Type == gptReserved {
		p.Role = agent.RoleReserved
	}
	return p, p.Type != zeroGUID
}

// guidText prints a GUID as Windows does: braces, lower case, the first three
// groups little endian.
func guidText(b []byte) string {
	return strings.ToLower(fmt.Sprintf("{%08x-%04x-%04x-%x-%x}",
		layout.GUIDData1.Get(b), layout.GUIDData2.Get(b), layout.GUIDData3.Get(b),
		b[layout.GUIDData4:layout.GUIDData4+2], b[layout.GUIDData4+2:layout.GUIDData4+8]))
}
