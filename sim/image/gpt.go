package image

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"
	"unicode/utf16"
)

// The GUID partition table. Source: UEFI specification, chapter 5.3.
const (
	gptSignature       = "EFI PART"
	gptRevision        = 0x00010000
	gptHeaderBytes     = 92
	gptEntryBytes      = 128
	gptEntryCount      = 128
	gptPrimaryLBA      = 1
	gptEntriesLBA      = 2
	gptArraySectors    = gptEntryBytes * gptEntryCount / SectorBytes
	gptMaxArrayBytes   = 1 << 20 // far above any real table; bounds what a bad header can ask for
	gptNameUnits       = 36
	gptProtectiveStart = 446 // the first entry of the protective MBR
)

// gptGeometry is where the parts of a table lie, in sectors.
type gptGeometry struct {
	alternate               uint64 // backup header
	firstUsable, lastUsable uint64
	entriesLBA              uint64 // primary array
	entryBytes              uint32
}

func arraySectors(entryBytes uint32, count int) uint64 {
	return (uint64(entryBytes)*uint64(count) + SectorBytes - 1) / SectorBytes
}

// newGPT is the empty table that Windows writes: the array at sector 2, data
// from sector 34 on, the backup in the last 33 sectors.
func newGPT(diskGUID [16]byte, diskBytes int64) *table {
	last := uint64(diskBytes/SectorBytes) - 1
	return &table{
		style: StyleGPT, diskBytes: diskBytes, diskGUID: diskGUID,
		gpt: gptGeometry{
			alternate: last, firstUsable: gptEntriesLBA + gptArraySectors, lastUsable: last - gptArraySectors - 1,
			entriesLBA: gptEntriesLBA, entryBytes: gptEntryBytes,
		},
		slots: make([]Entry, gptEntryCount),
	}
}

// decodeGPT reads the primary table or, when that is damaged, the backup in the
// last sector. It returns nil when neither is good.
func decodeGPT(r io.ReaderAt, diskBytes int64) (*table, error) {
	last := uint64(diskBytes/SectorBytes) - 1
	for _, lba := range []uint64{gptPrimaryLBA, last} {
		if lba == 0 || lba > last {
			continue
		}
		t, err := decodeGPTAt(r, lba, diskBytes)
		if err != nil || t != nil {
			return t, err
		}
	}
	return nil, nil
}

// decodeGPTAt reads the table whose header is at lba; nil when it is damaged.
func decodeGPTAt(r io.ReaderAt, lba uint64, diskBytes int64) (*table, error) {
	h, err := readSectors(r, lba, 1)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	headerBytes := le.Uint32(h[12:])
	if string(h[:8]) != gptSignature || headerBytes < gptHeaderBytes || headerBytes > SectorBytes ||
		headerCRC(h, headerBytes) != le.Uint32(h[16:]) || le.Uint64(h[24:]) != lba {
		return nil, nil
	}
	t := &table{style: StyleGPT, diskBytes: diskBytes, diskGUID: [16]byte(h[56:72]), gpt: gptGeometry{
		alternate: le.Uint64(h[32:]), firstUsable: le.Uint64(h[40:]), lastUsable: le.Uint64(h[48:]),
		entriesLBA: le.Uint64(h[72:]), entryBytes: le.Uint32(h[84:]),
	}}
	count, arrayLBA, arrayCRC := le.Uint32(h[80:]), t.gpt.entriesLBA, le.Uint32(h[88:])
	if lba != gptPrimaryLBA {
		t.gpt.alternate, t.gpt.entriesLBA = lba, gptEntriesLBA
	}
	if !t.gpt.sane(count, arrayLBA, uint64(diskBytes/SectorBytes)) {
		return nil, nil
	}
	array, err := readSectors(r, arrayLBA, int(arraySectors(t.gpt.entryBytes, int(count))))
	if err != nil {
		return nil, err
	}
	array = array[:count*t.gpt.entryBytes]
	if crc32.ChecksumIEEE(array) != arrayCRC || !t.decodeSlots(array) {
		return nil, nil
	}
	return t, nil
}

// sane checks a header's geometry against the disk, so that nothing outside is
// read and a later write overlaps nothing.
func (g gptGeometry) sane(count uint32, arrayLBA, diskSectors uint64) bool {
	n := g.entryBytes / gptEntryBytes
	if n == 0 || g.entryBytes%gptEntryBytes != 0 || n&(n-1) != 0 ||
		count == 0 || uint64(count)*uint64(g.entryBytes) > gptMaxArrayBytes {
		return false
	}
	size := arraySectors(g.entryBytes, int(count))
	return g.alternate < diskSectors && arrayLBA < diskSectors && arrayLBA+size <= diskSectors &&
		g.entriesLBA >= gptEntriesLBA && g.entriesLBA < diskSectors && g.entriesLBA+size <= g.firstUsable &&
		g.firstUsable <= g.lastUsable && g.lastUsable < diskSectors && g.lastUsable+size < g.alternate
}

// decodeSlots reads the entries. An entry that ends before it starts or
// reaches beyond the disk spoils the table.
func (t *table) decodeSlots(array []byte) bool {
	le := binary.LittleEndian
	sectors := uint64(t.diskBytes / SectorBytes)
	for b := array; len(b) > 0; b = b[t.gpt.entryBytes:] {
		if [16]byte(b[:16]) == [16]byte{} {
			t.slots = append(t.slots, Entry{})
			continue
		}
		first, last := le.Uint64(b[32:]), le.Uint64(b[40:])
		if first > last || last >= sectors {
			return false
		}
		t.slots = append(t.slots, Entry{
			OffsetBytes: int64(first) * SectorBytes, SizeBytes: int64(last-first+1) * SectorBytes,
			GPTType: guidText(b[:16]), GUID: guidText(b[16:32]),
			GPTAttributes: le.Uint64(b[48:]), Name: utf16Text(b[56:gptEntryBytes]),
		})
	}
	return true
}

// writeGPT writes both tables and the size in the protective MBR; the boot code
// before it stays.
func (t *table) writeGPT(w io.WriterAt) error {
	array, err := t.encodeSlots()
	if err != nil {
		return err
	}
	backupArray := t.gpt.alternate - arraySectors(t.gpt.entryBytes, len(t.slots))
	crc := crc32.ChecksumIEEE(array)
	for _, part := range []struct {
		lba  uint64
		data []byte
	}{
		{backupArray, array},
		{t.gpt.alternate, t.encodeHeader(t.gpt.alternate, gptPrimaryLBA, backupArray, crc)},
		{t.gpt.entriesLBA, array},
		{gptPrimaryLBA, t.encodeHeader(gptPrimaryLBA, t.gpt.alternate, t.gpt.entriesLBA, crc)},
	} {
		if _, err := w.WriteAt(part.data, int64(part.lba)*SectorBytes); err != nil {
			return err
		}
	}
	_, err = w.WriteAt(protectiveEntries(t.diskBytes), gptProtectiveStart)
	return err
}

func (t *table) encodeHeader(self, other, arrayLBA uint64, arrayCRC uint32) []byte {
	h := make([]byte, SectorBytes)
	le := binary.LittleEndian
	copy(h, gptSignature)
	le.PutUint32(h[8:], gptRevision)
	le.PutUint32(h[12:], gptHeaderBytes)
	le.PutUint64(h[24:], self)
	le.PutUint64(h[32:], other)
	le.PutUint64(h[40:], t.gpt.firstUsable)
	le.PutUint64(h[48:], t.gpt.lastUsable)
	copy(h[56:], t.diskGUID[:])
	le.PutUint64(h[72:], arrayLBA)
	le.PutUint32(h[80:], uint32(len(t.slots)))
	le.PutUint32(h[84:], t.gpt.entryBytes)
	le.PutUint32(h[88:], arrayCRC)
	le.PutUint32(h[16:], headerCRC(h, gptHeaderBytes))
	return h
}

func (t *table) encodeSlots() ([]byte, error) {
	array := make([]byte, len(t.slots)*int(t.gpt.entryBytes))
	le := binary.LittleEndian
	for i, e := range t.slots {
		if e.SizeBytes == 0 {
			continue
		}
		b := array[i*int(t.gpt.entryBytes):]
		kind, err := guidBytes(e.GPTType)
		if err != nil {
			return nil, err
		}
		id, err := guidBytes(e.GUID)
		if err != nil {
			return nil, err
		}
		copy(b, kind[:])
		copy(b[16:], id[:])
		le.PutUint64(b[32:], uint64(e.OffsetBytes/SectorBytes))
		le.PutUint64(b[40:], uint64(e.endBytes()/SectorBytes-1))
		le.PutUint64(b[48:], e.GPTAttributes)
		putUTF16(b[56:gptEntryBytes], e.Name)
	}
	return array, nil
}

// headerCRC is the checksum of a header, its own field taken as zero.
func headerCRC(h []byte, headerBytes uint32) uint32 {
	h = bytes.Clone(h[:headerBytes])
	clear(h[16:20])
	return crc32.ChecksumIEEE(h)
}

// isProtectiveMBR reports whether the sector sends a reader on to a GPT. A
// hybrid MBR, which has other entries too, is an MBR to Windows.
func isProtectiveMBR(sector []byte) bool {
	if !hasBootMark(sector) {
		return false
	}
	found := false
	for i := range mbrSlots {
		switch kind := sector[mbrEntryOffset+16*i+4]; kind {
		case 0:
		case mbrTypeProtective:
			found = true
		default:
			return false
		}
	}
	return found
}

// protectiveEntries is the tail of a protective MBR: one entry that covers the
// disk, three empty ones and the mark.
func protectiveEntries(diskBytes int64) []byte {
	b := make([]byte, SectorBytes-gptProtectiveStart)
	copy(b, []byte{0x00, 0x00, 0x02, 0x00, mbrTypeProtective, 0xFF, 0xFF, 0xFF})
	binary.LittleEndian.PutUint32(b[8:], 1)
	binary.LittleEndian.PutUint32(b[12:], uint32(min(diskBytes/SectorBytes-1, 0xFFFFFFFF)))
	b[len(b)-2], b[len(b)-1] = 0x55, 0xAA
	return b
}

// utf16Text reads little-endian UTF-16 up to the first zero unit.
func utf16Text(b []byte) string {
	units := make([]uint16, 0, len(b)/2)
	for ; len(b) >= 2; b = b[2:] {
		u := binary.LittleEndian.Uint16(b)
		if u == 0 {
			break
		}
		units = append(units, u)
	}
	return strings.ToValidUTF8(string(utf16.Decode(units)), "\uFFFD")
}

// putUTF16 writes text as little-endian UTF-16, cut to what fits.
func putUTF16(b []byte, text string) {
	for _, u := range utf16.Encode([]rune(text)) {
		if len(b) < 2 {
			return
		}
		binary.LittleEndian.PutUint16(b, u)
		b = b[2:]
	}
}
