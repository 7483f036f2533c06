package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProfiles(t *testing.T) {
	t.Parallel()
	p, err := parseProfile(strings.NewReader("mode: set\na/b.go:1.2,3.4 5 0\na/b.go:3.4,5.6 2 7\na/b.go:1.2,3.4 5 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := profile{
		{"a/b.go", place{1, 2}, place{3, 4}, 5}: true,
		{"a/b.go", place{3, 4}, place{5, 6}, 2}: true,
	}
	if !maps.Equal(p, want) {
		t.Errorf("profile = %v", p)
	}
	other := profile{{"a/b.go", place{3, 4}, place{5, 6}, 2}: false, {"a/c.go", place{1, 1}, place{2, 1}, 4}: false}
	p.add(other)
	if executed, all := p.count(); executed != 7 || all != 11 {
		t.Errorf("%d of %d statements", executed, all)
	}
	kept := p.only(func(file string) bool { return file == "a/c.go" })
	if len(kept) != 1 {
		t.Errorf("kept %v", kept)
	}
	blocks := p.blocks()
	if len(blocks) != 3 || blocks[0].start.line != 1 || blocks[2].file != "a/c.go" {
		t.Errorf("blocks = %v", blocks)
	}
	for _, bad := range []string{"x", "a.go:1.2,3.4 5", "a.go:1.2,3.4 5 x"} {
		if _, err := parseProfile(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

const exampleText = `package p

func (t *thing[T]) Do(x int) error {
	if x > 1 {
		// why
		return failed(x)
	}
	return nil
}

func empty() {}

func plain() int { return 1 }
`

// example writes a file for Windows into a repository of one room.
func example(t *testing.T) (top string) {
	t.Helper()
	top = t.TempDir()
	for _, room := range rooms() {
		if err := os.MkdirAll(filepath.Join(top, room, "p"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "winos/p/a_windows.go"), []byte(exampleText), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "winos/p/a.go"), []byte("package p\nfunc other() { other() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return top
}

const exampleFile = module + "/winos/p/a_windows.go"

// Blocks of the example, as the compiler counts them.
func exampleBlocks() (start, inner, end, plain block) {
	return block{exampleFile, place{3, 36}, place{4, 11}, 1}, block{exampleFile, place{4, 11}, place{7, 3}, 1},
		block{exampleFile, place{8, 2}, place{8, 12}, 1}, block{exampleFile, place{13, 18}, place{13, 29}, 1}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	all, texts, err := functions(example(t))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, f := range all {
		keys = append(keys, f.key())
	}
	if want := []string{"winos/p/a_windows.go thing.Do", "winos/p/a_windows.go plain"}; !slices.Equal(keys, want) {
		t.Errorf("functions = %v", keys)
	}
	start, inner, end, plain := exampleBlocks()
	for b, text := range map[block]string{start: "if x > 1", inner: "return failed(x)", end: "return nil", plain: "return 1"} {
		if got := firstLine(texts["winos/p/a_windows.go"], b); got != text {
			t.Errorf("first line = %q, want %q", got, text)
		}
	}
	if !all[0].holds(inner) || all[0].holds(plain) || !all[1].holds(plain) {
		t.Error("a block is in the wrong function")
	}
}

func evaluated(t *testing.T) []*result {
	t.Helper()
	all, texts, err := functions(example(t))
	if err != nil {
		t.Fatal(err)
	}
	start, inner, end, plain := exampleBlocks()
	run := func(stands, folder, name string, executed bool) *testRun {
		return &testRun{stands, folder, name, profile{start: executed, inner: false, end: executed, plain: false}}
	}
	results, whole := evaluate(all, texts, []*testRun{
		run("Wine", "wire", "TestB", true), run("Wine", "wire", "TestA", true), run("Wine", "winos/p", "TestZ", true),
		run("Wine", "zoo", "TestLast", true), run("stand-ins", "test/lab", "TestLab", true), run("Wine", "wire", "TestNothing", false),
		run("Wine", "winos/p", allTests, true),
	})
	if executed, statements := whole.count(); executed != 2 || statements != 4 {
		t.Fatalf("%d of %d statements", executed, statements)
	}
	return results
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	results := evaluated(t)
	do, plain := results[0], results[1]
	if do.executed != 2 || do.statements != 3 || !slices.Equal(do.missed, []string{"return failed(x)"}) {
		t.Errorf("thing.Do: %d of %d, missed %q", do.executed, do.statements, do.missed)
	}
	if want := "Wine: `winos/p` TestZ, `wire` TestA, TestB; stand-ins: `test/lab` TestLab"; do.executedBy() != want {
		t.Errorf("executed by %s", do.executedBy())
	}
	do.by = nil
	if want := "Wine: `winos/p`, its tests together"; do.executedBy() != want {
		t.Errorf("executed by %s", do.executedBy())
	}
	if len(plain.by) != 0 || plain.executed != 0 || plain.statements != 1 || plain.rung(nil) != "5" {
		t.Errorf("plain: %+v", plain)
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	results := evaluated(t)
	reasons, err := parseReasons("# comment\n\nwinos/p/a_windows.go thing.Do: it never fails here\nwinos/p/a_windows.go plain sometimes: timing\n")
	if err != nil {
		t.Fatal(err)
	}
	if problems := checkReasons(results, reasons); len(problems) != 0 {
		t.Errorf("problems: %v", problems)
	}
	text := document("# Title\n", results, reasons)
	for _, want := range []string{
		"# Title\n", "### winos/p/a_windows.go\n", "| `thing.Do` | 2 in part | Wine: ", "| `plain` | 2 in part |  |",
		"| `thing.Do` of winos/p/a_windows.go | `return failed(x)` | it never fails here |", "| in some runs only | timing |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document lacks %q:\n%s", want, text)
		}
	}
	stale, err := parseReasons("winos/p/a_windows.go gone: x y\n")
	if err != nil {
		t.Fatal(err)
	}
	results[0].missed = nil
	stale["winos/p/a_windows.go thing.Do"] = reason{text: "no longer true"}
	problems := strings.Join(checkReasons(results, stale), "\n")
	for _, want := range []string{"thing.Do: all of it is executed", "plain: no reason", "gone: there is no such function"} {
		if !strings.Contains(problems, want) {
			t.Errorf("the problems lack %q:\n%s", want, problems)
		}
	}
	for _, bad := range []string{"a b c: x", "a: x", "a b:", "a b: x\na b: y"} {
		if _, err := parseReasons(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// The list that is kept can be read.
func TestKeptReasons(t *testing.T) {
	t.Parallel()
	if _, err := parseReasons(reasonsText); err != nil {
		t.Error(err)
	}
}

func TestVerifiedFiles(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{
		module + "/winos/win32/open_windows.go": true, module + "/test/wine/lab/x_windows.go": false,
		module + "/winos/win32/open.go": false, "golang.org/x/sys/windows/env_windows.go": false,
	} {
		if isVerified(file) != want {
			t.Errorf("isVerified(%s) = %v", file, !want)
		}
	}
	if isProduct(module+"/wire/wirepb/disk.pb.go") || !isProduct(module+"/wire/server.go") {
		t.Error("what is made by a generator counts, or the product does not")
	}
}

func TestCodeListAndDifferences(t *testing.T) {
	t.Parallel()
	if got := codeList([]string{"return err", "a | b", "return err"}); got != "`return err` (2 places), `a \\| b`" {
		t.Errorf("codeList = %s", got)
	}
	if firstDifference("a\nb", "a\nb") != "" || !strings.Contains(firstDifference("a\nb", "a\nc"), "line 2") || firstDifference("a", "a\nb") == "" {
		t.Error("differences are not found")
	}
}
