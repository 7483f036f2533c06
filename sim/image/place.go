package image

import (
	"fmt"
	"math"
	"unicode/utf16"

	"github.com/google/uuid"
)

// PartitionSpec asks for a partition. Source of the rules:
// MSFT_Disk.CreatePartition.
type PartitionSpec struct {
	// SizeBytes is rounded up to whole sectors. Exactly one of SizeBytes and
	// UseMaximumSize is given (ErrSizeChoice).
	SizeBytes int64
	// UseMaximumSize fills the largest free extent, not the first.
	UseMaximumSize bool
	// OffsetBytes is the start; 0 lets the table choose the first extent that
	// fits. Without AlignmentBytes an unaligned offset is rounded to the default
	// boundary; with it, it is ErrBadOffset. An offset that is taken is too.
	OffsetBytes int64
	// AlignmentBytes is a multiple of a sector (ErrBadAlignment); 0 is the
	// default: 1 MiB on disks of 4 GiB and more, 64 KiB below.
	AlignmentBytes int64

	GPTType       string // empty is basic data; on MBR ErrWrongStyle
	MBRType       byte   // 0 is MBRTypeHuge; on GPT ErrWrongStyle
	GUID          string // GPT; empty is a random one
	GPTAttributes uint64
	Name          string // GPT; empty is "Basic data partition", as Windows names it
	Active        bool   // MBR; on GPT ErrWrongStyle
}

const (
	largeDiskBytes = int64(4) << 30
	// mbrTailBytes stay free at the end of an MBR disk: the room that a later
	// conversion to a dynamic disk needs for its database.
	mbrTailBytes = 1 << 20
)

// defaultAlignment is the boundary for new partitions.
// Source: IVdsCreatePartitionEx::CreatePartitionEx, default alignment.
func defaultAlignment(diskBytes int64) int64 {
	if diskBytes >= largeDiskBytes {
		return 1 << 20
	}
	return 64 << 10
}

// place turns a request into an entry with a place on the disk.
func (t *table) place(spec PartitionSpec) (Entry, error) {
	e, err := t.typed(spec)
	if err != nil {
		return Entry{}, err
	}
	if (spec.SizeBytes != 0) == spec.UseMaximumSize {
		return Entry{}, ErrSizeChoice
	}
	if spec.AlignmentBytes < 0 || spec.AlignmentBytes > math.MaxUint32 || spec.AlignmentBytes%SectorBytes != 0 {
		return Entry{}, ErrBadAlignment
	}
	if spec.SizeBytes < 0 || spec.SizeBytes > t.diskBytes {
		return Entry{}, ErrNoSpace
	}
	align := spec.AlignmentBytes
	if align == 0 {
		align = defaultAlignment(t.diskBytes)
	}
	room, err := t.room(spec, align)
	if err != nil {
		return Entry{}, err
	}
	e.OffsetBytes, e.SizeBytes = room.start, roundUp(spec.SizeBytes, SectorBytes)
	if spec.UseMaximumSize {
		e.SizeBytes = t.maximumEnd(room, align) - room.start
	}
	if e.SizeBytes <= 0 || e.SizeBytes > room.size() {
		return Entry{}, t.noRoom()
	}
	return e, nil
}

// noRoom tells lack of space from space that an MBR cannot address.
func (t *table) noRoom() error {
	if t.style == StyleMBR && t.diskBytes > maxMBRBytes {
		return ErrBeyond2TiB
	}
	return ErrNoSpace
}

// typed checks what depends on the style and fills in the defaults.
func (t *table) typed(spec PartitionSpec) (Entry, error) {
	switch t.style {
	case StyleGPT:
		return typedGPT(spec)
	case StyleMBR:
		if spec.GPTType != "" || spec.GUID != "" || spec.GPTAttributes != 0 || spec.Name != "" {
			return Entry{}, ErrWrongStyle
		}
		e := Entry{MBRType: spec.MBRType, Active: spec.Active}
		if e.MBRType == 0 {
			e.MBRType = MBRTypeHuge
		}
		if e.isExtended() || e.MBRType == mbrTypeProtective {
			return Entry{}, fmt.Errorf("MBR type 0x%02x: %w", e.MBRType, ErrBadType)
		}
		return e, nil
	default:
		return Entry{}, ErrNotInitialized
	}
}

func typedGPT(spec PartitionSpec) (Entry, error) {
	if spec.MBRType != 0 || spec.Active {
		return Entry{}, ErrWrongStyle
	}
	e := Entry{GPTAttributes: spec.GPTAttributes, Name: spec.Name}
	if e.Name == "" {
		e.Name = "Basic data partition"
	}
	if len(utf16.Encode([]rune(e.Name))) > gptNameUnits {
		return Entry{}, fmt.Errorf("partition name: %w", ErrInvalid)
	}
	kind, guid := spec.GPTType, spec.GUID
	if kind == "" {
		kind = GPTTypeBasicData
	}
	if guid == "" {
		guid = uuid.NewString()
	}
	k, err := guidBytes(kind)
	if err != nil || k == [16]byte{} {
		return Entry{}, fmt.Errorf("GPT type %q: %w", kind, ErrBadType)
	}
	g, err := guidBytes(guid)
	if err != nil {
		return Entry{}, err
	}
	e.GPTType, e.GUID = guidText(k[:]), guidText(g[:])
	return e, nil
}

// room chooses the free extent for a request, cut to its aligned start; an
// empty one when none fits.
func (t *table) room(spec PartitionSpec, align int64) (extent, error) {
	if spec.OffsetBytes != 0 {
		return t.roomAt(spec, align)
	}
	var largest extent
	for _, f := range t.free() {
		f.start = roundUp(f.start, align)
		if !spec.UseMaximumSize && f.size() >= spec.SizeBytes {
			return f, nil
		}
		if spec.UseMaximumSize && f.size() > largest.size() {
			largest = f
		}
	}
	return largest, nil
}

// roomAt is the rest of the free extent that holds the wanted offset.
func (t *table) roomAt(spec PartitionSpec, align int64) (extent, error) {
	off := spec.OffsetBytes
	if t.style == StyleMBR && off >= maxMBRBytes && off < t.diskBytes {
		return extent{}, ErrBeyond2TiB
	}
	if off < 0 || off > t.diskBytes || off%align != 0 && spec.AlignmentBytes != 0 {
		return extent{}, ErrBadOffset
	}
	for _, f := range t.free() {
		for _, start := range []int64{off / align * align, roundUp(off, align)} {
			if start >= f.start && start < f.end {
				return extent{start, f.end}, nil
			}
		}
	}
	return extent{}, ErrBadOffset
}

// maximumEnd is where a partition of maximum size ends: on a boundary, and
// before the tail that an MBR disk keeps.
func (t *table) maximumEnd(room extent, align int64) int64 {
	end := room.end
	if t.style == StyleMBR {
		end = min(end, t.diskBytes-mbrTailBytes)
	}
	return end / align * align
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }
