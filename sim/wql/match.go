package wql

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Char16 is a value of CIM type char16, such as a drive letter. A getter
// returns it to have the property compared as a character and not as a number.
type Char16 uint16

// truth is a value of three-valued logic: WQL is a subset of SQL, where a
// comparison with NULL is neither true nor false.
type truth uint8

const (
	isFalse truth = iota
	isTrue
	isUnknown
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

// Match reports whether an object fulfils the WHERE clause; without one, every
// object does. get returns the value of a property by its name in the query
// (names have no case; that is get's to know), nil for NULL, and false when the
// class has no such property.
//
// Text compares without regard to case. Numbers compare with Go integers and
// floats of any width, also when the constant is a number in quotes. A Boolean
// compares by = and <> with TRUE, FALSE, 1, 0 and the words in quotes. A
// comparison with NULL is not fulfilled, and neither is its NOT. Errors are
// *Error: UnknownProperty, or TypeMismatch for arrays, embedded objects and
// constants of the wrong type. Source: WQL WHERE clause documentation.
func (q Query) Match(get func(property string) (value any, ok bool)) (bool, error) {
	if len(q.where) == 0 {
		return true, nil
	}
	t, err := q.eval(int32(len(q.where)-1), get)
	return t == isTrue && err == nil, err
}

func (q Query) eval(i int32, get func(string) (any, bool)) (truth, error) {
	n := &q.where[i]
	switch n.op {
	case opAnd, opOr:
		return q.evalBoth(n, get)
	case opNot:
		t, err := q.eval(n.left, get)
		if t != isUnknown {
			t = truthOf(t == isFalse)
		}
		return t, err
	}
	value, ok := get(n.prop)
	if !ok {
		return isFalse, &Error{Kind: UnknownProperty, Text: "no property " + n.prop}
	}
	return n.compare(value)
}

// evalBoth evaluates AND and OR. The left side can decide alone.
func (q Query) evalBoth(n *node, get func(string) (any, bool)) (truth, error) {
	decisive := truthOf(n.op == opOr)
	left, err := q.eval(n.left, get)
	if err != nil || left == decisive {
		return left, err
	}
	right, err := q.eval(n.right, get)
	if err != nil || right == decisive || left != isUnknown {
		return right, err
	}
	return isUnknown, nil
}

// compare decides one comparison.
func (n *node) compare(value any) (truth, error) {
	switch n.op {
	case opIsNull:
		return truthOf(value == nil), nil
	case opIsNotNull:
		return truthOf(value != nil), nil
	}
	if value == nil {
		return isUnknown, nil
	}
	if n.op == opLike {
		s, ok := value.(string)
		if !ok {
			return isFalse, n.mismatch()
		}
		return truthOf(like(n.lit.text, s)), nil
	}
	if _, ok := value.(bool); ok && n.op != opEqual && n.op != opNotEqual {
		return isFalse, n.mismatch()
	}
	order, ok := n.lit.orderOf(value)
	if !ok {
		return isFalse, n.mismatch()
	}
	return truthOf(n.op.holds(order)), nil
}

func (n *node) mismatch() error {
	return &Error{Kind: TypeMismatch, Text: "property " + n.prop + " cannot be compared in this way"}
}

func (op opcode) holds(order int) bool {
	switch op {
	case opEqual:
		return order == 0
	case opNotEqual:
		return order != 0
	case opLess:
		return order < 0
	case opGreater:
		return order > 0
	case opLessEqual:
		return order <= 0
	default:
		return order >= 0
	}
}

// orderOf compares a value, other than NULL, with the constant.
func (l *literal) orderOf(value any) (order int, ok bool) {
	switch v := value.(type) {
	case string:
		return foldCompare(v, l.text), l.kind == litString
	case bool:
		want, ok := l.boolean()
		return cmp.Compare(truthOf(v), truthOf(want)), ok
	case Char16:
		return l.orderOfChar(v)
	case float32:
		return l.orderOfFloat(float64(v))
	case float64:
		return l.orderOfFloat(v)
	}
	have, ok := integer(value)
	if !ok {
		return 0, false
	}
	want, ok := l.number()
	return have.compare(want), ok
}

// boolean reads the constant as a Boolean.
func (l *literal) boolean() (value, ok bool) {
	if l.kind == litString {
		yes := strings.EqualFold(l.text, "TRUE")
		return yes, yes || strings.EqualFold(l.text, "FALSE")
	}
	return l.num.magnitude == 1, !l.num.negative && l.num.magnitude <= 1
}

// number reads the constant as an integer.
func (l *literal) number() (number, bool) {
	if l.kind == litString {
		return parseNumber(l.text)
	}
	return l.num, l.kind == litNumber
}

func (l *literal) orderOfChar(v Char16) (int, bool) {
	if l.kind != litString {
		want, ok := l.number()
		return number{magnitude: uint64(v)}.compare(want), ok
	}
	return foldCompare(string(utf16.Decode([]uint16{uint16(v)})), l.text), utf8.RuneCountInString(l.text) == 1
}

func (l *literal) orderOfFloat(v float64) (int, bool) {
	n, ok := l.number()
	want := float64(n.magnitude)
	if n.negative {
		want = -want
	}
	return cmp.Compare(v, want), ok
}

// integer widens any Go integer.
func integer(value any) (number, bool) {
	signed := func(v int64) (number, bool) {
		if v < 0 {
			return number{true, -uint64(v)}, true
		}
		return number{false, uint64(v)}, true
	}
	switch v := value.(type) {
	case uint8:
		return number{magnitude: uint64(v)}, true
	case uint16:
		return number{magnitude: uint64(v)}, true
	case uint32:
		return number{magnitude: uint64(v)}, true
	case uint64:
		return number{magnitude: v}, true
	case uint:
		return number{magnitude: uint64(v)}, true
	case int8:
		return signed(int64(v))
	case int16:
		return signed(int64(v))
	case int32:
		return signed(int64(v))
	case int64:
		return signed(v)
	case int:
		return signed(int64(v))
	default:
		return number{}, false
	}
}

func (n number) compare(m number) int {
	switch {
	case n.negative && m.negative:
		return cmp.Compare(m.magnitude, n.magnitude)
	case n.negative:
		return -1
	case m.negative:
		return 1
	default:
		return cmp.Compare(n.magnitude, m.magnitude)
	}
}

// foldCompare orders two texts without regard to case, character by character.
func foldCompare(a, b string) int {
	for a != "" && b != "" {
		x, xn := upperRune(a)
		y, yn := upperRune(b)
		if x != y {
			return cmp.Compare(x, y)
		}
		a, b = a[xn:], b[yn:]
	}
	return cmp.Compare(len(a), len(b))
}

// upperRune returns the first character of s in upper case, and its length.
func upperRune(s string) (rune, int) {
	if c := s[0]; c < utf8.RuneSelf {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		return rune(c), 1
	}
	r, n := utf8.DecodeRuneInString(s)
	return unicode.ToUpper(r), n
}
