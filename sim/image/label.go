package image

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// NTFS and ReFS keep the label in metadata that this package does not build
// (NTFS in record 3 of the MFT). The images keep it in a private field instead,
// in the last sector of the 8 KiB that both reserve for boot code:
//
//	7680  8 bytes  labelMark
//	7688  2 bytes  number of UTF-16 units, little-endian
//	7690  64 bytes the units, little-endian
//
// A file system made by a foreign tool has no such field, and an empty label.
const (
	bootAreaBytes = 8 << 10
	labelOffset   = bootAreaBytes - SectorBytes
	labelMark     = "SIMLABEL"
	labelUnits    = 32 // Source: SetVolumeLabel, NTFS limit
)

// labelField encodes the private field.
func labelField(label string) ([]byte, error) {
	units := utf16.Encode([]rune(label))
	if err := checkLabel(label, len(units), labelUnits, "\x00"); err != nil {
		return nil, err
	}
	b := make([]byte, len(labelMark)+2+2*labelUnits)
	copy(b, labelMark)
	binary.LittleEndian.PutUint16(b[len(labelMark):], uint16(len(units)))
	putUTF16(b[len(labelMark)+2:], label)
	return b, nil
}

// readLabel returns the label in the private field, empty when there is none.
func readLabel(v volume) string {
	b, ok := v.read(labelOffset, int64(len(labelMark)+2+2*labelUnits))
	if !ok || string(b[:len(labelMark)]) != labelMark {
		return ""
	}
	n := int(binary.LittleEndian.Uint16(b[len(labelMark):]))
	return utf16Text(b[len(labelMark)+2:][:2*min(n, labelUnits)])
}

// checkLabel checks length and characters of a label.
func checkLabel(label string, units, limit int, forbidden string) error {
	if units > limit || strings.ContainsAny(label, forbidden) || !validText(label) {
		return fmt.Errorf("label of %d characters: %w", units, ErrLabel)
	}
	return nil
}

func validText(s string) bool { return strings.ToValidUTF8(s, "") == s }

// SetLabel changes the label of the file system on the volume of sizeBytes at
// offsetBytes. Errors: ErrLabel; ErrFileSystem when there is no file system.
// Source: MSFT_Volume.SetFileSystemLabel.
func SetLabel(rw ReadWriterAt, offsetBytes, sizeBytes int64, label string) error {
	v := volume{r: rw, offset: offsetBytes, size: sizeBytes}
	boot, ok := v.read(0, SectorBytes)
	if !ok {
		return fmt.Errorf("read boot sector at %d: %w", offsetBytes, io.ErrUnexpectedEOF)
	}
	var field []byte
	var at int64
	var err error
	switch name := Detect(rw, offsetBytes, sizeBytes).Name; name {
	case NTFS, ReFS:
		at = labelOffset
		field, err = labelField(label)
	case ExFAT:
		at = exFATRootOffset(boot)
		field, err = exFATLabelEntry(label)
	case FAT, FAT32:
		at = fatLabelOffset(name)
		field, err = fatLabel(label)
	default:
		return ErrFileSystem
	}
	if err != nil {
		return err
	}
	_, err = rw.WriteAt(field, offsetBytes+at)
	return err
}
