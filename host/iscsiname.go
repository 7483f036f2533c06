package host

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ISCSINameBytesMax is the length of the longest name. Source: RFC 3720, 3.2.6.1.
const ISCSINameBytesMax = 223

// ISCSIName checks the name of an iSCSI node and returns it in lower case, as RFC
// 3722 prepares such names for comparison. The error says what is wrong with it, and
// is no *Error.
func ISCSIName(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("target name is missing")
	case len(text) > ISCSINameBytesMax:
		return "", fmt.Errorf("longer than %d bytes", ISCSINameBytesMax)
	case !utf8.ValidString(text):
		return "", errors.New("not valid UTF-8")
	}
	name := strings.ToLower(text)
	for _, r := range name {
		// RFC 3722 leaves letters, digits, '-', '.' and ':'; '_' is used in the field.
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-.:_", r) {
			return "", fmt.Errorf("character %q is not allowed", r)
		}
	}
	var ok bool
	switch kind, rest, _ := strings.Cut(name, "."); kind {
	case "iqn":
		ok = isIQNBody(rest)
	case "eui":
		ok = isHex(rest, 16)
	case "naa":
		ok = isHex(rest, 16) || isHex(rest, 32)
	}
	if !ok {
		return "", fmt.Errorf("%q has none of the forms iqn.YYYY-MM.domain, eui.HEX and naa.HEX", text)
	}
	return name, nil
}

// isIQNBody reports whether the text is "YYYY-MM.domain" and anything after it.
func isIQNBody(text string) bool {
	date, domain, found := strings.Cut(text, ".")
	if !found || domain == "" || len(date) != len("2006-01") || date[4] != '-' {
		return false
	}
	_, yearErr := strconv.ParseUint(date[:4], 10, 16)
	month, monthErr := strconv.ParseUint(date[5:], 10, 8)
	return yearErr == nil && monthErr == nil && month >= 1 && month <= 12
}

func isHex(text string, digits int) bool {
	isDigit := func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' }
	return len(text) == digits && strings.IndexFunc(text, func(r rune) bool { return !isDigit(r) }) < 0
}
