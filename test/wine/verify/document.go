package main

import (
	"fmt"
	"slices"
	"strings"
)

// namedMost is how many tests are named for a function.
const namedMost = 3

// document is docs/windows-verification.md.
func document(introduction string, results []*result, reasons map[string]reason) string {
	var b strings.Builder
	b.WriteString(introduction)
	b.WriteString("\n## Functions\n")
	file := ""
	for _, r := range results {
		if r.file != file {
			file = r.file
			fmt.Fprintf(&b, "\n### %s\n\n| function | rung | executed by |\n|---|---|---|\n", file)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.name, r.rung(reasons), r.executedBy())
	}
	b.WriteString("\n## What is not executed under Wine, and why\n\n| function | code | reason |\n|---|---|---|\n")
	for _, r := range results {
		why, has := reasons[r.key()]
		if !has {
			continue
		}
		code := "in some runs only"
		if !why.sometimes {
			code = codeList(r.missed)
		}
		fmt.Fprintf(&b, "| `%s` of %s | %s | %s |\n", r.name, r.file, code, why.text)
	}
	return b.String()
}

// rung is where a function stands on the ladder of the document.
func (r *result) rung(reasons map[string]reason) string {
	why, has := reasons[r.key()]
	switch {
	case r.executed == 0 && !why.sometimes:
		return "5"
	case has:
		return "2 in part"
	}
	return "2"
}

// executedBy names the first tests that executed a function, for Wine itself and
// for the stand-ins.
func (r *result) executedBy() string {
	var parts []string
	for _, l := range lanes() {
		tests, folders := r.by[l.stands], r.together[l.stands]
		switch {
		case len(tests) > 0:
			parts = append(parts, l.stands+": "+testList(tests))
		case len(r.by) == 0 && len(folders) > 0:
			parts = append(parts, l.stands+": `"+slices.Min(folders)+"`, its tests together")
		}
	}
	return strings.Join(parts, "; ")
}

// testList names tests, each package once.
func testList(tests []test) string {
	var parts []string
	folder := ""
	for _, t := range tests[:min(namedMost, len(tests))] {
		name := t.name
		if t.folder != folder {
			folder = t.folder
			name = "`" + folder + "` " + name
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, ", ")
}

// codeList shows pieces of code, each once.
func codeList(pieces []string) string {
	var parts []string
	times := map[string]int{}
	for _, piece := range pieces {
		if times[piece]++; times[piece] == 1 {
			parts = append(parts, piece)
		}
	}
	for i, piece := range parts {
		parts[i] = "`" + strings.NewReplacer("|", `\|`, "`", "'").Replace(piece) + "`"
		if times[piece] > 1 {
			parts[i] += fmt.Sprintf(" (%d places)", times[piece])
		}
	}
	return strings.Join(parts, ", ")
}
