package winos

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/layout"
)

// Code sets, kinds and associations of a STORAGE_IDENTIFIER. Source:
// STORAGE_IDENTIFIER, winioctl.h; the order of preference is that of
// MSFT_Disk.UniqueIdFormat.
const (
	codeSetBinary     = 1
	codeSetASCII      = 2
	codeSetUTF8       = 3
	associationDevice = 0
)

// identifierPreference orders the kinds of identifiers from best to worst: SCSI
// name string, NAA, EUI-64, T10 vendor, vendor specific.
var identifierPreference = []uint32{8, 3, 2, 1, 0}

// storageIdentifier is one STORAGE_IDENTIFIER.
type storageIdentifier struct {
	codeSet     uint32
	kind        uint32
	association uint32
	data        []byte
}

// decodeIdentifiers is STORAGE_DEVICE_ID_DESCRIPTOR, SCSI page 0x83. The list is
// linked by offsets relative to each entry, so a device can name any place: an
// offset that does not move forward, or leads past the end, is an error.
func decodeIdentifiers(b []byte) ([]storageIdentifier, error) {
	const name = "STORAGE_DEVICE_ID_DESCRIPTOR"
	const firstOffset, headerBytes = layout.DeviceIDDescriptorIdentifiers, layout.IdentifierIdentifier
	if err := atLeast(b, name, firstOffset); err != nil {
		return nil, err
	}
	if size := layout.DeviceIDDescriptorSize.Get(b); uint64(size) < uint64(len(b)) {
		b = b[:max(size, firstOffset)]
	}
	count := layout.DeviceIDDescriptorNumberOfIdentifiers.Get(b)
	var all []storageIdentifier
	rest := b[firstOffset:]
	for i := uint32(0); i < count; i++ {
		if len(rest) < headerBytes {
			return nil, layoutError(name, "identifier %d of %d is past the end", i+1, count)
		}
		sizeBytes, next := int(layout.IdentifierIdentifierSize.Get(rest)), int(layout.IdentifierNextOffset.Get(rest))
		if headerBytes+sizeBytes > len(rest) {
			return nil, layoutError(name, "identifier %d of %d is cut off", i+1, count)
		}
		all = append(all, storageIdentifier{
			codeSet:     layout.IdentifierCodeSet.Get(rest),
			kind:        layout.IdentifierType.Get(rest),
			association: layout.IdentifierAssociation.Get(rest),
			data:        rest[headerBytes : headerBytes+sizeBytes],
		})
		if i+1 == count {
			break
		}
		if next < headerBytes || next > len(rest) {
			return nil, layoutError(name, "identifier %d of %d does not lead to the next", i+1, count)
		}
		rest = rest[next:]
	}
	return all, nil
}

// page83 picks the identifier of the device itself that is of the best kind;
// among equals the first one. Binary identifiers become lower-case hex, texts
// are trimmed. It is empty when the device has none.
func page83(identifiers []storageIdentifier) string {
	best, bestRank := "", len(identifierPreference)
	for _, id := range identifiers {
		rank := slices.Index(identifierPreference, id.kind)
		if id.association != associationDevice || rank < 0 || rank >= bestRank {
			continue
		}
		if text := id.text(); text != "" {
			best, bestRank = text, rank
		}
	}
	return best
}

func (id storageIdentifier) text() string {
	switch id.codeSet {
	case codeSetBinary:
		return hex.EncodeToString(id.data)
	case codeSetASCII, codeSetUTF8:
		return trimBlank(id.data)
	}
	return ""
}

// decodeSerialNumber reads the serial number of a STORAGE_DEVICE_DESCRIPTOR; it
// is empty when the device has none.
func decodeSerialNumber(b []byte) (string, error) {
	const name = "STORAGE_DEVICE_DESCRIPTOR"
	if err := atLeast(b, name, layout.DeviceDescriptorData); err != nil {
		return "", err
	}
	start := layout.DeviceDescriptorSerialNumberOffset.Get(b)
	if start == 0 || start == 1<<32-1 { // absent; old drivers say −1
		return "", nil
	}
	if uint64(start) >= uint64(len(b)) {
		return "", layoutError(name, "the serial number is past the end")
	}
	return trimBlank(b[start:]), nil
}

// trimBlank reads a text up to its first NUL, without the blanks that fill it up.
func trimBlank(b []byte) string {
	if end := slices.Index(b, 0); end >= 0 {
		b = b[:end]
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD"))
}

// diskIDs joins what the two descriptors say.
func diskIDs(page83Descriptor, deviceDescriptor []byte) (ids host.DiskIDs, err error) {
	if page83Descriptor != nil {
		identifiers, err := decodeIdentifiers(page83Descriptor)
		if err != nil {
			return ids, err
		}
		ids.Page83 = page83(identifiers)
	}
	if deviceDescriptor != nil {
		ids.SerialNumber, err = decodeSerialNumber(deviceDescriptor)
	}
	return ids, err
}
