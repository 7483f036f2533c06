package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// place is a position in a file; columns count bytes, both from 1.
type place struct{ line, column int }

func (p place) before(other place) bool {
	return p.line < other.line || p.line == other.line && p.column < other.column
}

// block is a piece of straight code, as the compiler's coverage counts it.
type block struct {
	file       string // import path and name
	start, end place
	statements int
}

// profile says of each block whether it was executed.
type profile map[block]bool

// readProfile reads a profile in the text form of go test -coverprofile.
func readProfile(path string) (profile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // was only read
	p, err := parseProfile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func parseProfile(r io.Reader) (profile, error) {
	p := profile{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "mode: ") {
			continue
		}
		b, executed, err := parseBlock(line)
		if err != nil {
			return nil, err
		}
		p[b] = p[b] || executed
	}
	return p, lines.Err()
}

// parseBlock reads a line like "host/file.go:10.16,12.3 1 0": place, statements,
// how often.
func parseBlock(line string) (b block, executed bool, err error) {
	broken := fmt.Errorf("not a line of a coverage profile: %q", line)
	colon := strings.LastIndexByte(line, ':')
	if colon < 0 {
		return b, false, broken
	}
	fields := strings.FieldsFunc(line[colon+1:], func(r rune) bool { return r == '.' || r == ',' || r == ' ' })
	if len(fields) != 6 {
		return b, false, broken
	}
	var numbers [6]int
	for i, field := range fields {
		if numbers[i], err = strconv.Atoi(field); err != nil {
			return b, false, broken
		}
	}
	b = block{
		file: line[:colon], start: place{numbers[0], numbers[1]}, end: place{numbers[2], numbers[3]}, statements: numbers[4],
	}
	return b, numbers[5] > 0, nil
}

// add merges another profile in.
func (p profile) add(other profile) {
	for b, executed := range other {
		p[b] = p[b] || executed
	}
}

// only keeps the blocks of the files that are wanted.
func (p profile) only(wanted func(file string) bool) profile {
	kept := profile{}
	for b, executed := range p {
		if wanted(b.file) {
			kept[b] = executed
		}
	}
	return kept
}

// count adds up statements.
func (p profile) count() (executed, all int) {
	for b, yes := range p {
		all += b.statements
		if yes {
			executed += b.statements
		}
	}
	return executed, all
}

// blocks returns the blocks in the order of their files.
func (p profile) blocks() []block {
	all := make([]block, 0, len(p))
	for b := range p {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b block) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.start.line, b.start.line), cmp.Compare(a.start.column, b.start.column))
	})
	return all
}
