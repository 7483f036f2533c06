package image

import (
	"fmt"
	"io"
	"os"
)

const (
	// MinGPTBytes is the smallest disk that takes a GPT. Windows documents the
	// error (41014) without a number; "create partition msr" documents 32 MB.
	MinGPTBytes = 32 << 20
	// ReservedOffsetBytes and ReservedSizeBytes are the place of the reserved
	// partition since Windows Server 2016: from the first usable sector to
	// 16 MiB. Source: Get-Partition output of Server 2016 to 2025.
	ReservedOffsetBytes = 17408
	// ReservedSizeBytes goes with ReservedOffsetBytes.
	ReservedSizeBytes = 16<<20 - ReservedOffsetBytes

	clearBytes = 1 << 20 // what Clear zeroes at either end
)

// edit changes the table in memory and writes it back as one step.
func (im *Image) edit(change func(t *table) error) error {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return os.ErrClosed
	}
	t, err := readTable(&im.store, im.store.sizeBytes)
	if err != nil {
		return err
	}
	if err := change(t); err != nil {
		return err
	}
	im.layout = nil
	return t.write(&im.store)
}

// InitGPT writes a protective MBR, both copies of a GPT and the reserved
// partition as number 1. Errors: ErrAlreadyInitialized, ErrTooSmallForGPT,
// ErrInvalid for a malformed GUID. Source: MSFT_Disk.Initialize.
func (im *Image) InitGPT(diskGUID string) error {
	guid, err := guidBytes(diskGUID)
	if err != nil {
		return err
	}
	msr := derivedGUID(guid, "reserved partition")
	return im.initialize(func(diskBytes int64) (*table, error) {
		if diskBytes < MinGPTBytes {
			return nil, ErrTooSmallForGPT
		}
		t := newGPT(guid, diskBytes)
		t.slots[0] = Entry{
			OffsetBytes: ReservedOffsetBytes, SizeBytes: ReservedSizeBytes,
			GPTType: GPTTypeReserved, GUID: guidText(msr[:]), Name: "Microsoft reserved partition",
		}
		return t, nil
	})
}

// InitMBR writes an empty MBR. Error: ErrAlreadyInitialized.
// Source: MSFT_Disk.Initialize, which makes no partition on MBR.
func (im *Image) InitMBR(signature uint32) error {
	return im.initialize(func(diskBytes int64) (*table, error) {
		return &table{style: StyleMBR, diskBytes: diskBytes, signature: signature, slots: make([]Entry, mbrSlots)}, nil
	})
}

func (im *Image) initialize(build func(diskBytes int64) (*table, error)) error {
	return im.edit(func(t *table) error {
		if t.style != StyleRAW {
			return ErrAlreadyInitialized
		}
		fresh, err := build(t.diskBytes)
		if err != nil {
			return err
		}
		*t = *fresh
		// What was in the sector, such as the boot sector of a file system, goes.
		_, err = im.store.WriteAt(make([]byte, SectorBytes), 0)
		return err
	})
}

// AddPartition makes a partition and returns it with its number. See
// PartitionSpec for the rules and errors.
func (im *Image) AddPartition(spec PartitionSpec) (Entry, error) {
	var made Entry
	err := im.edit(func(t *table) error {
		e, err := t.place(spec)
		if err != nil {
			return err
		}
		for i := range t.slots {
			if t.slots[i].SizeBytes == 0 {
				t.slots[i] = e
				for _, numbered := range t.entries() {
					if numbered.OffsetBytes == e.OffsetBytes {
						made = numbered
					}
				}
				return nil
			}
		}
		return ErrPartitionLimit
	})
	return made, err
}

// ResizePartition sets the size of a partition, rounded down to whole sectors.
// Bytes are neither moved nor cleared. Errors: ErrNotFound; ErrSize when the
// size is 0 or reaches into what lies behind.
func (im *Image) ResizePartition(number uint32, sizeBytes int64) error {
	sizeBytes = sizeBytes / SectorBytes * SectorBytes
	return im.edit(func(t *table) error {
		e, err := t.slotOf(number)
		if err != nil {
			return err
		}
		if largest := t.layout().MaxPartitionBytes(number); sizeBytes <= 0 || sizeBytes > largest {
			return fmt.Errorf("partition %d to %d of at most %d bytes: %w", number, sizeBytes, largest, ErrSize)
		}
		e.SizeBytes = sizeBytes
		return nil
	})
}

// DeletePartition takes a partition out of the table; its bytes stay. The
// numbers of the partitions behind it fall by one. Errors: ErrNotFound,
// ErrUnsupported for a logical drive of an MBR.
func (im *Image) DeletePartition(number uint32) error {
	return im.edit(func(t *table) error {
		e, err := t.slotOf(number)
		if err != nil {
			return err
		}
		*e = Entry{}
		return nil
	})
}

// SetDiskGUID changes the identifier of a GPT disk; ErrWrongStyle otherwise.
func (im *Image) SetDiskGUID(guid string) error {
	b, err := guidBytes(guid)
	if err != nil {
		return err
	}
	return im.edit(func(t *table) error {
		t.diskGUID = b
		return t.requireStyle(StyleGPT)
	})
}

// SetSignature changes the signature of an MBR disk; ErrWrongStyle otherwise.
func (im *Image) SetSignature(signature uint32) error {
	return im.edit(func(t *table) error {
		t.signature = signature
		return t.requireStyle(StyleMBR)
	})
}

// SetAttributes sets the attribute bits of a GPT partition, such as 63 (no
// drive letter) and 60 (read-only). Errors: ErrWrongStyle, ErrNotFound.
// Source: PARTITION_INFORMATION_GPT.Attributes.
func (im *Image) SetAttributes(number uint32, attributes uint64) error {
	return im.edit(func(t *table) error {
		if err := t.requireStyle(StyleGPT); err != nil {
			return err
		}
		e, err := t.slotOf(number)
		if err != nil {
			return err
		}
		e.GPTAttributes = attributes
		return nil
	})
}

func (t *table) requireStyle(want Style) error {
	switch t.style {
	case want:
		return nil
	case StyleRAW:
		return ErrNotInitialized
	default:
		return ErrWrongStyle
	}
}

// MoveBackup brings the backup of a GPT to the end of a disk that has grown,
// and makes the new room usable. Other styles have nothing to move.
func (im *Image) MoveBackup() error {
	l, err := im.Layout()
	if err != nil || l.Style != StyleGPT {
		return err
	}
	return im.edit(func(t *table) error {
		if err := t.requireStyle(StyleGPT); err != nil {
			return err
		}
		last := uint64(t.diskBytes/SectorBytes) - 1
		if old := t.gpt.alternate; old < last {
			// A stale header in free space could be taken for the real one.
			if err := zero(&im.store, int64(old)*SectorBytes, SectorBytes); err != nil {
				return err
			}
			t.gpt.alternate = last
			t.gpt.lastUsable = last - arraySectors(t.gpt.entryBytes, len(t.slots)) - 1
		}
		return nil
	})
}

// Clear zeroes the first and the last MiB: the disk is RAW afterwards.
// Source: MSFT_Disk.Clear without ZeroOutEntireDisk.
func (im *Image) Clear() error {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return os.ErrClosed
	}
	im.layout = nil
	size := im.store.sizeBytes
	n := min(size, clearBytes)
	if err := zero(&im.store, 0, n); err != nil {
		return err
	}
	return zero(&im.store, size-n, n)
}

// zero writes sizeBytes zero bytes at off.
func zero(w io.WriterAt, off, sizeBytes int64) error {
	_, err := w.WriteAt(make([]byte, sizeBytes), off)
	return err
}
