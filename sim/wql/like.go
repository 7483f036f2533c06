package wql

import "strings"

// like reports whether s matches the pattern as a whole, without regard to
// case: % stands for any text, _ for one character, [abc] and [a-f] for one of
// these, [^abc] for one of the others; a bracket that is never closed for
// itself. Source: LIKE operator documentation (earlier editions of which print
// a range as a=f).
//
// On a mismatch only the last % has to give way, so the time is bounded by the
// product of the two lengths.
func like(pattern, s string) bool {
	p, at := 0, 0
	percent, retry := -1, 0
	for at < len(s) {
		if p < len(pattern) && pattern[p] == '%' {
			percent, retry = p, at
			p++
			continue
		}
		char, width := upperRune(s[at:])
		if used := matchOne(pattern[p:], char); used > 0 {
			p += used
			at += width
			continue
		}
		if percent < 0 {
			return false
		}
		_, width = upperRune(s[retry:])
		retry += width
		p, at = percent+1, retry
	}
	return strings.Trim(pattern[p:], "%") == ""
}

// matchOne matches one character, given in upper case, with the start of a
// pattern, and returns how much of the pattern that used; 0 is no match.
func matchOne(pattern string, char rune) int {
	if pattern == "" {
		return 0
	}
	if pattern[0] == '_' {
		return 1
	}
	if end := strings.IndexByte(pattern, ']'); pattern[0] == '[' && end > 1 {
		if inSet(pattern[1:end], char) {
			return end + 1
		}
		return 0
	}
	if want, width := upperRune(pattern); want == char {
		return width
	}
	return 0
}

// inSet reports whether the set, brackets taken off, holds the character.
func inSet(set string, char rune) bool {
	set, negated := strings.CutPrefix(set, "^")
	for set != "" {
		low, width := upperRune(set)
		set = set[width:]
		high := low
		if len(set) > 1 && (set[0] == '-' || set[0] == '=') {
			high, width = upperRune(set[1:])
			set = set[1+width:]
		}
		if low <= char && char <= high {
			return !negated
		}
	}
	return negated
}
