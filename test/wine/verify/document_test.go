package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rowsOf reads which functions a document has, by key.
func rowsOf(document string) (keys []string) {
	file := ""
	for line := range strings.Lines(document) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			file = heading
		}
		if strings.HasPrefix(line, "## What is not executed") {
			break
		}
		if name, ok := strings.CutPrefix(line, "| `"); ok && file != "" {
			name, _, _ = strings.Cut(name, "`")
			keys = append(keys, file+" "+name)
		}
	}
	return keys
}

// The document names every function that only Windows can run, and no other. What
// executes them is make check-verify's to say, which takes minutes.
func TestDocumentNamesEveryFunction(t *testing.T) {
	t.Parallel()
	top := filepath.Join("..", "..", "..")
	all, _, err := functions(top)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range all {
		want = append(want, f.key())
	}
	text, err := os.ReadFile(filepath.Join(top, "docs", "windows-verification.md"))
	if err != nil {
		t.Fatal(err)
	}
	have := rowsOf(string(text))
	for _, key := range want {
		if !slices.Contains(have, key) {
			t.Errorf("the document lacks %s: make verify writes it", key)
		}
	}
	for _, key := range have {
		if !slices.Contains(want, key) {
			t.Errorf("the document has %s, which is gone: make verify writes it anew", key)
		}
	}
	reasons, err := parseReasons(reasonsText)
	if err != nil {
		t.Fatal(err)
	}
	for key := range reasons {
		if !slices.Contains(want, key) {
			t.Errorf("reasons.txt has %s, which is gone", key)
		}
	}
}
