package image

import (
	"encoding/binary"
	"io"
)

// The master boot record.
const (
	mbrSlots           = 4
	mbrEntryOffset     = 446
	mbrEntryBytes      = 16
	mbrSignatureOffset = 440
	mbrMaxLogical      = 128 // bounds a chain that leads in circles
	// maxMBRBytes is the end of what 32-bit sector numbers address.
	maxMBRBytes = int64(1) << 32 * SectorBytes
)

func hasBootMark(sector []byte) bool { return sector[510] == 0x55 && sector[511] == 0xAA }

// mbrEntry is one entry as it stands in the sector.
type mbrEntry struct {
	status, kind   byte
	start, sectors uint32
}

func mbrEntryAt(sector []byte, slot int) mbrEntry {
	b := sector[mbrEntryOffset+slot*mbrEntryBytes:]
	return mbrEntry{b[0], b[4], binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])}
}

func (m mbrEntry) isExtended() bool { return m.kind == MBRTypeExtended || m.kind == mbrTypeExtendedLBA }

// entry turns the record into an Entry; start is relative to base sectors.
func (m mbrEntry) entry(base uint64) Entry {
	return Entry{
		OffsetBytes: int64(base+uint64(m.start)) * SectorBytes, SizeBytes: int64(m.sectors) * SectorBytes,
		MBRType: m.kind, Active: m.status == 0x80,
	}
}

// decodeMBR reads a master boot record. The boot sector of a file system that
// covers the whole disk ends with the same mark; it is told apart by its
// entries, which are code or text there: then the disk is RAW, and nil returned.
func decodeMBR(r io.ReaderAt, sector []byte, diskBytes int64) (*table, error) {
	if !hasBootMark(sector) {
		return nil, nil
	}
	t := &table{
		style: StyleMBR, diskBytes: diskBytes, slots: make([]Entry, mbrSlots),
		signature: binary.LittleEndian.Uint32(sector[mbrSignatureOffset:]),
	}
	used := 0
	for i := range t.slots {
		m := mbrEntryAt(sector, i)
		if m.status != 0 && m.status != 0x80 {
			return nil, nil
		}
		if m.kind == 0 {
			continue
		}
		if m.start == 0 || m.sectors == 0 || int64(m.start)+int64(m.sectors) > diskBytes/SectorBytes {
			return nil, nil
		}
		t.slots[i] = m.entry(0)
		used++
	}
	if overlapping(t.slots) || used == 0 && isFileSystemBootSector(sector) {
		return nil, nil
	}
	for _, e := range t.slots {
		if e.isExtended() {
			if err := t.readLogical(r, e); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

func overlapping(entries []Entry) bool {
	for i, a := range entries {
		for _, b := range entries[:i] {
			if a.OffsetBytes < b.endBytes() && b.OffsetBytes < a.endBytes() {
				return true
			}
		}
	}
	return false
}

// readLogical follows the chain of boot records in an extended partition. Each
// holds one logical drive, relative to itself, and the way to the next record,
// relative to the extended partition. A link that leads outside ends the chain.
func (t *table) readLogical(r io.ReaderAt, extended Entry) error {
	base, end := uint64(extended.OffsetBytes/SectorBytes), uint64(extended.endBytes()/SectorBytes)
	for at := base; len(t.logical) < mbrMaxLogical; {
		sector, err := readSectors(r, at, 1)
		if err != nil {
			return err
		}
		drive, next := mbrEntryAt(sector, 0), mbrEntryAt(sector, 1)
		if !hasBootMark(sector) {
			return nil
		}
		if drive.kind != 0 && drive.start != 0 && drive.sectors != 0 &&
			at+uint64(drive.start)+uint64(drive.sectors) <= end {
			t.logical = append(t.logical, drive.entry(at))
		}
		// A chain only leads forward, or it would have no end.
		if !next.isExtended() || base+uint64(next.start) <= at || base+uint64(next.start) >= end {
			return nil
		}
		at = base + uint64(next.start)
	}
	return nil
}

// writeMBR writes signature, entries and mark; the boot code before them stays.
func (t *table) writeMBR(w io.WriterAt) error {
	b := make([]byte, SectorBytes-mbrSignatureOffset)
	le := binary.LittleEndian
	le.PutUint32(b, t.signature)
	for i, e := range t.slots {
		if e.SizeBytes == 0 {
			continue
		}
		p := b[mbrEntryOffset-mbrSignatureOffset+i*mbrEntryBytes:]
		if e.Active {
			p[0] = 0x80
		}
		// Cylinder, head and sector are the values for "see the sector numbers".
		copy(p[1:], []byte{0xFE, 0xFF, 0xFF, e.MBRType, 0xFE, 0xFF, 0xFF})
		le.PutUint32(p[8:], uint32(e.OffsetBytes/SectorBytes))
		le.PutUint32(p[12:], uint32(e.SizeBytes/SectorBytes))
	}
	b[len(b)-2], b[len(b)-1] = 0x55, 0xAA
	_, err := w.WriteAt(b, mbrSignatureOffset)
	return err
}
