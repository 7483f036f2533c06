// Package workflow reads the commands of the workflow for Windows, for the tests that
// try them without it.
package workflow

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Path is the workflow's file, from the top of the repository.
const Path = ".github/workflows/windows.yml"

// Commands returns the words of every command, in order. The workflow is kept to
// single lines without quotes and pipes, so blanks part the words; anything else is
// an error.
func Commands(file []byte) ([][]string, error) {
	var commands [][]string
	lines := bufio.NewScanner(bytes.NewReader(file))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimPrefix(strings.TrimSpace(lines.Text()), "- ")
		text, isCommand := strings.CutPrefix(line, "run:")
		if !isCommand || text == "" { // "run:" alone is a section of defaults
			continue
		}
		words := strings.Fields(text)
		if slices.ContainsFunc(words, func(w string) bool { return strings.ContainsAny(w, `|><&^%"'#${}`) }) {
			return nil, fmt.Errorf("line %d: %q is no plain command", number, text)
		}
		commands = append(commands, words)
	}
	return commands, lines.Err()
}
