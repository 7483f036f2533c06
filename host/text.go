package host

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PrintableTextMax bounds what a request can put into errors and logs, in bytes.
const PrintableTextMax = 400

// PrintableText is text from a request as it may stand in errors and logs: cut
// after PrintableTextMax bytes, and quoted when it holds anything that could pass
// for something else there.
func PrintableText(text string) string {
	if len(text) > PrintableTextMax {
		text = strings.ToValidUTF8(text[:PrintableTextMax], "") + "…"
	}
	for _, r := range text {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	return text
}

// FoldName maps spellings of a name that Windows takes for one to one text, for
// comparisons and locks: what it takes for one although Windows does not waits
// without need. Nothing outside ASCII becomes ASCII: NTFS does not take U+017F
// for S.
func FoldName(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 0x20
		}
		if r < utf8.RuneSelf {
			return r
		}
		if upper := unicode.ToUpper(r); upper >= utf8.RuneSelf {
			return upper
		}
		return r
	}, name)
}
