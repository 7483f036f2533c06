// Package wql reads the query language of WMI the way the WMI service does: it
// is the strict side of a conversation, so that a query that real Windows would
// refuse is refused here. It covers SELECT with a WHERE clause, ASSOCIATORS OF,
// and object paths.
//
// Not covered, and refused as invalid: REFERENCES OF, event and schema queries,
// ISA, properties of embedded objects, and constants that are not strings,
// integers or TRUE and FALSE.
package wql

import "strings"

// Limits beyond which text is refused with QuotaViolation. WMI documents the
// error for queries with too many AND and OR keywords, without numbers; these
// are far above what an agent asks.
const (
	MaxBytes      = 64 << 10 // length of a query or an object path
	MaxConditions = 512      // comparisons in one WHERE clause
	MaxNesting    = 64       // parentheses and NOTs around one comparison
)

// Kind is the kind of a query.
type Kind uint8

// The kinds of queries.
const (
	Select Kind = iota + 1
	Associators
)

// Query is a parsed query. It is read-only and safe for concurrent use.
type Query struct {
	Kind Kind

	// Of SELECT:
	Class   string
	Columns []string // nil is *

	// Of ASSOCIATORS OF; empty clauses were not given:
	Source      Path
	AssocClass  string
	ResultClass string
	Role        string
	ResultRole  string

	where []node // the condition; its last node is the root
}

// Parse reads one query. Keywords have no case. Errors are *Error of kind
// InvalidQuery, InvalidPath (in the braces of ASSOCIATORS OF) or QuotaViolation.
func Parse(query string) (Query, error) {
	if len(query) > MaxBytes {
		return Query{}, &Error{QuotaViolation, MaxBytes, "query too long"}
	}
	p := parser{lex: lexer{src: query}}
	p.advance()
	var q Query
	switch {
	case p.tok.is("SELECT"):
		q = p.selectQuery()
	case p.tok.is("ASSOCIATORS"):
		q = p.associatorsQuery()
	default:
		p.fail("SELECT or ASSOCIATORS OF expected")
	}
	if p.err == nil && p.tok.kind != tokEOF {
		p.fail("unexpected text after the query")
	}
	if p.err != nil {
		return Query{}, p.err
	}
	return q, nil
}

// parser holds the token under the reader's eye. After a failure it stays where
// it is, and err tells the first reason.
type parser struct {
	lex   lexer
	tok   token
	nodes []node
	terms int
	err   *Error
}

func (p *parser) advance() {
	if p.err != nil {
		return
	}
	p.tok = p.lex.next()
	if p.tok.kind == tokBad {
		p.fail(p.tok.text)
	}
}

func (p *parser) fail(text string) { p.failAs(InvalidQuery, text) }

func (p *parser) failAs(kind ErrorKind, text string) {
	if p.err == nil {
		p.err = &Error{kind, p.tok.at, text}
	}
}

// keyword consumes a keyword that must be there.
func (p *parser) keyword(word string) {
	if !p.tok.is(word) {
		p.fail(word + " expected")
		return
	}
	p.advance()
}

// ident consumes a name.
func (p *parser) ident(what string) string {
	if p.tok.kind != tokIdent {
		p.fail(what + " expected")
		return ""
	}
	name := p.tok.text
	p.advance()
	return name
}

func (p *parser) selectQuery() Query {
	q := Query{Kind: Select}
	p.keyword("SELECT")
	if p.tok.isPunct('*') {
		p.advance()
	} else {
		q.Columns = p.columns()
	}
	p.keyword("FROM")
	q.Class = p.ident("class")
	if p.err == nil && p.tok.is("WHERE") {
		p.advance()
		p.nodes = make([]node, 0, 4)
		p.or(0)
		q.where = p.nodes
	}
	return q
}

func (p *parser) columns() []string {
	columns := make([]string, 0, 4)
	for {
		columns = append(columns, p.ident("property"))
		if p.err != nil || !p.tok.isPunct(',') {
			return columns
		}
		p.advance()
	}
}

// associatorsQuery reads the clauses behind the object path. They are parted by
// blanks alone, each is name = value, and AND between them is an error.
// Source: ASSOCIATORS OF statement documentation.
func (p *parser) associatorsQuery() Query {
	q := Query{Kind: Associators}
	p.keyword("ASSOCIATORS")
	if p.err == nil && !p.tok.is("OF") {
		p.fail("OF expected")
	}
	q.Source = p.bracedPath()
	p.advance()
	if p.err != nil || !p.tok.is("WHERE") {
		return q
	}
	p.advance()
	for first := true; p.err == nil && (first || p.tok.kind != tokEOF); first = false {
		p.clause(&q)
	}
	return q
}

func (p *parser) clause(q *Query) {
	var target *string
	switch name := p.tok; {
	case name.is("AssocClass"):
		target = &q.AssocClass
	case name.is("ResultClass"):
		target = &q.ResultClass
	case name.is("Role"):
		target = &q.Role
	case name.is("ResultRole"):
		target = &q.ResultRole
	default:
		p.fail("AssocClass, ResultClass, Role or ResultRole expected")
		return
	}
	if *target != "" {
		p.fail("clause given twice")
		return
	}
	p.advance()
	if p.tok.kind != tokOp || p.tok.text != "=" {
		p.fail("= expected")
		return
	}
	p.advance()
	*target = p.ident("name")
}

// bracedPath reads {path}. The token under the eye is the one before the brace.
func (p *parser) bracedPath() Path {
	if p.err != nil {
		return Path{}
	}
	rest := strings.TrimLeft(p.lex.src[p.lex.pos:], " \t\r\n")
	start := len(p.lex.src) - len(rest)
	if rest == "" || rest[0] != '{' {
		p.fail("{ expected")
		return Path{}
	}
	r := pathReader{src: p.lex.src, pos: start + 1}
	path := r.path()
	if r.err == nil && (r.pos == len(r.src) || r.src[r.pos] != '}') {
		r.fail("} expected")
	}
	if r.err != nil {
		p.err = r.err
		return Path{}
	}
	p.lex.pos = r.pos + 1
	return path
}
