package win32

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf16"

	"github.com/csi-windows/csi-windows/winos/layout"
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

// linkForm is where one kind of link keeps its two names: offsets and lengths in
// bytes, offsets counted from the path buffer.
type linkForm struct {
	substituteOffset, substituteLength layout.U16
	printOffset, printLength           layout.U16
	pathBuffer                         int
}

// linkFormOf returns the form of a tag, and false for tags that are no links.
func linkFormOf(tag uint32) (linkForm, bool) {
	switch tag {
	case TagMountPoint:
		return linkForm{
			layout.MountPointSubstituteNameOffset, layout.MountPointSubstituteNameLength,
			layout.MountPointPrintNameOffset, layout.MountPointPrintNameLength, layout.MountPointPathBuffer,
		}, true
	case TagSymlink:
		return linkForm{
			layout.SymlinkSubstituteNameOffset, layout.SymlinkSubstituteNameLength,
			layout.SymlinkPrintNameOffset, layout.SymlinkPrintNameLength, layout.SymlinkPathBuffer,
		}, true
	}
	return linkForm{}, false
}

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
	if len(b) < layout.ReparseData {
		return Reparse{}, ErrReparseBuffer
	}
	r := Reparse{Tag: layout.ReparseTag.Get(b)}
	form, ok := linkFormOf(r.Tag)
	if !ok {
		return r, nil
	}
	end := layout.ReparseData + int(layout.ReparseDataLength.Get(b))
	if end > len(b) || end < form.pathBuffer {
		return Reparse{}, ErrReparseBuffer
	}
	b = b[:end]
	if r.Tag == TagSymlink {
		r.Relative = layout.SymlinkFlags.Get(b)&SymlinkRelative != 0
	}
	start, length := int(form.substituteOffset.Get(b)), int(form.substituteLength.Get(b))
	names := b[form.pathBuffer:]
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
	b, err := encodeReparse(TagSymlink, substitute, target)
	if err == nil && relative {
		layout.SymlinkFlags.Put(b, SymlinkRelative)
	}
	return b, err
}

// encodeReparse lays out a link with both names, each with a final NUL.
func encodeReparse(tag uint32, substitute, shown string) ([]byte, error) {
	form, ok := linkFormOf(tag)
	if !ok {
		return nil, ErrReparseBuffer
	}
	names := [2][]byte{encodeUTF16(substitute), encodeUTF16(shown)}
	lengthBytes := form.pathBuffer + len(names[0]) + 2 + len(names[1]) + 2
	if lengthBytes > ReparseBufferMaxBytes {
		return nil, ErrReparseBuffer
	}
	b := make([]byte, lengthBytes)
	layout.ReparseTag.Put(b, tag)
	layout.ReparseDataLength.Put(b, uint16(lengthBytes-layout.ReparseData))
	form.substituteOffset.Put(b, 0)
	form.substituteLength.Put(b, uint16(len(names[0])))
	form.printOffset.Put(b, uint16(len(names[0])+2))
	form.printLength.Put(b, uint16(len(names[1])))
	path := b[form.pathBuffer:]
	copy(path, names[0])
	copy(path[len(names[0])+2:], names[1])
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
