// Package vhdx makes scratch disks of the conformance suite on Windows: each is a
// file that the package creates, attaches and removes by itself. The disk goes with
// the handle that attached it, so that nothing is left when the process dies but
// the file.
//
// What the calls exchange is laid out in portable files and tested everywhere; the
// calls are in *_windows.go.
package vhdx

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/test/conformance"
)

// Structures of virtdisk.h. Sizes in bytes.
const (
	storageTypeBytes      = 20
	createParametersBytes = 128
	attachParametersBytes = 8
	resizeParametersBytes = 16
)

// storageType is VIRTUAL_STORAGE_TYPE: VHDX of Microsoft.
func storageType() []byte {
	const deviceVHDX = 3 // VIRTUAL_STORAGE_TYPE_DEVICE_VHDX
	b := make([]byte, storageTypeBytes)
	binary.LittleEndian.PutUint32(b, deviceVHDX)
	// VIRTUAL_STORAGE_TYPE_VENDOR_MICROSOFT {EC984AEC-A0F9-47E9-901F-71415A66345B}
	copy(b[4:], []byte{0xEC, 0x4A, 0x98, 0xEC, 0xF9, 0xA0, 0xE9, 0x47, 0x90, 0x1F, 0x71, 0x41, 0x5A, 0x66, 0x34, 0x5B})
	return b
}

// createParameters is CREATE_VIRTUAL_DISK_PARAMETERS, version 2: a disk of a size
// with defaults for everything else, and a unique id that Windows makes up.
func createParameters(sizeBytes int64) []byte {
	const version, maximumSizeAt = 2, 24
	b := make([]byte, createParametersBytes)
	binary.LittleEndian.PutUint32(b, version)
	binary.LittleEndian.PutUint64(b[maximumSizeAt:], uint64(sizeBytes))
	return b
}

// attachParameters is ATTACH_VIRTUAL_DISK_PARAMETERS, version 1.
func attachParameters() []byte {
	b := make([]byte, attachParametersBytes)
	binary.LittleEndian.PutUint32(b, 1)
	return b
}

// resizeParameters is RESIZE_VIRTUAL_DISK_PARAMETERS, version 1.
func resizeParameters(sizeBytes int64) []byte {
	const newSizeAt = 8
	b := make([]byte, resizeParametersBytes)
	binary.LittleEndian.PutUint32(b, 1)
	binary.LittleEndian.PutUint64(b[newSizeAt:], uint64(sizeBytes))
	return b
}

// diskNumber is the number in a path of the form `\\.\PhysicalDriveN`.
func diskNumber(path string) (uint32, error) {
	const prefix = `\\.\PHYSICALDRIVE`
	digits, ok := strings.CutPrefix(strings.ToUpper(path), prefix)
	number, err := strconv.ParseUint(digits, 10, 32)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is no path of a disk", path)
	}
	return uint32(number), nil
}

// The layout of DRIVE_LAYOUT_INFORMATION_EX and its PARTITION_INFORMATION_EX, and the
// values of PARTITION_STYLE. Source: winioctl.h.
const (
	layoutHeaderBytes = 48
	partitionBytes    = 144

	styleMBR = 0
	styleGPT = 1
)

// reservedType is PARTITION_MSFT_RESERVED_GUID as it is laid out.
var reservedType = [16]byte{0x16, 0xE3, 0xC9, 0xE3, 0x5C, 0x0B, 0xB8, 0x4D, 0x81, 0x7D, 0xF9, 0x2D, 0xF0, 0x02, 0x15, 0xAE}

// readLayout takes DRIVE_LAYOUT_INFORMATION_EX apart.
func readLayout(b []byte) (style host.PartitionStyle, partitions []conformance.Partition, err error) {
	const countAt = 4
	if len(b) < layoutHeaderBytes {
		return "", nil, fmt.Errorf("a drive layout of %d bytes", len(b))
	}
	le := binary.LittleEndian
	switch le.Uint32(b) {
	case styleMBR:
		style = host.StyleMBR
	case styleGPT:
		style = host.StyleGPT
	default:
		return host.StyleRaw, nil, nil
	}
	count := int(le.Uint32(b[countAt:]))
	if count > (len(b)-layoutHeaderBytes)/partitionBytes {
		return "", nil, fmt.Errorf("a drive layout of %d bytes with %d partitions", len(b), count)
	}
	for i := range count {
		if p, ok := readPartition(style, b[layoutHeaderBytes+i*partitionBytes:][:partitionBytes]); ok {
			partitions = append(partitions, p)
		}
	}
	if style == host.StyleMBR && len(partitions) == 0 && le.Uint32(b[8:]) == 0 {
		style = host.StyleRaw // Windows calls a disk without a signature so
	}
	return style, partitions, nil
}

// readPartition takes PARTITION_INFORMATION_EX apart; ok is false when the entry is
// empty or reserved.
func readPartition(style host.PartitionStyle, b []byte) (p conformance.Partition, ok bool) {
	const offsetAt, sizeAt, mbrTypeAt, gptTypeAt, gptIDAt = 8, 16, 32, 32, 48
	le := binary.LittleEndian
	p.OffsetBytes, p.SizeBytes = int64(le.Uint64(b[offsetAt:])), int64(le.Uint64(b[sizeAt:]))
	if style == host.StyleMBR {
		p.ID = fmt.Sprintf("offset %d", p.OffsetBytes)
		return p, b[mbrTypeAt] != 0
	}
	p.ID = fmt.Sprintf("%x", b[gptIDAt:gptIDAt+16])
	return p, [16]byte(b[gptTypeAt:gptTypeAt+16]) != reservedType
}

// The bits of GET_DISK_ATTRIBUTES. Source: ntdddisk.h of the SDK.
const (
	attributesBytes = 16
	attributesAt    = 8

	attributeOffline  = 1
	attributeReadOnly = 2
)

// readAttributes takes GET_DISK_ATTRIBUTES apart.
func readAttributes(b []byte) (offline, readOnly bool, err error) {
	if len(b) < attributesBytes {
		return false, false, fmt.Errorf("disk attributes of %d bytes", len(b))
	}
	bits := binary.LittleEndian.Uint64(b[attributesAt:])
	return bits&attributeOffline != 0, bits&attributeReadOnly != 0, nil
}

// readExtents takes VOLUME_DISK_EXTENTS apart: the disks a volume lies on.
func readExtents(b []byte) (disks []uint32, err error) {
	const firstAt, extentBytes = 8, 24
	le := binary.LittleEndian
	if len(b) < firstAt || uint64(le.Uint32(b)) > uint64(len(b)-firstAt)/extentBytes {
		return nil, fmt.Errorf("volume extents of %d bytes", len(b))
	}
	for i := range int(le.Uint32(b)) {
		disks = append(disks, le.Uint32(b[firstAt+i*extentBytes:]))
	}
	return disks, nil
}
