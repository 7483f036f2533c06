package agent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/csi-windows/csi-windows/host"
)

// Limits of a path in UTF-16 units. Windows ends at 32 767 with the extended
// prefix; the difference leaves room for what the system puts before a path.
// Source: Naming Files, Paths, and Namespaces.
const (
	pathUnitsMax = 32000
	nameUnitsMax = 255
)

// forbiddenInNames are the characters Windows allows in no name, and the
// separators. Source: Naming Files, Paths, and Namespaces.
const forbiddenInNames = `"<>|?*:/\`

// localPath is an absolute path on a drive whose text has been checked: it
// means the same with and without normalisation by Windows.
type localPath struct {
	drive byte // upper case
	names []string
}

// parsePath checks the text of a path in the request field named field. Every
// refusal is KindInvalid and names field and rule. A rooted path without a
// letter lies on the system drive, whose letter is given in upper case.
func parsePath(field, text string, systemDrive byte) (localPath, error) {
	if text == "" {
		return localPath{}, invalid(field, "path is empty")
	}
	if !utf8.ValidString(text) {
		return localPath{}, invalid(field, "path is not valid UTF-8")
	}
	if n := utf16Units(text, pathUnitsMax); n > pathUnitsMax {
		return localPath{}, invalid(field, "path is longer than %d characters", pathUnitsMax)
	}
	drive, rest, err := splitDrive(field, text, systemDrive)
	if err != nil {
		return localPath{}, err
	}
	p := localPath{drive: drive, names: make([]string, 0, 8)}
	for rest != "" {
		at := strings.IndexAny(rest, `\/`)
		name := rest
		if at >= 0 {
			name, rest = rest[:at], rest[at+1:]
		} else {
			rest = ""
		}
		if name == "" {
			continue // doubled and final separators mean nothing to Windows
		}
		if err := checkName(field, name); err != nil {
			return localPath{}, err
		}
		p.names = append(p.names, name)
	}
	return p, nil
}

// splitDrive takes the drive off a path and returns what follows its root.
func splitDrive(field, text string, systemDrive byte) (drive byte, rest string, err error) {
	extended := strings.HasPrefix(text, `\\?\`)
	if extended {
		text = text[len(`\\?\`):]
	}
	switch {
	case len(text) >= 3 && isLetter(text[0]) && text[1] == ':' && isSeparator(text[2]):
		return text[0] &^ 0x20, text[3:], nil
	case extended:
		return 0, "", invalid(field, `only a drive may follow the prefix \\?\`)
	case len(text) >= 2 && isSeparator(text[0]) && isSeparator(text[1]):
		return 0, "", invalid(field, "network and device paths are not allowed here")
	case isSeparator(text[0]):
		return systemDrive, text[1:], nil
	default:
		return 0, "", invalid(field, "path is not absolute")
	}
}

// checkName checks one component of a path.
func checkName(field, name string) error {
	if name == "." || name == ".." {
		return invalid(field, "component %q is not allowed", name)
	}
	if utf16Units(name, nameUnitsMax) > nameUnitsMax {
		return invalid(field, "component is longer than %d characters", nameUnitsMax)
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return invalid(field, "control character U+%04X is not allowed", r)
		}
		if r < utf8.RuneSelf && strings.IndexByte(forbiddenInNames, byte(r)) >= 0 {
			return invalid(field, "character %q is not allowed", r)
		}
	}
	if last := name[len(name)-1]; last == '.' || last == ' ' {
		// Windows drops these, so the name would mean another object.
		return invalid(field, "component %q ends with a dot or blank", name)
	}
	if isDeviceName(name) {
		return invalid(field, "component %q names a device", name)
	}
	return nil
}

// isDeviceName reports whether Windows would take the name for a device,
// whatever folder it is in. Source: Naming Files, Paths, and Namespaces.
func isDeviceName(name string) bool {
	if len(name) < 3 || strings.IndexByte("aAcClLnNpP", name[0]) < 0 {
		return false
	}
	base, _, _ := strings.Cut(name, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	rest, isPort := strings.CutPrefix(base, "COM")
	if !isPort {
		rest, isPort = strings.CutPrefix(base, "LPT")
	}
	return isPort && utf8.RuneCountInString(rest) == 1 && strings.Contains("0123456789¹²³", rest)
}

func isLetter(c byte) bool    { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isSeparator(c byte) bool { return c == '\\' || c == '/' }

// utf16Units returns how many UTF-16 units the text has, or some number above
// atMost as soon as there are more.
func utf16Units(text string, atMost int) int {
	if len(text) <= atMost {
		return len(text) // an upper bound is all that is asked for
	}
	n := 0
	for _, r := range text {
		if n++; r > 0xFFFF {
			n++
		}
	}
	return n
}

// lower is the lower-case form of a name. Like host.FoldName it makes nothing outside
// ASCII ASCII, or the Kelvin sign would name the share "k".
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if small := unicode.ToLower(r); r < utf8.RuneSelf || small >= utf8.RuneSelf {
			return small
		}
		return r
	}, text)
}

// sameName reports whether two texts surely name one object in one folder.
// Outside ASCII the case table of the volume decides, which is not known here:
// such texts are the same only when they are equal.
func sameName(a, b string) bool {
	return a == b || isASCII(a) && isASCII(b) && strings.EqualFold(a, b)
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// String returns the path in its normal form, `C:\a\b`.
func (p localPath) String() string {
	return string(p.drive) + `:\` + strings.Join(p.names, `\`)
}

// key is equal for all spellings of the path that differ in case only.
func (p localPath) key() string { return host.FoldName(p.String()) }

// isUnder reports whether p is root or lies below it, by text.
func (p localPath) isUnder(root localPath) bool {
	return p.drive == root.drive && hasPrefix(p.names, root.names)
}

// hasPrefix reports whether names surely begins with prefix.
func hasPrefix(names, prefix []string) bool {
	return len(names) >= len(prefix) && slices.EqualFunc(names[:len(prefix)], prefix, sameName)
}

// parseVolumeID checks a volume id, with or without its final backslash, and
// returns the form with it and the GUID in lower case.
// Source: Naming a Volume, volume GUID paths.
func parseVolumeID(field, text string) (string, error) {
	const prefix, guidLength = `\\?\volume{`, 36
	id := strings.TrimSuffix(strings.ToLower(text), `\`)
	guid, isVolume := strings.CutPrefix(id, prefix)
	guid, hasBrace := strings.CutSuffix(guid, "}")
	if text == "" {
		return "", invalid(field, "volume id is empty")
	}
	if !isVolume || !hasBrace || len(guid) != guidLength {
		return "", invalid(field, `volume id is not of the form \\?\Volume{GUID}\`)
	}
	for i := range len(guid) {
		c := guid[i]
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !isHexDigit(c) {
			return "", invalid(field, `volume id is not of the form \\?\Volume{GUID}\`)
		}
	}
	return `\\?\Volume{` + guid + `}\`, nil
}

func isHexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
