package tree

import (
	"strings"
	"unicode/utf8"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// maxPathUTF16 is MAX_PATH, with the final NUL: the limit of a path without
// the `\\?\` prefix. Source: Maximum Path Length Limitation, Win32 FileIO.
const maxPathUTF16 = 260

// rootKind says what a path starts from.
type rootKind uint8

const (
	rootDrive rootKind = iota
	rootVolume
	rootRemote
)

// location is a parsed full path.
type location struct {
	kind          rootKind
	letter        byte   // rootDrive, upper case
	volume        string // rootVolume, as volumeKey
	server, share string // rootRemote
	names         []string
	// folder is set when the path ended in a separator and so names a folder.
	folder bool
	// device is set when the last name of a path without `\\?\` is that of a DOS device.
	device bool
}

// IsDevice reports whether CreateFile would open a device with path and not a
// file or folder: `\\.\PhysicalDrive0`, `\\?\Volume{guid}`, `\\.\C:`, `\\.\PIPE\x`.
// Source: CreateFileW, "Physical Disks and Volumes".
func IsDevice(path string) bool {
	rest, _, ok := cutDevicePrefix(path)
	if !ok {
		return false
	}
	_, _, code := cutRoot(rest)
	return code == win32.ErrFileNotFound
}

// cutDevicePrefix cuts `\\?\`, `\??\` or `\\.\` off. After the first two the
// rest is taken literally. Source: Naming Files, Paths, and Namespaces.
func cutDevicePrefix(path string) (rest string, literal, ok bool) {
	for _, prefix := range []string{`\\?\`, `\??\`} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			return rest, true, true
		}
	}
	if len(path) >= 4 && isSeparator(path[0]) && isSeparator(path[1]) &&
		(path[2] == '.' || path[2] == '?') && isSeparator(path[3]) {
		return strings.ReplaceAll(path[4:], "/", `\`), false, true
	}
	return "", false, false
}

func isSeparator(c byte) bool { return c == '\\' || c == '/' }

// cutRoot parses what follows a device prefix: `C:\`, `Volume{guid}\` or
// `UNC\server\share`. Anything else is a device: ErrFileNotFound.
func cutRoot(rest string) (location, string, uint32) {
	first, after, separated := strings.Cut(rest, `\`)
	switch {
	case strings.EqualFold(first, "UNC"):
		return cutShare(after)
	case !separated:
		return location{}, "", win32.ErrFileNotFound
	case len(first) == 2 && first[1] == ':' && isLetter(first[0]):
		return location{kind: rootDrive, letter: upperLetter(first[0])}, after, 0
	case isVolumeName(first):
		return location{kind: rootVolume, volume: volumeKey(`\\?\` + first + `\`)}, after, 0
	}
	return location{}, "", win32.ErrFileNotFound
}

// cutShare parses `server\share\…`.
func cutShare(rest string) (location, string, uint32) {
	server, rest, _ := strings.Cut(rest, `\`)
	share, rest, _ := strings.Cut(rest, `\`)
	if server == "" || share == "" {
		return location{}, "", win32.ErrBadNetPath
	}
	if checkName(server) != 0 || checkName(share) != 0 {
		return location{}, "", win32.ErrInvalidName
	}
	return location{kind: rootRemote, server: server, share: share}, rest, 0
}

func isLetter(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }

func upperLetter(c byte) byte { return c &^ 0x20 }

// isVolumeName reports whether name is `Volume{guid}`.
func isVolumeName(name string) bool {
	const length = len("Volume{00000000-0000-0000-0000-000000000000}")
	if len(name) != length || !strings.EqualFold(name[:7], "Volume{") || name[length-1] != '}' {
		return false
	}
	for i, c := range []byte(name[7 : length-1]) {
		switch dash := i == 8 || i == 13 || i == 18 || i == 23; {
		case dash && c != '-':
			return false
		case !dash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)):
			return false
		}
	}
	return true
}

// volumeKey is the form in which volume ids compare.
func volumeKey(id string) string { return strings.ToLower(id) }

// isVolumeID reports whether id is `\\?\Volume{guid}\`.
func isVolumeID(id string) bool {
	name, ok := strings.CutPrefix(id, `\\?\`)
	if !ok {
		return false
	}
	name, ok = strings.CutSuffix(name, `\`)
	return ok && isVolumeName(name)
}

// parsePath parses a full path as CreateFileW does.
func parsePath(path string) (location, uint32) {
	if strings.ContainsRune(path, 0) || !utf8.ValidString(path) {
		return location{}, win32.ErrInvalidName
	}
	if utf16Len(path) >= win32.MaxPathUTF16 {
		return location{}, errPathTooLong
	}
	if rest, literal, ok := cutDevicePrefix(path); ok {
		loc, rest, code := cutRoot(rest)
		if code != 0 {
			return location{}, code
		}
		if literal {
			return loc, loc.setLiteral(rest)
		}
		return loc, loc.setNormal(rest)
	}
	return parseDOSPath(path)
}

// parseDOSPath parses `C:\x` and `\\server\share\x`, with either separator.
func parseDOSPath(path string) (location, uint32) {
	if utf16Len(path)+1 > maxPathUTF16 {
		// RtlDosPathNameToNtPathName cannot convert it; CreateFileW reports
		// ERROR_PATH_NOT_FOUND.
		return location{}, win32.ErrPathNotFound
	}
	path = strings.ReplaceAll(path, "/", `\`)
	if rest, ok := strings.CutPrefix(path, `\\`); ok {
		loc, rest, code := cutShare(rest)
		if code != 0 {
			return location{}, code
		}
		return loc, loc.setNormal(rest)
	}
	if len(path) < 3 || !isLetter(path[0]) || path[1] != ':' || path[2] != '\\' {
		return location{}, win32.ErrInvalidName
	}
	loc := location{kind: rootDrive, letter: upperLetter(path[0])}
	return loc, loc.setNormal(path[3:])
}

// setLiteral sets the names of a `\\?\` path, in which a separator is nothing
// but a backslash and no name is changed.
func (l *location) setLiteral(rest string) uint32 {
	if rest == "" {
		l.folder = true
		return 0
	}
	rest, l.folder = strings.CutSuffix(rest, `\`)
	l.names = strings.Split(rest, `\`)
	for _, name := range l.names {
		if code := checkName(name); code != 0 {
			return code
		}
	}
	return 0
}

// setNormal sets the names of a path that Win32 normalizes: empty names, "."
// and ".." go, and so do final periods and spaces. Source: File path formats
// on Windows systems, "Trim characters".
func (l *location) setNormal(rest string) uint32 {
	segments := strings.Split(rest, `\`)
	last := len(segments) - 1
	l.folder = segments[last] == ""
	for i, segment := range segments {
		switch segment {
		case "", ".":
			continue
		case "..":
			l.names = l.names[:max(0, len(l.names)-1)]
			continue
		}
		if i == last {
			l.device = isDOSDevice(segment)
			segment = strings.TrimRight(segment, ". ")
		} else if strings.HasSuffix(segment, ".") && !strings.HasSuffix(segment, "..") {
			segment = segment[:len(segment)-1]
		}
		if segment == "" {
			continue
		}
		if code := checkName(segment); code != 0 && !l.device {
			return code
		}
		l.names = append(l.names, segment)
	}
	return 0
}

// relativeNames reads the target of a relative symbolic link: how many folders
// up, then which names down. Windows collapses ".." in the text. Source:
// [MS-FSCC] 2.1.2.4 and CreateSymbolicLinkW.
func relativeNames(target string) (up int, names []string, code uint32) {
	for _, name := range strings.Split(target, `\`) {
		switch {
		case name == "" || name == ".":
		case name != "..":
			if code := checkName(name); code != 0 {
				return 0, nil, code
			}
			names = append(names, name)
		case len(names) > 0:
			names = names[:len(names)-1]
		default:
			up++
		}
	}
	return up, names, 0
}
