package wql

import (
	"fmt"
	"strings"
)

// Path is an object path: of a class when Keys is empty, of an instance otherwise.
type Path struct {
	Server    string // empty when the path did not name one
	Namespace string // with backslashes; empty when the path did not name one
	Class     string
	// Keys are the key properties by their name in the path. Values are text
	// without quotes and escapes, whatever their type. A class with one key may
	// leave its name out (Class="x"): then the name is empty.
	Keys map[string]string
}

// Key returns the value of a key. Names have no case; an unnamed single key
// answers to every name.
func (p Path) Key(name string) (value string, ok bool) {
	for have, v := range p.Keys {
		if have == "" || strings.EqualFold(have, name) {
			return v, true
		}
	}
	return "", false
}

// ParsePath reads an object path: Class, Class.Key="value",K2=5, Class="value",
// each with or without \\server\namespace: before it. Blanks are not allowed
// outside of quotes. Errors are *Error of kind InvalidPath or QuotaViolation.
// Source: Describing a WMI object path documentation.
func ParsePath(path string) (Path, error) {
	if len(path) > MaxBytes {
		return Path{}, &Error{QuotaViolation, MaxBytes, "object path too long"}
	}
	r := pathReader{src: path}
	p := r.path()
	if r.err == nil && r.pos != len(path) {
		r.fail("unexpected text after the path")
	}
	if r.err != nil {
		return Path{}, r.err
	}
	return p, nil
}

// pathReader reads a path that may be a part of a longer text.
type pathReader struct {
	src string
	pos int
	err *Error
}

func (r *pathReader) fail(text string) {
	if r.err == nil {
		r.err = &Error{InvalidPath, r.pos, text}
	}
}

// accept consumes c when it is next.
func (r *pathReader) accept(c byte) bool {
	if r.err != nil || r.pos == len(r.src) || r.src[r.pos] != c {
		return false
	}
	r.pos++
	return true
}

func (r *pathReader) path() Path {
	p := Path{}
	p.Server, p.Namespace = r.location()
	p.Class = r.ident("class")
	switch {
	case r.accept('.'):
		p.Keys = make(map[string]string, 1)
		for more := true; more && r.err == nil; more = r.accept(',') {
			r.namedKey(p.Keys)
		}
	case r.accept('='):
		p.Keys = map[string]string{"": r.value()}
	}
	return p
}

// location reads \\server\namespace: or namespace:, when one is there. Forward
// slashes do as well.
func (r *pathReader) location() (server, namespace string) {
	rest := r.src[r.pos:]
	end := strings.IndexAny(rest, ":=\"'}")
	if end < 0 || rest[end] != ':' {
		return "", ""
	}
	text := strings.ReplaceAll(rest[:end], "/", `\`)
	if after, ok := strings.CutPrefix(text, `\\`); ok {
		server, text, _ = strings.Cut(after, `\`)
		if server == "" {
			r.fail("server expected")
		}
	}
	for part := range strings.SplitSeq(text, `\`) {
		if part == "" || identEnd(part, 0) != len(part) {
			r.fail("malformed namespace")
		}
	}
	r.pos += end + 1
	return server, text
}

func (r *pathReader) ident(what string) string {
	end := identEnd(r.src, r.pos)
	if r.err != nil || end == r.pos || isDigit(r.src[r.pos]) {
		r.fail(what + " expected")
		return ""
	}
	name := r.src[r.pos:end]
	r.pos = end
	return name
}

func (r *pathReader) namedKey(keys map[string]string) {
	name := r.ident("key")
	if !r.accept('=') {
		r.fail("= expected")
	}
	value := r.value()
	for have := range keys {
		if strings.EqualFold(have, name) {
			r.fail("key given twice")
		}
	}
	keys[name] = value
}

// value reads a text in quotes, an integer, TRUE or FALSE.
func (r *pathReader) value() string {
	if r.err != nil || r.pos == len(r.src) {
		r.fail("value expected")
		return ""
	}
	if c := r.src[r.pos]; c == '"' || c == '\'' {
		text, end, problem := quoted(r.src, r.pos)
		r.pos = end
		if problem != "" {
			r.fail(problem)
		}
		return text
	}
	end := r.pos
	for end < len(r.src) && (isIdentStart(r.src[end]) || isDigit(r.src[end]) || end == r.pos && r.src[end] == '-') {
		end++
	}
	text := r.src[r.pos:end]
	if _, ok := parseNumber(text); !ok && !strings.EqualFold(text, "TRUE") && !strings.EqualFold(text, "FALSE") {
		r.fail("value expected")
		return ""
	}
	r.pos = end
	return text
}

// Key is one key of an object path that is written.
type Key struct {
	Name  string
	Value any // a string is written in quotes; integers and Booleans as they are
}

// FormatPath writes a relative object path (__RELPATH), keys in the order given:
// backslashes and double quotes in texts are escaped by a backslash.
func FormatPath(class string, keys ...Key) string {
	var b strings.Builder
	b.WriteString(class)
	separator := byte('.')
	for _, key := range keys {
		b.WriteByte(separator)
		separator = ','
		b.WriteString(key.Name)
		b.WriteByte('=')
		switch v := key.Value.(type) {
		case string:
			b.WriteByte('"')
			pathEscapes.WriteString(&b, v)
			b.WriteByte('"')
		case bool:
			b.WriteString(strings.ToUpper(fmt.Sprint(v)))
		default:
			fmt.Fprint(&b, v)
		}
	}
	return b.String()
}

var pathEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
