package image

import (
	"cmp"
	"slices"
)

// Style is the kind of partition table. The numbers are those of
// MSFT_Disk.PartitionStyle (not those of the Win32 PARTITION_STYLE).
type Style uint8

// The styles.
const (
	StyleRAW Style = 0
	StyleMBR Style = 1
	StyleGPT Style = 2
)

// Layout is what a disk's partition table says.
type Layout struct {
	Style     Style
	Signature uint32 // MBR only
	DiskGUID  string // GPT only; braced, lower case
	// FirstUsableBytes and EndUsableBytes bound the room for partitions; the
	// end is exclusive. Both are 0 on a RAW disk.
	FirstUsableBytes, EndUsableBytes int64
	Entries                          []Entry
	// LargestFreeExtentBytes is the largest run of free bytes; 0 on a RAW disk.
	// It counts every free byte, so a partition that must be aligned may get
	// less. Source: MSFT_Disk.LargestFreeExtent (1 MiB after a partition of
	// maximum size; 0 on a disk without table).
	LargestFreeExtentBytes int64
	// AllocatedBytes are partitions and, on GPT, the room of the table before
	// them; 0 on a RAW disk. Source: MSFT_Disk.AllocatedSize.
	AllocatedBytes int64

	free []extent
}

// Entry is one partition.
type Entry struct {
	// Number counts the used entries in table order from 1. Logical drives of
	// an MBR follow the primary ones; an extended partition itself is 0.
	// Source: PARTITION_INFORMATION_EX.PartitionNumber.
	Number        uint32
	OffsetBytes   int64
	SizeBytes     int64
	GPTType       string // braced, lower case; empty on MBR
	MBRType       byte   // 0 on GPT
	GUID          string // braced, lower case; empty on MBR
	GPTAttributes uint64
	Name          string // GPT only, at most 36 UTF-16 units
	Active        bool   // MBR only
}

func (e Entry) endBytes() int64 { return e.OffsetBytes + e.SizeBytes }

func (e Entry) isExtended() bool {
	return e.MBRType == MBRTypeExtended || e.MBRType == mbrTypeExtendedLBA
}

// Partition returns the entry with the number.
func (l Layout) Partition(number uint32) (Entry, bool) {
	i := slices.IndexFunc(l.Entries, func(e Entry) bool { return number != 0 && e.Number == number })
	if i < 0 {
		return Entry{}, false
	}
	return l.Entries[i], true
}

// MaxPartitionBytes is the largest size to which a partition can be resized:
// its own bytes and the free ones directly behind it, 0 when there is no such
// partition. Source: MSFT_Partition.GetSupportedSize, SizeMax.
func (l Layout) MaxPartitionBytes(number uint32) int64 {
	e, ok := l.Partition(number)
	if !ok {
		return 0
	}
	for _, f := range l.free {
		if f.start == e.endBytes() {
			return e.SizeBytes + f.size()
		}
	}
	return e.SizeBytes
}

// extent is a run of bytes, end exclusive.
type extent struct{ start, end int64 }

func (x extent) size() int64 { return x.end - x.start }

// freeExtents returns the gaps that the used extents leave in bounds, in order.
// Used extents may overlap and may reach outside.
func freeExtents(bounds extent, used []Entry) []extent {
	sorted := slices.SortedFunc(slices.Values(used), func(a, b Entry) int {
		return cmp.Compare(a.OffsetBytes, b.OffsetBytes)
	})
	var free []extent
	at := bounds.start
	for _, e := range sorted {
		if gap := (extent{at, min(e.OffsetBytes, bounds.end)}); gap.size() > 0 {
			free = append(free, gap)
		}
		at = max(at, e.endBytes())
	}
	if gap := (extent{at, bounds.end}); gap.size() > 0 {
		free = append(free, gap)
	}
	return free
}
