package wql

import "strings"

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokIdent            // keyword, class or property
	tokString           // text is decoded
	tokNumber           // text is digits with an optional sign
	tokOp               // comparison
	tokPunct            // one of , * ( )
	tokBad              // text says what is wrong
)

type token struct {
	kind tokenKind
	text string
	at   int
}

// is reports whether the token is the keyword; WQL keywords have no case.
func (t token) is(keyword string) bool {
	return t.kind == tokIdent && len(t.text) == len(keyword) && strings.EqualFold(t.text, keyword)
}

func (t token) isPunct(p byte) bool { return t.kind == tokPunct && t.text[0] == p }

// lexer cuts a query into tokens without copying it.
type lexer struct {
	src string
	pos int
}

func (l *lexer) next() token {
	for l.pos < len(l.src) && isBlank(l.src[l.pos]) {
		l.pos++
	}
	start := l.pos
	if start == len(l.src) {
		return token{kind: tokEOF, at: start}
	}
	switch c := l.src[start]; {
	case isIdentStart(c):
		return l.take(tokIdent, identEnd(l.src, start))
	case isDigit(c), (c == '-' || c == '+') && start+1 < len(l.src) && isDigit(l.src[start+1]):
		return l.number()
	case c == '\'' || c == '"':
		text, end, problem := quoted(l.src, start)
		l.pos = end
		if problem != "" {
			return token{tokBad, problem, end}
		}
		return token{tokString, text, start}
	case strings.IndexByte("<>!=", c) >= 0:
		return l.operator()
	case strings.IndexByte(",*()", c) >= 0:
		return l.take(tokPunct, start+1)
	default:
		return token{tokBad, "unexpected character", start}
	}
}

func (l *lexer) take(kind tokenKind, end int) token {
	t := token{kind, l.src[l.pos:end], l.pos}
	l.pos = end
	return t
}

func (l *lexer) operator() token {
	rest := l.src[l.pos:]
	for _, op := range [...]string{"<>", "<=", ">=", "!=", "=", "<", ">"} {
		if strings.HasPrefix(rest, op) {
			return l.take(tokOp, l.pos+len(op))
		}
	}
	return token{tokBad, "unexpected character", l.pos}
}

// number reads an integer. Letters or a point behind it make it something that
// WQL integers are not.
func (l *lexer) number() token {
	end := l.pos + 1
	for end < len(l.src) && isDigit(l.src[end]) {
		end++
	}
	if end < len(l.src) && (isIdentStart(l.src[end]) || l.src[end] == '.') {
		return token{tokBad, "malformed number", end}
	}
	return l.take(tokNumber, end)
}

// quoted reads the literal that starts with the quote at src[start]: its text,
// the end behind it, and what is wrong with it. A backslash escapes a backslash
// and either quote and nothing else; a doubled quote is not an escape.
// Source: WQL WHERE clause documentation.
func quoted(src string, start int) (text string, end int, problem string) {
	quote, from := src[start], start+1
	var decoded strings.Builder
	for i := from; i < len(src); i++ {
		switch src[i] {
		case quote:
			if decoded.Len() == 0 && from == start+1 {
				return src[from:i], i + 1, ""
			}
			decoded.WriteString(src[from:i])
			return decoded.String(), i + 1, ""
		case '\\':
			if i+1 == len(src) || strings.IndexByte(`\'"`, src[i+1]) < 0 {
				return "", i, "backslash escapes nothing"
			}
			if decoded.Cap() == 0 {
				decoded.Grow(min(len(src)-start, 512)) // one allocation for all usual lengths
			}
			decoded.WriteString(src[from:i])
			from = i + 1 // the escaped character starts the next run
			i++
		}
	}
	return "", len(src), "unclosed string"
}

func identEnd(src string, start int) int {
	end := start
	for end < len(src) && (isIdentStart(src[end]) || isDigit(src[end])) {
		end++
	}
	return end
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isIdentStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
