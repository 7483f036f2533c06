package smb

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/csi-windows/csi-windows/csikit"
)

const (
	// privateFolder holds what belongs to the driver in each base.
	privateFolder = ".csi-windows"

	partUnitsMax  = 255 // UTF-16 units of one name, as NTFS and SMB have it
	volumeIDMax   = 128 // bytes, as CSI has it
	folderMax     = 64  // bytes of a volume's folder
	hashDigits    = 32
	hashSeparator = "=" // not in the alphabet of plain names, so the two never meet
)

// checkPart says why one part of a path is not taken from a request: it may be
// another file for the server than it looks like, or none.
func checkPart(part string) error {
	var reason string
	switch stem, _, _ := strings.Cut(strings.ToUpper(part), "."); {
	case part == "":
		reason = "is empty"
	case part == "." || part == "..":
		reason = "leads to another folder"
	case !utf8.ValidString(part):
		reason = "is not UTF-8"
	case len(utf16.Encode([]rune(part))) > partUnitsMax:
		reason = fmt.Sprintf("has more than %d characters", partUnitsMax)
	case strings.ContainsAny(part, `<>:"/\|?*`):
		reason = `has one of < > : " / \ | ? *`
	case strings.ContainsFunc(part, isControlOrPrivate):
		reason = "has a control character"
	case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || strings.HasPrefix(part, " "):
		reason = "begins with a blank or ends with a dot or blank"
	case isDevice(strings.TrimRight(stem, " ")):
		reason = "is the name of a device"
	case isShortName(part):
		reason = "may be the short name of another file"
	case strings.EqualFold(part, privateFolder):
		reason = "is the driver's own"
	default:
		return nil
	}
	return fmt.Errorf("name %q %s: %w", part, reason, csikit.ErrInvalid)
}

// isControlOrPrivate: servers map characters of U+F000 to U+F0FF to control
// characters and to those that names must not have.
func isControlOrPrivate(r rune) bool {
	return r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0xf000 && r <= 0xf0ff
}

// isDevice: see "Naming Files, Paths, and Namespaces" of the Windows documentation.
func isDevice(stem string) bool {
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	number, found := strings.CutPrefix(stem, "COM")
	if !found {
		number, found = strings.CutPrefix(stem, "LPT")
	}
	return found && utf8.RuneCountInString(number) == 1 && strings.Contains("0123456789¹²³", number)
}

// isShortName reports whether a name looks like those that file systems make for
// old programs: FOLDER~1.
func isShortName(part string) bool {
	_, after, found := strings.Cut(part, "~")
	return found && after != "" && after[0] >= '0' && after[0] <= '9'
}

// folderName is the folder of the volume of a name, of at most maxBytes bytes. A
// name of few plain characters is its own folder. Others keep what is plain of them
// and get a hash: servers do not tell upper from lower case, nor all of Unicode.
func folderName(name string, maxBytes int) string {
	maxBytes = min(maxBytes, folderMax)
	if isPlain(name) && len(name) <= maxBytes && checkPart(name) == nil {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hashSeparator + hex.EncodeToString(sum[:])[:hashDigits]
	var prefix strings.Builder
	for _, r := range strings.ToLower(name) {
		if prefix.Len() >= min(16, maxBytes-len(hash)) {
			break
		}
		if isPlainRune(r) && r != '.' {
			prefix.WriteRune(r)
		}
	}
	return "v-"[:max(0, min(2, maxBytes-len(hash)-prefix.Len()))] + prefix.String() + hash
}

func isPlain(name string) bool {
	return name != "" && name[0] != '.' && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool { return !isPlainRune(r) })
}

func isPlainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
}
