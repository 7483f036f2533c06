package main

import (
	"fmt"
	"slices"
	"strings"
)

// reason says why a function is not executed, or not all of it.
type reason struct {
	// sometimes is set for what depends on timing: executed in some runs only.
	sometimes bool
	text      string
}

// parseReasons reads the hand-kept list: a line is
//
//	folder/file_windows.go Function: reason
//	folder/file_windows.go Function sometimes: reason
func parseReasons(text string) (map[string]reason, error) {
	reasons := map[string]reason{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		head, why, ok := strings.Cut(line, ": ")
		words := strings.Fields(head)
		if !ok || len(words) < 2 || len(words) > 3 || len(words) == 3 && words[2] != "sometimes" || strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("not a reason: %q", line)
		}
		key := words[0] + " " + words[1]
		if _, twice := reasons[key]; twice {
			return nil, fmt.Errorf("%s has two reasons", key)
		}
		reasons[key] = reason{sometimes: len(words) == 3, text: strings.TrimSpace(why)}
	}
	return reasons, nil
}

// checkReasons returns what is wrong with the list: a function that is not wholly
// executed and has no reason, and a reason that has become wrong.
func checkReasons(results []*result, reasons map[string]reason) []string {
	var problems []string
	known := map[string]bool{}
	for _, r := range results {
		why, has := reasons[r.key()]
		known[r.key()] = true
		switch {
		case len(r.missed) > 0 && !has:
			problems = append(problems, fmt.Sprintf("%s: no reason says why this is not executed: %s", r.key(), strings.Join(r.missed, " | ")))
		case len(r.missed) == 0 && has && !why.sometimes:
			problems = append(problems, fmt.Sprintf("%s: all of it is executed, but there is a reason why not", r.key()))
		}
	}
	for key := range reasons {
		if !known[key] {
			problems = append(problems, fmt.Sprintf("%s: there is no such function, but a reason", key))
		}
	}
	slices.Sort(problems)
	return problems
}
