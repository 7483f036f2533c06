package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	t.Parallel()
	table, err := parseTable("# a comment\n\na.B   X | Y\na.C own ours\na.D Z\n")
	if err != nil {
		t.Fatal(err)
	}
	if rest, own, ok := table.find("a.B"); rest != "X | Y" || own || !ok {
		t.Errorf("a.B = %q, %v, %v", rest, own, ok)
	}
	if _, own, ok := table.find("a.C"); !own || !ok {
		t.Errorf("a.C is not ours: %v, %v", own, ok)
	}
	if _, _, ok := table.find("a.E"); ok {
		t.Error("a.E was found")
	}
	if stale := table.stale(); !slices.Equal(stale, []string{"a.D"}) {
		t.Errorf("stale: %v", stale)
	}
	for _, bad := range []string{"a.B\n", "a.B X\na.B Y\n"} {
		if _, err := parseTable(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	for _, text := range []string{numbersText, structuresText} {
		if _, err := parseTable(text); err != nil {
			t.Error(err)
		}
	}
}

// checked type-checks the text of a package that imports little.
func checked(t *testing.T, name, text string) *source {
	t.Helper()
	s := &source{
		name: name, positions: token.NewFileSet(), sizes: types.SizesFor("gc", "arm64"),
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Instances: map[*ast.Ident]types.Instance{},
		},
	}
	file, err := parser.ParseFile(s.positions, "text_windows.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	s.files = []*ast.File{file}
	config := types.Config{Importer: importer.ForCompiler(s.positions, "source", nil), Sizes: s.sizes}
	if s.types, err = config.Check(module+"/"+name, s.positions, s.files, s.info); err != nil {
		t.Fatal(err)
	}
	return s
}

// asked shows what is compared, a line each.
func asked(f *findings) []string {
	lines := make([]string, 0, len(f.all))
	for _, c := range f.all {
		lines = append(lines, c.who+"="+c.value+" "+c.expression)
	}
	slices.Sort(lines)
	return lines
}

func TestMembers(t *testing.T) {
	t.Parallel()
	f := &findings{}
	f.members(checked(t, "winos/layout", `package layout
type U32 int
const (
	Bytes       = 12 // sizeof(THING)
	Number U32  = 4  // THING.u.Number
	Rest        = 8  // THING.Rest
	Unsaid U32  = 8
)`))
	want := []string{
		"winos/layout.Bytes=12 (0xC) sizeof(THING)",
		"winos/layout.Number's type=4 (0x4) sizeof(((THING *)0)->u.Number)",
		"winos/layout.Number=4 (0x4) offsetof(THING, u.Number)",
		"winos/layout.Rest=8 (0x8) offsetof(THING, Rest)",
	}
	if got := asked(f); !slices.Equal(got, want) {
		t.Errorf("asked:\n%s", strings.Join(got, "\n"))
	}
	if len(f.unknown) != 1 || !strings.Contains(f.unknown[0], "Unsaid") {
		t.Errorf("unknown: %v", f.unknown)
	}
}

func tables(t *testing.T, numbers, structures string) *findings {
	t.Helper()
	f := &findings{}
	var err error
	if f.numbers, err = parseTable(numbers); err != nil {
		t.Fatal(err)
	}
	if f.structures, err = parseTable(structures); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestConstants(t *testing.T) {
	t.Parallel()
	f := tables(t, "winos/win32.Known KNOWN_NUMBER\nwinos/win32.Use.inner INNER\nwinos/win32.ours own it is\nwinos/win32.id guid IID_X\n", "")
	f.constants(checked(t, "winos/win32", `package win32
const (
	Known   = 0xC000_0000
	Unsaid  = 3
	ours    = 5
	Derived = Known | Use2
	Use2    = Known
	id      = "{DC12A681-737F-11CF-884D-00AA004B2E24}"
	text    = "no number"
)
func Use() int { const inner = 7; return inner }`))
	want := []string{
		"winos/win32.Known=3221225472 (0xC0000000) KNOWN_NUMBER",
		"winos/win32.Use.inner=7 (0x7) INNER",
		"winos/win32.id={dc12a681-737f-11cf-884d-00aa004b2e24} IID_X",
	}
	if got := asked(f); !slices.Equal(got, want) {
		t.Errorf("asked:\n%s", strings.Join(got, "\n"))
	}
	if len(f.unknown) != 1 || !strings.Contains(f.unknown[0], "Unsaid") {
		t.Errorf("unknown: %v", f.unknown)
	}
}

func TestStructs(t *testing.T) {
	t.Parallel()
	f := tables(t, "", "winos/win32.thing THING a=A b=B\nwinos/win32.use.local LOCAL first=F gone\n")
	f.structs(checked(t, "winos/win32", `package win32
import "unsafe"
type thing struct { a uint16; b unsafe.Pointer; _ [4]byte }
type unsaid struct { x int }
func use(p unsafe.Pointer) unsafe.Pointer {
	var local struct { first uint32; second uint32 }
	_ = (*thing)(p)
	_ = unsafe.Pointer(new(unsaid))
	return unsafe.Pointer(&local)
}`))
	want := []string{
		"winos/win32.thing.a's type=2 (0x2) sizeof(((THING *)0)->A)",
		"winos/win32.thing.a=0 (0x0) offsetof(THING, A)",
		"winos/win32.thing.b's type=8 (0x8) sizeof(((THING *)0)->B)",
		"winos/win32.thing.b=8 (0x8) offsetof(THING, B)",
		"winos/win32.thing=24 (0x18) sizeof(THING)",
		"winos/win32.use.local.first's type=4 (0x4) sizeof(((LOCAL *)0)->F)",
		"winos/win32.use.local.first=0 (0x0) offsetof(LOCAL, F)",
		"winos/win32.use.local=8 (0x8) sizeof(LOCAL)",
	}
	if got := asked(f); !slices.Equal(got, want) {
		t.Errorf("asked:\n%s", strings.Join(got, "\n"))
	}
	if unknown := strings.Join(f.unknown, "\n"); strings.Count(unknown, "\n") != 2 || !strings.Contains(unknown, "unsaid") ||
		!strings.Contains(unknown, "member second") || !strings.Contains(unknown, "no member gone") {
		t.Errorf("unknown: %s", unknown)
	}
}

func TestOffsetsInPlace(t *testing.T) {
	t.Parallel()
	f := &findings{}
	f.bare(checked(t, "winos", `package winos
import "encoding/binary"
func read(b []byte, i int) (uint32, uint16) {
	return binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint16(b[i:])
}`))
	if len(f.unknown) != 1 || !strings.Contains(f.unknown[0], "text_windows.go:4") {
		t.Errorf("found: %v", f.unknown)
	}
}

func TestAlignment(t *testing.T) {
	t.Parallel()
	f := tables(t, "", "winos/win32.thing own ours")
	f.structs(checked(t, "winos/win32", `package win32
import "unsafe"
type thing struct { a uint64 }
func use(b []byte, words []uint64) (*thing, *thing, *byte) {
	return (*thing)(unsafe.Pointer(&b[0])), (*thing)(unsafe.Pointer(&words[0])), (*byte)(unsafe.Pointer(&words[0]))
}`))
	if len(f.unknown) != 1 || !strings.Contains(f.unknown[0], "byte is not aligned") {
		t.Errorf("found: %v", f.unknown)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	all := []comparison{{who: "a", value: "1", expression: "A"}, {who: "b", value: "2", expression: "B"}, {who: "b", value: "2", expression: "B"}}
	if got := compare(all, map[string]string{"A": "1", "B": "2"}); len(got) != 0 {
		t.Errorf("differences: %v", got)
	}
	if got := compare(all, map[string]string{"A": "1", "B": "3"}); len(got) != 1 || !strings.Contains(got[0], "b is 2, but B is 3") {
		t.Errorf("differences: %v", got)
	}
	if got := unique(all); len(got) != 2 {
		t.Errorf("unique: %v", got)
	}
}
