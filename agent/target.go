package agent

import "strings"

// targetKind says what sort of place a link leads to.
type targetKind uint8

const (
	targetUnknown  targetKind = iota // a text no path comes of
	targetRelative                   // relative to the link's own folder
	targetDrive                      // a path on a drive
	targetVolume                     // a path on a volume named by its id
	targetRemote                     // a path on a file server
)

// linkTarget is the stored target of a link, taken apart. It is data somebody
// wrote on a disk, so it may be anything.
type linkTarget struct {
	kind   targetKind
	drive  byte
	volume string
	remote string   // `\\server\share\…` without a final separator
	names  []string // no "." and, except at the start of a relative one, no ".."
}

// parseTarget takes the target of a link apart. A target that is rooted but
// has no letter lies on the drive of the path that led to the link.
func parseTarget(text string, drive byte) linkTarget {
	text = strings.TrimPrefix(text, `\??\`)
	extended, isExtended := strings.CutPrefix(text, `\\?\`)
	if isExtended {
		text = extended
	}
	unc, isUNC := strings.CutPrefix(text, `UNC\`)
	switch {
	case isUNC && isExtended:
		return linkTarget{kind: targetRemote, remote: `\\` + strings.TrimRight(unc, `\`)}
	case len(text) >= 2 && isLetter(text[0]) && text[1] == ':':
		if len(text) > 2 && !isSeparator(text[2]) {
			return linkTarget{}
		}
		return linkTarget{kind: targetDrive, drive: text[0] &^ 0x20, names: cleanNames(text[2:], false)}
	case hasVolumePrefix(text):
		at := strings.IndexByte(text, '}')
		id, err := parseVolumeID("target", `\\?\`+text[:at+1])
		if err != nil {
			return linkTarget{}
		}
		return linkTarget{kind: targetVolume, volume: id, names: cleanNames(text[at+1:], false)}
	case len(text) >= 2 && isSeparator(text[0]) && isSeparator(text[1]):
		return linkTarget{kind: targetRemote, remote: `\\` + strings.Trim(strings.ReplaceAll(text, "/", `\`), `\`)}
	case isExtended || text == "":
		return linkTarget{}
	case isSeparator(text[0]):
		return linkTarget{kind: targetDrive, drive: drive, names: cleanNames(text, false)}
	default:
		return linkTarget{kind: targetRelative, names: cleanNames(text, true)}
	}
}

func hasVolumePrefix(text string) bool {
	const prefix = "VOLUME{"
	return len(text) > len(prefix) && strings.EqualFold(text[:len(prefix)], prefix) && strings.IndexByte(text, '}') > 0
}

// cleanNames splits a path and resolves "." and ".." by text, as Windows does
// before it opens a path. With upward, leading ".." are kept.
func cleanNames(text string, upward bool) []string {
	var names []string
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == '\\' || r == '/' }) {
		switch {
		case name == ".":
		case name != "..":
			names = append(names, name)
		case len(names) > 0 && names[len(names)-1] != "..":
			names = names[:len(names)-1]
		case upward:
			names = append(names, name)
		}
	}
	return names
}

// canonicalVolumeID is the id in the form of parseVolumeID, or as it is when it
// is none: the operating system's word is not a request to be refused.
func canonicalVolumeID(id string) string {
	if canonical, err := parseVolumeID("", id); err == nil {
		return canonical
	}
	return id
}
