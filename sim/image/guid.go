package image

import (
	"fmt"

	"github.com/google/uuid"
)

// Partition types, in the form in which Layout gives them.
// Source: MSFT_Partition.GptType and MbrType.
const (
	GPTTypeEFI       = "{c12a7328-f81f-11d2-ba4b-00a0c93ec93b}"
	GPTTypeReserved  = "{e3c9e316-0b5c-4db8-817d-f92df00215ae}" // MSR
	GPTTypeBasicData = "{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}"
	GPTTypeRecovery  = "{de94bba4-06d1-4d40-a16a-bfd50179d6ac}"

	MBRTypeFAT12       byte = 0x01
	MBRTypeFAT16       byte = 0x04
	MBRTypeExtended    byte = 0x05
	MBRTypeHuge        byte = 0x06 // the default of MSFT_Disk.CreatePartition
	MBRTypeIFS         byte = 0x07
	MBRTypeFAT32       byte = 0x0C
	mbrTypeExtendedLBA byte = 0x0F
	mbrTypeProtective  byte = 0xEE
)

// guidBytes reads a GUID, braced or not, and gives it in the order of the disk:
// the first three fields little-endian. Source: UEFI specification, appendix A.
func guidBytes(text string) ([16]byte, error) {
	u, err := uuid.Parse(text)
	if err != nil {
		return [16]byte{}, fmt.Errorf("GUID %q: %w", text, ErrInvalid)
	}
	return swapGUID(u), nil
}

// guidText is the inverse of guidBytes: braced and in lower case, as the
// storage classes print it.
func guidText(b []byte) string {
	return "{" + uuid.UUID(swapGUID([16]byte(b))).String() + "}"
}

func swapGUID(b [16]byte) [16]byte {
	b[0], b[1], b[2], b[3] = b[3], b[2], b[1], b[0]
	b[4], b[5] = b[5], b[4]
	b[6], b[7] = b[7], b[6]
	return b
}

// derivedGUID names the reserved partition of a disk: always the same one for
// the same disk, so that a simulation can be repeated.
func derivedGUID(diskGUID [16]byte, role string) [16]byte {
	return uuid.NewSHA1(uuid.UUID(diskGUID), []byte(role))
}
