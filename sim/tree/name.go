package tree

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// forbidden are the characters no name may hold, besides controls. Source:
// Naming Files, Paths, and Namespaces.
const forbidden = `"*/:<>?\|`

// utf16Len is the length of s in UTF-16 code units.
func utf16Len(s string) int {
	units := 0
	for _, r := range s {
		units++
		if r > 0xFFFF {
			units++
		}
	}
	return units
}

// checkName reports ErrInvalidName for a name NTFS refuses
// (STATUS_OBJECT_NAME_INVALID).
func checkName(name string) uint32 {
	if name == "" || name == "." || name == ".." || !utf8.ValidString(name) {
		return win32.ErrInvalidName
	}
	if len(name) > win32.MaxComponentUTF16 && utf16Len(name) > win32.MaxComponentUTF16 {
		return win32.ErrInvalidName
	}
	for _, c := range []byte(name) {
		if c < 0x20 || strings.IndexByte(forbidden, c) >= 0 {
			return win32.ErrInvalidName
		}
	}
	return 0
}

// isDOSDevice reports whether the last name of a normal path stands for a DOS
// device, with any extension. Source: Naming Files, Paths, and Namespaces.
func isDOSDevice(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	base, _, _ = strings.Cut(base, ":")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, isPort := strings.CutPrefix(base, "COM")
	if !isPort {
		port, isPort = strings.CutPrefix(base, "LPT")
	}
	return isPort && utf8.RuneCountInString(port) == 1 && strings.Contains("123456789¹²³", port)
}

// foldName is the form in which names compare: each UTF-16 unit in upper case,
// without any mapping that changes the number of units. NTFS leaves the micro
// sign, the dotless i and the long s alone. Source: [MS-FSA] 2.1.4.3 and the
// recommended up-case table of the exFAT specification.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			if 'a' <= r && r <= 'z' {
				return r - 0x20
			}
			return r
		case r > 0xFFFF || r == 'µ' || r == 'ı' || r == 'ſ':
			return r
		}
		return unicode.ToUpper(r)
	}, name)
}

// privateUse is where characters that Windows forbids in a name are shown when
// a host name holds them, as Services for UNIX and NFS clients do.
const privateUse = 0xF000

// shownName is the Windows name of a host name.
func shownName(host string) string {
	if checkName(host) == 0 {
		return host
	}
	var b strings.Builder
	for i := 0; i < len(host); {
		r, size := utf8.DecodeRuneInString(host[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteRune(privateUse + rune(host[i]))
		case r < 0x20 || (r < utf8.RuneSelf && strings.IndexByte(forbidden, byte(r)) >= 0):
			b.WriteRune(privateUse + r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// hostName is the host name of a Windows name, the inverse of shownName.
func hostName(name string) string {
	if !strings.ContainsFunc(name, isShownByte) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if isShownByte(r) {
			b.WriteByte(byte(r - privateUse))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isShownByte reports whether shownName made r of a byte of a host name.
func isShownByte(r rune) bool {
	if r <= privateUse || r > privateUse+0xFF {
		return false
	}
	c := byte(r - privateUse)
	return c != '/' && (c < 0x20 || c >= utf8.RuneSelf || strings.IndexByte(forbidden, c) >= 0)
}
