package probe

import (
	"bytes"
	"encoding/binary"
)

// Places and sizes in a GUID partition table. Source: UEFI specification,
// chapter 5.3.
const (
	mbrBytes        = 512
	mbrCodeBytes    = 440
	mbrTableOffset  = 446
	mbrMarkOffset   = 510
	mbrEntryBytes   = 16
	mbrTypeOffset   = 4
	mbrTypeGPT      = 0xEE
	gptEntryBytes   = 128
	gptEntries      = 128
	gptEntriesBytes = gptEntries * gptEntryBytes
	guidBytes       = 16

	gptSignature        = "EFI PART"
	gptOwnLBAOffset     = 24
	gptEntriesLBAOffset = 72
	gptCountOffset      = 80
	gptSizeOffset       = 84
)

// reservedType is the type GUID of the Microsoft reserved partition,
// E3C9E316-0B5C-4DB8-817D-F92DF00215AE, as it stands on the disk.
const reservedType = "\x16\xe3\xc9\xe3\x5c\x0b\xb8\x4d\x81\x7d\xf9\x2d\xf0\x02\x15\xae"

// IsEmptyTable reports whether a disk holds nothing but parts of a partition
// table without partitions, the reserved one aside: what is left when making a
// table is cut off half-way.
func IsEmptyTable(head, tail []byte) bool {
	for _, sector := range []int{512, 4096} {
		if isEmptyHead(head, sector) && isEmptyTail(tail, sector) {
			return true
		}
	}
	return false
}

// isEmptyHead looks at the protective MBR, the header in the second sector and
// the entries behind it. All of them may be missing; nothing else may be there.
func isEmptyHead(head []byte, sector int) bool {
	entriesEnd := 2*sector + gptEntriesBytes
	if len(head) < entriesEnd {
		return false
	}
	header := head[sector : 2*sector]
	return isEmptyMBR(head[:mbrBytes]) && isZero(head[mbrBytes:sector]) &&
		isHeaderOrZero(header, 1) && areEmptyEntries(head[2*sector:entriesEnd]) &&
		isZero(head[entriesEnd:])
}

// isEmptyTail looks at the copy at the end: the entries, then the header.
func isEmptyTail(tail []byte, sector int) bool {
	entriesStart := len(tail) - sector - gptEntriesBytes
	if entriesStart < 0 {
		return false
	}
	headerStart := len(tail) - sector
	if !isHeaderOrZero(tail[headerStart:], -gptEntriesBytes/int64(sector)) || !areEmptyEntries(tail[entriesStart:headerStart]) {
		return false
	}
	// Marks are found by their distance from the end, so the table is blanked, not cut off.
	others := bytes.Clone(tail)
	clear(others[entriesStart:])
	return Look(nil, others) == ""
}

func isEmptyMBR(mbr []byte) bool {
	if isZero(mbr) {
		return true
	}
	if !isZero(mbr[:mbrCodeBytes]) || mbr[mbrMarkOffset] != 0x55 || mbr[mbrMarkOffset+1] != 0xAA {
		return false
	}
	for entry := mbrTableOffset; entry < mbrMarkOffset; entry += mbrEntryBytes {
		kind := mbr[entry+mbrTypeOffset]
		if kind != mbrTypeGPT && !isZero(mbr[entry:entry+mbrEntryBytes]) {
			return false
		}
	}
	return true
}

// isHeaderOrZero reports whether a sector is empty, or a header that names no
// entries but those that are looked at: so many sectors from the header itself,
// in the number and size Windows makes. Of another header the partitions would
// not be seen.
func isHeaderOrZero(sector []byte, entriesFromHeader int64) bool {
	if !isHeader(sector) {
		return isZero(sector)
	}
	le := binary.LittleEndian
	own, entries := int64(le.Uint64(sector[gptOwnLBAOffset:])), int64(le.Uint64(sector[gptEntriesLBAOffset:]))
	count, size := le.Uint32(sector[gptCountOffset:]), le.Uint32(sector[gptSizeOffset:])
	if entries == 0 && count == 0 {
		return true // not written to its end
	}
	return entries-own == entriesFromHeader && count == gptEntries && size == gptEntryBytes
}

func isHeader(sector []byte) bool { return bytes.HasPrefix(sector, []byte(gptSignature)) }

// ClearMBR zeroes the table of a master boot record among the first bytes of a
// disk, so that Look finds what is there besides it. Boot code stays: a format
// that covers the whole disk may begin there.
func ClearMBR(head []byte) {
	if len(head) >= mbrBytes && head[mbrMarkOffset] == 0x55 && head[mbrMarkOffset+1] == 0xAA {
		clear(head[mbrCodeBytes:mbrBytes])
	}
}

// ClearGPT does the same for a GUID partition table, its MBR and its copy. It is
// for disks on which Windows uses that table: where it does not, the table is
// what is left of somebody's disk.
func ClearGPT(head, tail []byte) {
	ClearMBR(head)
	for _, sector := range []int{512, 4096} {
		if end := 2*sector + gptEntriesBytes; len(head) >= end && isHeader(head[sector:]) {
			clear(head[sector:end])
		}
		if start := len(tail) - sector - gptEntriesBytes; start >= 0 && isHeader(tail[len(tail)-sector:]) {
			clear(tail[start:])
		}
	}
}

func areEmptyEntries(entries []byte) bool {
	for entry := 0; entry < len(entries); entry += gptEntryBytes {
		kind := entries[entry : entry+guidBytes]
		if string(kind) != reservedType && !isZero(entries[entry:entry+gptEntryBytes]) {
			return false
		}
	}
	return true
}

func isZero(b []byte) bool { return FirstNonZero(b) < 0 }
