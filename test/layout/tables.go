package main

import (
	_ "embed"
	"fmt"
	"strings"
)

var (
	//go:embed numbers.txt
	numbersText string
	//go:embed structures.txt
	structuresText string
)

// table is what one of the two lists says, and which of its lines were needed.
type table struct {
	lines map[string]string
	used  map[string]bool
}

// parseTable reads lines of a name and what follows it.
func parseTable(text string) (*table, error) {
	t := &table{lines: map[string]string{}, used: map[string]bool{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, ok := strings.Cut(line, " ")
		if rest = strings.TrimSpace(rest); !ok || rest == "" {
			return nil, fmt.Errorf("the line %q has one word", line)
		}
		if _, ok := t.lines[name]; ok {
			return nil, fmt.Errorf("%s has two lines", name)
		}
		t.lines[name] = rest
	}
	return t, nil
}

// find returns what the list says of a name. own is set for a line that says that
// there is nothing to compare.
func (t *table) find(name string) (rest string, own, ok bool) {
	rest, ok = t.lines[name]
	if ok {
		t.used[name] = true
	}
	return rest, strings.HasPrefix(rest, "own "), ok
}

// stale returns the names that nothing of the product has.
func (t *table) stale() []string {
	var names []string
	for name := range t.lines {
		if !t.used[name] {
			names = append(names, name)
		}
	}
	return names
}
