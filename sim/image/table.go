package image

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// table is a partition table in memory. Edits change it and write it back; the
// two encodings are in gpt.go and mbr.go.
type table struct {
	style     Style
	diskBytes int64
	signature uint32
	diskGUID  [16]byte
	gpt       gptGeometry
	slots     []Entry // by place in the table; SizeBytes 0 is an empty place
	logical   []Entry // logical drives of an MBR, read only
}

// readTable reads the table of a disk of diskBytes. Bytes that make no sense
// are a RAW disk.
func readTable(r io.ReaderAt, diskBytes int64) (*table, error) {
	sector0, err := readSectors(r, 0, 1)
	if err != nil {
		return nil, err
	}
	raw := &table{diskBytes: diskBytes}
	switch {
	case isProtectiveMBR(sector0):
		t, err := decodeGPT(r, diskBytes)
		if err != nil || t != nil {
			return t, err
		}
		// Both headers are damaged: Windows shows a disk that has to be initialized.
		return raw, nil
	default:
		t, err := decodeMBR(r, sector0, diskBytes)
		if err != nil || t != nil {
			return t, err
		}
		return raw, nil
	}
}

// readSectors reads count sectors at lba. The end of the disk is an error.
func readSectors(r io.ReaderAt, lba uint64, count int) ([]byte, error) {
	buf := make([]byte, count*SectorBytes)
	n, err := r.ReadAt(buf, int64(lba)*SectorBytes)
	if n == len(buf) {
		return buf, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("read sector %d: %w", lba, err)
}

// write puts the table back.
func (t *table) write(w io.WriterAt) error {
	switch t.style {
	case StyleGPT:
		return t.writeGPT(w)
	case StyleMBR:
		return t.writeMBR(w)
	default:
		return ErrNotInitialized
	}
}

// bounds is where partitions may lie.
func (t *table) bounds() extent {
	switch t.style {
	case StyleGPT:
		return extent{int64(t.gpt.firstUsable) * SectorBytes, int64(t.gpt.lastUsable+1) * SectorBytes}
	case StyleMBR:
		return extent{defaultAlignment(t.diskBytes), min(t.diskBytes, maxMBRBytes)}
	default:
		return extent{}
	}
}

// free returns the free extents in order.
func (t *table) free() []extent { return freeExtents(t.bounds(), t.slots) }

// entries returns the used entries with their numbers.
func (t *table) entries() []Entry {
	var all []Entry
	number := uint32(0)
	for _, e := range slices.Concat(t.slots, t.logical) {
		if e.SizeBytes == 0 {
			continue
		}
		if e.isExtended() {
			e.Number = 0
		} else {
			number++
			e.Number = number
		}
		all = append(all, e)
	}
	return all
}

// slotOf returns the place of a partition that can be edited.
func (t *table) slotOf(number uint32) (*Entry, error) {
	if t.style == StyleRAW {
		return nil, ErrNotInitialized
	}
	count := uint32(0)
	for i := range t.slots {
		if t.slots[i].SizeBytes == 0 || t.slots[i].isExtended() {
			continue
		}
		if count++; count == number {
			return &t.slots[i], nil
		}
	}
	if number > count && number <= count+uint32(len(t.logical)) {
		return nil, fmt.Errorf("logical drive %d: %w", number, ErrUnsupported)
	}
	return nil, fmt.Errorf("partition %d: %w", number, ErrNotFound)
}

func (t *table) layout() Layout {
	l := Layout{Style: t.style, Entries: t.entries(), free: t.free()}
	l.FirstUsableBytes, l.EndUsableBytes = t.bounds().start, t.bounds().end
	switch t.style {
	case StyleGPT:
		l.DiskGUID = guidText(t.diskGUID[:])
		l.AllocatedBytes = l.FirstUsableBytes
	case StyleMBR:
		l.Signature = t.signature
	}
	for _, e := range t.slots {
		l.AllocatedBytes += e.SizeBytes
	}
	for _, f := range l.free {
		l.LargestFreeExtentBytes = max(l.LargestFreeExtentBytes, f.size())
	}
	return l
}
