package tree

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// ntPrefix starts the substitute names that are not relative: the object
// manager's folder of DOS devices.
const ntPrefix = `\??\`

const (
	reparseHeaderBytes           = 8  // ReparseTag, ReparseDataLength, Reserved
	guidHeaderBytes              = 24 // the same and the GUID of tags that are not Microsoft's
	mountPointHeaderBytes        = 8  // four offsets and lengths
	symlinkHeaderBytes           = 12 // the same and Flags
	tagReservedZero              = 0  // IO_REPARSE_TAG_RESERVED_ZERO
	tagReservedOne               = 1  // IO_REPARSE_TAG_RESERVED_ONE
	tagMicrosoftBit       uint32 = 0x80000000
)

// encodeReparse lays a link out as a REPARSE_DATA_BUFFER. Source: [MS-FSCC] 2.1.2.
func encodeReparse(l *Link) []byte {
	var data []byte
	switch l.Tag {
	case win32.TagSymlink:
		var flags uint32
		if l.Relative {
			flags = win32.SymlinkRelative
		}
		names, header := encodeNames(l.Substitute, l.Print, false)
		data = append(binary.LittleEndian.AppendUint32(header, flags), names...)
	case win32.TagMountPoint:
		names, header := encodeNames(l.Substitute, l.Print, true)
		data = append(header, names...)
	default:
		data = l.Data
	}
	length := len(data)
	if l.Tag&tagMicrosoftBit == 0 {
		length -= guidHeaderBytes - reparseHeaderBytes
	}
	buffer := binary.LittleEndian.AppendUint32(nil, l.Tag)
	buffer = binary.LittleEndian.AppendUint16(buffer, uint16(length))
	buffer = binary.LittleEndian.AppendUint16(buffer, 0)
	return append(buffer, data...)
}

// encodeNames returns a path buffer and the offsets and lengths that lead into it.
func encodeNames(substitute, print string, terminated bool) (names, header []byte) {
	var offsets [4]uint16
	for i, name := range []string{substitute, print} {
		offsets[2*i] = uint16(len(names))
		for _, unit := range utf16.Encode([]rune(name)) {
			names = binary.LittleEndian.AppendUint16(names, unit)
		}
		offsets[2*i+1] = uint16(len(names)) - offsets[2*i]
		if terminated {
			names = append(names, 0, 0)
		}
	}
	for _, offset := range offsets {
		header = binary.LittleEndian.AppendUint16(header, offset)
	}
	return names, header
}

// decodeReparse reads a REPARSE_DATA_BUFFER. Failures: errInvalidReparseData
// (STATUS_IO_REPARSE_DATA_INVALID) for a malformed buffer, ErrReparseTagInvalid
// for a reserved tag. Source: [MS-FSCC] 2.3.82, FsRtlValidateReparsePointBuffer.
func decodeReparse(buffer []byte) (*Link, uint32) {
	if len(buffer) < reparseHeaderBytes || len(buffer) > win32.ReparseBufferMaxBytes {
		return nil, errInvalidReparseData
	}
	l := &Link{Tag: binary.LittleEndian.Uint32(buffer)}
	header := reparseHeaderBytes
	if l.Tag&tagMicrosoftBit == 0 {
		header = guidHeaderBytes
	}
	length := int(binary.LittleEndian.Uint16(buffer[4:]))
	if len(buffer) != header+length {
		return nil, errInvalidReparseData
	}
	data := buffer[reparseHeaderBytes:]
	switch l.Tag {
	case tagReservedZero, tagReservedOne:
		return nil, win32.ErrReparseTagInvalid
	case win32.TagMountPoint:
		return l, decodeNames(l, data, mountPointHeaderBytes)
	case win32.TagSymlink:
		if len(data) < symlinkHeaderBytes {
			return nil, errInvalidReparseData
		}
		l.Relative = binary.LittleEndian.Uint32(data[mountPointHeaderBytes:])&win32.SymlinkRelative != 0
		return l, decodeNames(l, data, symlinkHeaderBytes)
	}
	l.Data = append([]byte(nil), data...)
	return l, 0
}

// decodeNames reads both names from the path buffer behind the header.
func decodeNames(l *Link, data []byte, header int) uint32 {
	if len(data) < header {
		return errInvalidReparseData
	}
	names := data[header:]
	for i, name := range []*string{&l.Substitute, &l.Print} {
		offset := int(binary.LittleEndian.Uint16(data[4*i:]))
		length := int(binary.LittleEndian.Uint16(data[4*i+2:]))
		if offset%2 != 0 || length%2 != 0 || offset+length > len(names) {
			return errInvalidReparseData
		}
		units := make([]uint16, length/2)
		for j := range units {
			units[j] = binary.LittleEndian.Uint16(names[offset+2*j:])
		}
		*name = string(utf16.Decode(units))
	}
	if l.Substitute == "" || strings.ContainsRune(l.Substitute, 0) {
		return errInvalidReparseData
	}
	if l.Tag == win32.TagMountPoint && !strings.HasPrefix(l.Substitute, ntPrefix) {
		return errInvalidReparseData
	}
	return 0
}

// symlinkNames makes the names of a symbolic link's buffer from the target
// that CreateSymbolicLinkW is given.
func symlinkNames(target string) (substitute, print string, relative bool) {
	if rest, literal, ok := cutDevicePrefix(target); ok && literal {
		return ntPrefix + rest, target, false
	}
	if loc, code := parseDOSPath(target); code == 0 && loc.kind == rootDrive {
		return ntPrefix + target[:2] + `\` + strings.Join(loc.names, `\`), target, false
	} else if code == 0 {
		names := append([]string{"UNC", loc.server, loc.share}, loc.names...)
		return ntPrefix + strings.Join(names, `\`), target, false
	}
	// What cannot be converted is stored as it is.
	return target, target, true
}

// targetPath is the path, for parsePath, that a link which is not relative leads to.
func (l *Link) targetPath() (string, bool) {
	rest, ok := strings.CutPrefix(l.Substitute, ntPrefix)
	return `\\?\` + rest, ok
}
