package probe

import "bytes"

// Places and sizes in a GUID partition table. Source: UEFI specification,
// chapter 5.3.
const (
	mbrBytes        = 512
	mbrCodeBytes    = 440
	mbrTableOffset  = 446
	mbrEntryBytes   = 16
	mbrTypeOffset   = 4
	mbrTypeGPT      = 0xEE
	gptEntryBytes   = 128
	gptEntriesBytes = 128 * gptEntryBytes
	guidBytes       = 16
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
		isHeaderOrZero(header) && areEmptyEntries(head[2*sector:entriesEnd]) &&
		isZero(head[entriesEnd:])
}

// isEmptyTail looks at the copy at the end: the entries, then the header.
func isEmptyTail(tail []byte, sector int) bool {
	entriesStart := len(tail) - sector - gptEntriesBytes
	if entriesStart < 0 {
		return false
	}
	headerStart := len(tail) - sector
	if !isHeaderOrZero(tail[headerStart:]) || !areEmptyEntries(tail[entriesStart:headerStart]) {
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
	if !isZero(mbr[:mbrCodeBytes]) || mbr[510] != 0x55 || mbr[511] != 0xAA {
		return false
	}
	for entry := mbrTableOffset; entry < 510; entry += mbrEntryBytes {
		kind := mbr[entry+mbrTypeOffset]
		if kind != mbrTypeGPT && !isZero(mbr[entry:entry+mbrEntryBytes]) {
			return false
		}
	}
	return true
}

func isHeaderOrZero(sector []byte) bool {
	return bytes.HasPrefix(sector, []byte("EFI PART")) || isZero(sector)
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
