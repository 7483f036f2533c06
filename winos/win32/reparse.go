package win32

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf16"
)

// Prefixes of the object manager's names and of Win32 paths that bypass
// parsing. Source: "Naming Files, Paths, and Namespaces".
const (
	ntPrefix       = `\??\`
	ntUNCPrefix    = `\??\UNC\`
	extendedPrefix = `\\?\`
	globalRoot     = `\\?\GLOBALROOT`
	volumePrefix   = `\\?\Volume{`
	volumeIDLength = len(`\\?\Volume{00000000-0000-0000-0000-000000000000}\`)
)

const (
	reparseHeaderBytes = 8  // tag, length, reserved
	mountPointFixed    = 8  // offsets and lengths of the two names
	symlinkFixed       = 12 // the same, and flags
)

// ErrReparseBuffer is a reparse buffer that does not hold what its tag promises.
var ErrReparseBuffer = errors.New("win32: malformed reparse buffer")

// Reparse is a REPARSE_DATA_BUFFER.
type Reparse struct {
	Tag uint32
	// Target is where a symbolic link or a mount point leads, as a Win32 path,
	// or as it is stored when Relative is set. Empty for other tags.
	Target string
	// Relative is set on a symbolic link whose target counts from its folder.
	Relative bool
}

// VolumeID reports whether the target is a whole volume, and returns its id with
// the final backslash. A mount-point tag that leads to a volume is a mounted
// folder; one that leads elsewhere is a junction.
func (r Reparse) VolumeID() (id string, ok bool) {
	id = strings.TrimSuffix(r.Target, `\`) + `\`
	if r.Tag != TagMountPoint || len(id) != volumeIDLength || !strings.EqualFold(id[:len(volumePrefix)], volumePrefix) {
		return "", false
	}
	return id, id[len(id)-2] == '}'
}

// DecodeReparse reads a REPARSE_DATA_BUFFER as FSCTL_GET_REPARSE_POINT returns it.
// Source: REPARSE_DATA_BUFFER, ntifs.h.
func DecodeReparse(b []byte) (Reparse, error) {
	if len(b) < reparseHeaderBytes {
		return Reparse{}, ErrReparseBuffer
	}
	r := Reparse{Tag: binary.LittleEndian.Uint32(b)}
	data, fixed := b[reparseHeaderBytes:], mountPointFixed
	switch r.Tag {
	case TagMountPoint:
	case TagSymlink:
		fixed = symlinkFixed
	default:
		return r, nil
	}
	if length := int(binary.LittleEndian.Uint16(b[4:])); length > len(data) || length < fixed {
		return Reparse{}, ErrReparseBuffer
	}
	data = data[:binary.LittleEndian.Uint16(b[4:])]
	if r.Tag == TagSymlink {
		r.Relative = binary.LittleEndian.Uint32(data[8:])&SymlinkRelative != 0
	}
	start, length := int(binary.LittleEndian.Uint16(data)), int(binary.LittleEndian.Uint16(data[2:]))
	names := data[fixed:]
	if start%2 != 0 || length%2 != 0 || start+length > len(names) {
		return Reparse{}, ErrReparseBuffer
	}
	r.Target = decodeUTF16(names[start : start+length])
	if !r.Relative {
		r.Target = win32Path(r.Target)
	}
	return r, nil
}

// EncodeSymlink lays out the buffer of a symbolic link that leads to target: an
// absolute Win32 path, or a relative one. It fails when the names do not fit.
func EncodeSymlink(target string) ([]byte, error) {
	substitute, relative := ntPath(target)
	flags := uint32(0)
	if relative {
		flags = SymlinkRelative
	}
	fixed := binary.LittleEndian.AppendUint32(make([]byte, 8, symlinkFixed), flags)
	return encodeReparse(TagSymlink, fixed, substitute, target)
}

// EncodeMountPoint lays out the buffer of a mount-point tag: a junction when
// target is an absolute path, a mounted folder when it is a volume id.
func EncodeMountPoint(target string) ([]byte, error) {
	substitute, relative := ntPath(target)
	if relative {
		return nil, ErrReparseBuffer
	}
	return encodeReparse(TagMountPoint, make([]byte, mountPointFixed), substitute, target)
}

// encodeReparse puts both names, each with a final NUL, behind the fixed part
// and fills in where they are.
func encodeReparse(tag uint32, fixed []byte, substitute, shown string) ([]byte, error) {
	names := [][]byte{encodeUTF16(substitute), encodeUTF16(shown)}
	b := binary.LittleEndian.AppendUint32(nil, tag)
	b = append(b, 0, 0, 0, 0)
	b = append(b, fixed...)
	start := 0
	for i, name := range names {
		if start+len(name) > ReparseBufferMaxBytes {
			return nil, ErrReparseBuffer
		}
		binary.LittleEndian.PutUint16(b[reparseHeaderBytes+i*4:], uint16(start))
		binary.LittleEndian.PutUint16(b[reparseHeaderBytes+i*4+2:], uint16(len(name)))
		b = append(append(b, name...), 0, 0)
		start += len(name) + 2
	}
	if len(b) > ReparseBufferMaxBytes {
		return nil, ErrReparseBuffer
	}
	binary.LittleEndian.PutUint16(b[4:], uint16(len(b)-reparseHeaderBytes))
	return b, nil
}

// win32Path turns a name of the object manager into the Win32 path of the same
// object.
func win32Path(name string) string {
	switch {
	case hasPrefixFold(name, ntUNCPrefix):
		return `\\` + name[len(ntUNCPrefix):]
	case hasPrefixFold(name, ntPrefix+`Volume{`):
		return extendedPrefix + name[len(ntPrefix):]
	case strings.HasPrefix(name, ntPrefix) && len(name) >= len(ntPrefix)+2 && name[len(ntPrefix)+1] == ':':
		return name[len(ntPrefix):]
	case strings.HasPrefix(name, ntPrefix):
		return extendedPrefix + name[len(ntPrefix):]
	case strings.HasPrefix(name, `\`) && !strings.HasPrefix(name, `\\`):
		return globalRoot + name
	}
	return name
}

// ntPath is the reverse of win32Path; a path that is not absolute stays as it is.
func ntPath(path string) (name string, relative bool) {
	switch {
	case hasPrefixFold(path, globalRoot+`\`):
		return path[len(globalRoot):], false
	case strings.HasPrefix(path, extendedPrefix):
		return ntPrefix + path[len(extendedPrefix):], false
	case strings.HasPrefix(path, `\\`):
		return ntUNCPrefix + path[2:], false
	case len(path) >= 3 && path[1] == ':' && path[2] == '\\':
		return ntPrefix + path, false
	}
	return path, true
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

func decodeUTF16(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

func encodeUTF16(text string) []byte {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, unit)
	}
	return b
}
