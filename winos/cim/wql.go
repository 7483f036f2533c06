package cim

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Condition is one equality of a WHERE clause. Value is a string, a bool or an
// integer. WMI compares strings without regard to case.
type Condition struct {
	Property string
	Value    any
}

// Equal is the condition that a property has a value.
func Equal(property string, value any) Condition {
	return Condition{Property: property, Value: value}
}

// Literal returns a WQL string literal. Inside one, a backslash escapes itself
// and the quotation mark; a doubled mark is no escape. Text that holds a
// control character, or is not UTF-8, is refused: no name of Windows does, and
// the parsers below disagree about it. Source: "WHERE Clause", WMI SDK.
func Literal(text string) (string, error) {
	return quote(text, '\'')
}

// ObjectPath returns the relative path of the object of a class whose key has
// a value, e.g. MSFT_iSCSITarget.NodeAddress="iqn.x". It refuses what Literal
// refuses. Source: "WMI Object Path Requirements", WMI SDK.
func ObjectPath(class, key, value string) (string, error) {
	if !isName(class) || !isName(key) {
		return "", fmt.Errorf("cim: %q.%q is no class and key", class, key)
	}
	quoted, err := quote(value, '"')
	if err != nil {
		return "", err
	}
	return class + "." + key + "=" + quoted, nil
}

func quote(text string, mark byte) (string, error) {
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("cim: text is not UTF-8: %q", text)
	}
	var b strings.Builder
	b.Grow(len(text) + 8)
	b.WriteByte(mark)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c < 0x20 || c == 0x7F {
			return "", fmt.Errorf("cim: control character in %q", text)
		}
		if c == '\\' || c == mark {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	b.WriteByte(mark)
	return b.String(), nil
}

// where renders the clause with its leading blank; nothing without conditions.
func where(conditions []Condition) (string, error) {
	if len(conditions) == 0 {
		return "", nil
	}
	terms := make([]string, len(conditions))
	for i, c := range conditions {
		if !isName(c.Property) {
			return "", fmt.Errorf("cim: %q is no property", c.Property)
		}
		value, err := c.literal()
		if err != nil {
			return "", err
		}
		terms[i] = c.Property + " = " + value
	}
	return " WHERE " + strings.Join(terms, " AND "), nil
}

func (c Condition) literal() (string, error) {
	switch v := c.Value.(type) {
	case string:
		return Literal(v)
	case bool:
		return strings.ToUpper(strconv.FormatBool(v)), nil
	case uint16:
		return strconv.FormatUint(uint64(v), 10), nil
	case uint32:
		return strconv.FormatUint(uint64(v), 10), nil
	case uint64:
		return strconv.FormatUint(v, 10), nil
	case int:
		return strconv.Itoa(v), nil
	}
	return "", fmt.Errorf("cim: property %s cannot be compared with a %T", c.Property, c.Value)
}

// isName reports whether text can be the name of a class or property.
func isName(text string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}
