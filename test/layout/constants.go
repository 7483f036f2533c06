package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// findings collects the comparisons of one architecture, and what cannot be
// compared because nobody said with what.
type findings struct {
	numbers    *table
	structures *table
	all        []comparison
	unknown    []string
}

func comparisons(sources []*source) ([]comparison, error) {
	numbers, err := parseTable(numbersText)
	if err != nil {
		return nil, err
	}
	structures, err := parseTable(structuresText)
	if err != nil {
		return nil, err
	}
	f := &findings{numbers: numbers, structures: structures}
	for _, s := range sources {
		if s.name == "winos/layout" {
			f.members(s)
			continue
		}
		f.constants(s)
		f.borrowed(s)
		f.structs(s)
		f.codes(s)
		f.bare(s)
	}
	for _, name := range append(numbers.stale(), structures.stale()...) {
		f.unknown = append(f.unknown, name+" is listed, and the product has no such thing")
	}
	if len(f.unknown) > 0 {
		slices.Sort(f.unknown)
		return nil, fmt.Errorf("%s", strings.Join(slices.Compact(f.unknown), "\n"))
	}
	return f.all, nil
}

func (f *findings) missing(format string, args ...any) {
	f.unknown = append(f.unknown, fmt.Sprintf(format, args...))
}

// structureAsked is the structure that an expression asks for.
var structureAsked = regexp.MustCompile(`(?:sizeof|offsetof)\(\(*(\w+)`)

// number adds the comparison of an integer.
func (f *findings) number(who string, value uint64, expression string) {
	structure := ""
	if match := structureAsked.FindStringSubmatch(expression); match != nil {
		structure = match[1]
	}
	f.all = append(f.all, comparison{who: who, value: numberText(value), expression: expression, structure: structure})
}

// memberComment is what stands behind a constant of winos/layout.
var memberComment = regexp.MustCompile(`^(?:sizeof\((\w+)\)|(\w+)\.([\w.]+))$`)

// members compares the constants of package winos/layout with what their comments
// say: an offset, and the width that its type has.
func (f *findings) members(s *source) {
	widths := map[string]uint64{"U8": 1, "U16": 2, "U32": 4, "U64": 8, "GUID": 16}
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			c, ok := s.info.Defs[spec.Names[0]].(*types.Const)
			if !ok {
				return true
			}
			who, comment := s.name+"."+c.Name(), strings.TrimSpace(spec.Comment.Text())
			match := memberComment.FindStringSubmatch(comment)
			if match == nil || len(spec.Names) != 1 {
				f.missing("%s: no comment says which member it is", who)
				return true
			}
			value, _ := constant.Uint64Val(c.Val())
			if match[1] != "" {
				f.number(who, value, "sizeof("+match[1]+")")
				return true
			}
			f.number(who, value, fmt.Sprintf("offsetof(%s, %s)", match[2], match[3]))
			if named, ok := c.Type().(*types.Named); ok {
				f.number(who+"'s type", widths[named.Obj().Name()], fmt.Sprintf("sizeof(((%s *)0)->%s)", match[2], match[3]))
			}
			return true
		})
	}
}

// isComplete reports whether every number of the package has to be listed: those
// that are the interface to Windows.
func isComplete(name string) bool {
	return name == "winos/win32" || name == "winos/cim" || name == "test/conformance/vhdx"
}

// constants compares the numbers that the product writes out itself. Those made of
// other constants follow from these.
func (f *findings) constants(s *source) {
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, ident := range spec.Names {
				who := s.name + "." + declared(file, ident)
				listed, own, ok := f.numbers.find(who)
				if symbol, isGUID := strings.CutPrefix(listed, "guid "); ok && isGUID {
					f.guid(who, spec, strings.TrimSpace(symbol))
					continue
				}
				c, isConst := s.info.Defs[ident].(*types.Const)
				if !isConst || c.Val().Kind() != constant.Int {
					continue
				}
				value, _ := constant.Uint64Val(c.Val())
				switch {
				case ok && !own:
					f.number(who, value, listed)
				case !ok && (isComplete(s.name) || s.isWindows(file)) && isWritten(c, spec, i):
					f.missing("%s: nobody says what it is in C", who)
				}
			}
			return true
		})
	}
}

// isWritten reports whether a constant has a number of its own in its source.
// Durations are ours.
func isWritten(c *types.Const, spec *ast.ValueSpec, i int) bool {
	if named, ok := c.Type().(*types.Named); ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time" {
		return false
	}
	if i >= len(spec.Values) {
		return false
	}
	written := false
	ast.Inspect(spec.Values[i], func(node ast.Node) bool {
		if _, ok := node.(*ast.BasicLit); ok {
			written = true
		}
		return true
	})
	return written
}

// guidText is a GUID in braces.
var guidText = regexp.MustCompile(`\{[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}`)

// guid compares a GUID with the symbol of the headers. It is written as text, or as
// the 16 bytes of its layout.
func (f *findings) guid(who string, spec *ast.ValueSpec, symbol string) {
	found, raw := "", []byte{}
	for _, value := range spec.Values {
		ast.Inspect(value, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if ok && literal.Kind == token.STRING && found == "" {
				found = guidText.FindString(literal.Value)
			}
			if number, ok := constant.Int64Val(constant.ToInt(valueOf(literal))); ok && strings.HasPrefix(literal.Value, "0x") {
				raw = append(raw, byte(number))
			}
			return true
		})
	}
	if len(raw) == 16 {
		found = guidOf(raw)
	}
	f.all = append(f.all, comparison{who: who, value: strings.ToLower(found), expression: symbol, guid: true})
}

// valueOf is the value of a literal; unknown for none.
func valueOf(literal *ast.BasicLit) constant.Value {
	if literal == nil {
		return constant.MakeUnknown()
	}
	return constant.MakeFromLiteral(literal.Value, literal.Kind, 0)
}

// isBorrowed are the packages that have Windows' numbers and structures for us.
func isBorrowed(path string) bool {
	return path == "golang.org/x/sys/windows" || strings.HasPrefix(path, "golang.org/x/sys/windows/") ||
		path == "github.com/go-ole/go-ole" || path == "syscall"
}

// borrowed compares the constants of other modules that the product uses.
func (f *findings) borrowed(s *source) {
	for _, object := range s.info.Uses {
		c, ok := object.(*types.Const)
		if !ok || c.Pkg() == nil || !isBorrowed(c.Pkg().Path()) || c.Val().Kind() != constant.Int {
			continue
		}
		who := c.Pkg().Path() + "." + c.Name()
		expression, own, ok := f.numbers.find(who)
		if !ok {
			expression = c.Name()
		}
		if value, exact := constant.Uint64Val(c.Val()); exact && !own {
			f.number(who, value, expression)
		}
	}
}
