package main

import (
	"go/ast"
	"go/constant"
	"go/types"
	"strconv"
	"strings"
)

// codes compares the table of Windows error numbers in winos: each key with the
// number that its name has in winerror.h.
func (f *findings) codes(s *source) {
	if s.name != "winos" {
		return
	}
	count := 0
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || spec.Names[0].Name != "win32Codes" || len(spec.Values) != 1 {
				return true
			}
			table, ok := spec.Values[0].(*ast.CompositeLit)
			if !ok {
				return true
			}
			for _, element := range table.Elts {
				if f.code(s, element) {
					count++
				}
			}
			return false
		})
	}
	if count == 0 {
		f.missing("winos.win32Codes: no table of that name and form was found")
	}
}

func (f *findings) code(s *source, element ast.Expr) bool {
	pair, ok := element.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	meaning, ok := pair.Value.(*ast.CompositeLit)
	if !ok || len(meaning.Elts) == 0 {
		return false
	}
	literal, ok := meaning.Elts[0].(*ast.BasicLit)
	if !ok {
		return false
	}
	name, err := strconv.Unquote(literal.Value)
	if err != nil {
		return false
	}
	value, exact := constant.Uint64Val(s.info.Types[pair.Key].Value)
	if !exact {
		return false
	}
	if !strings.HasPrefix(name, "RPC_") {
		name = "ERROR_" + name
	}
	f.number("winos.win32Codes", value, name)
	return true
}

// bare finds bytes of Windows that are laid out by a number written in place, where
// nothing can compare it: they belong into package winos/layout.
func (f *findings) bare(s *source) {
	if !strings.HasPrefix(s.name, "winos") {
		return
	}
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			function, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !isByteOrder(s.info.Types[function.X].Type) {
				return true
			}
			if part, ok := call.Args[0].(*ast.SliceExpr); ok {
				if _, ok := part.Low.(*ast.BasicLit); ok {
					f.missing("%s: an offset is written in place", s.positions.Position(call.Pos()))
				}
			}
			return true
		})
	}
}

// isByteOrder reports whether a value is one of encoding/binary's byte orders.
func isByteOrder(t types.Type) bool {
	named, ok := t.(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "encoding/binary"
}
