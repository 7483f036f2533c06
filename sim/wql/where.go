package wql

import (
	"strconv"
	"strings"
)

// opcode is what a node does.
type opcode uint8

const (
	opEqual opcode = iota
	opNotEqual
	opLess
	opGreater
	opLessEqual
	opGreaterEqual
	opLike
	opIsNull
	opIsNotNull
	opAnd
	opOr
	opNot
)

// node is one step of a condition: a comparison of prop with lit, or a
// combination of the nodes left and right (NOT has left only). Nodes stand
// behind the nodes they refer to.
type node struct {
	op          opcode
	left, right int32
	prop        string
	lit         literal
}

type literalKind uint8

const (
	litString literalKind = iota
	litNumber
	litBool
)

// literal is a constant. TRUE and FALSE keep the numbers 1 and 0, which they
// equal by the documentation of the WHERE clause.
type literal struct {
	kind literalKind
	text string
	num  number
}

// number is an integer wide enough for every CIM type.
type number struct {
	negative  bool
	magnitude uint64
}

func parseNumber(text string) (number, bool) {
	digits := strings.TrimPrefix(text, "-")
	n := number{negative: len(digits) < len(text)}
	if !n.negative {
		digits = strings.TrimPrefix(text, "+")
	}
	if digits == "" || !isDigit(digits[0]) {
		return number{}, false
	}
	m, err := strconv.ParseUint(digits, 10, 64)
	n.magnitude = m
	n.negative = n.negative && m != 0
	return n, err == nil
}

func (p *parser) emit(n node) int32 {
	p.nodes = append(p.nodes, n)
	return int32(len(p.nodes) - 1)
}

// or, and, not and primary are the levels of precedence. Each returns the index
// of its node; after a failure the index means nothing.
func (p *parser) or(depth int) int32 {
	left := p.and(depth)
	for p.err == nil && p.tok.is("OR") {
		p.advance()
		right := p.and(depth)
		left = p.emit(node{op: opOr, left: left, right: right})
	}
	return left
}

func (p *parser) and(depth int) int32 {
	left := p.not(depth)
	for p.err == nil && p.tok.is("AND") {
		p.advance()
		right := p.not(depth)
		left = p.emit(node{op: opAnd, left: left, right: right})
	}
	return left
}

func (p *parser) not(depth int) int32 {
	if p.err != nil || !p.tok.is("NOT") {
		return p.primary(depth)
	}
	if depth == MaxNesting {
		p.failAs(QuotaViolation, "query too deep")
		return 0
	}
	p.advance()
	inner := p.not(depth + 1)
	return p.emit(node{op: opNot, left: inner})
}

func (p *parser) primary(depth int) int32 {
	if p.err != nil || !p.tok.isPunct('(') {
		return p.comparison()
	}
	if depth == MaxNesting {
		p.failAs(QuotaViolation, "query too deep")
		return 0
	}
	p.advance()
	inner := p.or(depth + 1)
	if p.err == nil && !p.tok.isPunct(')') {
		p.fail(") expected")
	}
	p.advance()
	return inner
}

// comparison reads "property operator constant" or "constant operator
// property", both of which the documentation allows.
func (p *parser) comparison() int32 {
	if p.err != nil {
		return 0
	}
	if p.terms++; p.terms > MaxConditions {
		p.failAs(QuotaViolation, "too many conditions")
		return 0
	}
	if lit, ok := p.constant(); ok {
		op := mirrored(p.operator())
		return p.emit(node{op: op, prop: p.property(), lit: lit})
	}
	prop := p.property()
	switch {
	case p.err != nil:
		return 0
	case p.tok.is("IS"):
		return p.emit(node{op: p.isNull(), prop: prop})
	case p.tok.is("LIKE"):
		p.advance()
		if p.err == nil && p.tok.kind != tokString {
			p.fail("pattern expected")
		}
		lit, _ := p.constant()
		return p.emit(node{op: opLike, prop: prop, lit: lit})
	}
	op := p.operator()
	lit, ok := p.constant()
	if !ok {
		// NULL is one of these: it goes with IS and IS NOT only.
		p.fail("constant expected")
	}
	return p.emit(node{op: op, prop: prop, lit: lit})
}

// property consumes a property name. The words that are constants or operators
// are not names.
func (p *parser) property() string {
	for _, word := range [...]string{"AND", "OR", "NOT", "IS", "LIKE", "NULL", "TRUE", "FALSE"} {
		if p.tok.is(word) {
			p.fail("property expected")
			return ""
		}
	}
	return p.ident("property")
}

// isNull reads IS NULL and IS NOT NULL, the only uses of IS.
// Source: WQL operators documentation.
func (p *parser) isNull() opcode {
	op := opIsNull
	p.advance()
	if p.err == nil && p.tok.is("NOT") {
		op = opIsNotNull
		p.advance()
	}
	p.keyword("NULL")
	return op
}

func (p *parser) operator() opcode {
	op := opEqual
	if p.tok.kind != tokOp {
		p.fail("operator expected")
		return op
	}
	switch p.tok.text {
	case "<>", "!=":
		op = opNotEqual
	case "<":
		op = opLess
	case ">":
		op = opGreater
	case "<=":
		op = opLessEqual
	case ">=":
		op = opGreaterEqual
	}
	p.advance()
	return op
}

// mirrored is the operator read from the other side.
func mirrored(op opcode) opcode {
	switch op {
	case opLess:
		return opGreater
	case opGreater:
		return opLess
	case opLessEqual:
		return opGreaterEqual
	case opGreaterEqual:
		return opLessEqual
	default:
		return op
	}
}

// constant consumes a constant when one is there.
func (p *parser) constant() (literal, bool) {
	lit := literal{kind: litString, text: p.tok.text}
	switch {
	case p.err != nil:
		return literal{}, false
	case p.tok.kind == tokString:
	case p.tok.kind == tokNumber:
		n, ok := parseNumber(p.tok.text)
		if !ok {
			p.fail("number out of range")
			return literal{}, false
		}
		lit = literal{kind: litNumber, num: n}
	case p.tok.is("TRUE"):
		lit = literal{kind: litBool, num: number{magnitude: 1}}
	case p.tok.is("FALSE"):
		lit = literal{kind: litBool}
	default:
		return literal{}, false
	}
	p.advance()
	return lit, true
}
