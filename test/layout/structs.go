package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"
)

// structs compares the Go structs that Windows reads or writes: those of other
// modules that the product uses, and those whose address it hands on.
func (f *findings) structs(s *source) {
	for _, object := range s.info.Uses {
		name, ok := object.(*types.TypeName)
		if !ok || name.Pkg() == nil || !isBorrowed(name.Pkg().Path()) || inGoForm(name.Pkg().Path()) {
			continue
		}
		if structure, ok := name.Type().Underlying().(*types.Struct); ok && structure.NumFields() > 0 {
			f.structure(s, name.Pkg().Path()+"."+name.Name(), structure)
		}
	}
	unsafely := map[types.Object]bool{} // generic functions that hand something on
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok && len(call.Args) == 1 {
				f.conversion(s, file, call)
			}
			if d, ok := node.(*ast.FuncDecl); ok && d.Type.TypeParams != nil && s.isUnsafe(d) {
				unsafely[s.info.Defs[d.Name]] = true
			}
			return true
		})
	}
	for ident, instance := range s.info.Instances {
		if unsafely[s.info.Uses[ident]] {
			for argument := range instance.TypeArgs.Types() {
				f.pointed(s, argument, "")
			}
		}
	}
}

// inGoForm are packages whose structs Windows never sees.
func inGoForm(path string) bool { return strings.HasPrefix(path, "golang.org/x/sys/windows/") }

// isUnsafe reports whether a function uses unsafe.Pointer.
func (s *source) isUnsafe(d *ast.FuncDecl) bool {
	found := false
	ast.Inspect(d, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && s.info.Types[call.Fun].Type == types.Typ[types.UnsafePointer] {
			found = true
		}
		return true
	})
	return found
}

// conversion looks at unsafe.Pointer(&x) and at (*T)(p) of an unsafe.Pointer.
func (f *findings) conversion(s *source, file *ast.File, call *ast.CallExpr) {
	function, argument := s.info.Types[call.Fun], s.info.Types[call.Args[0]]
	if !function.IsType() || argument.Type == nil {
		return
	}
	pointer := types.Typ[types.UnsafePointer]
	switch {
	case function.Type == pointer:
		variable := ""
		if address, ok := call.Args[0].(*ast.UnaryExpr); ok {
			if ident, ok := address.X.(*ast.Ident); ok {
				variable = s.name + "." + declared(file, ident)
			}
		}
		f.pointed(s, argument.Type, variable)
	case argument.Type == pointer:
		f.pointed(s, function.Type, "")
		f.aligned(s, call, function.Type)
	}
}

// aligned looks at (*T)(unsafe.Pointer(&x)): what lies at x has to be aligned as T is,
// or an access is slow on one processor and faults on another.
func (f *findings) aligned(s *source, call *ast.CallExpr, to types.Type) {
	inner, ok := call.Args[0].(*ast.CallExpr)
	if !ok || len(inner.Args) != 1 {
		return
	}
	ours, ok := to.Underlying().(*types.Pointer)
	if !ok {
		return
	}
	theirs, ok := s.info.Types[inner.Args[0]].Type.Underlying().(*types.Pointer)
	if !ok || isParameter(ours.Elem()) || isParameter(theirs.Elem()) {
		return
	}
	if s.sizes.Alignof(theirs.Elem()) < s.sizes.Alignof(ours.Elem()) {
		f.missing("%s: a %s is not aligned as a %s has to be", s.positions.Position(call.Pos()), theirs.Elem(), ours.Elem())
	}
}

// isParameter reports whether a type is a type parameter, which has no size.
func isParameter(t types.Type) bool {
	_, ok := t.(*types.TypeParam)
	return ok
}

// pointed compares the struct that a pointer, or a pointer to a pointer, leads to.
func (f *findings) pointed(s *source, to types.Type, variable string) {
	for {
		pointer, ok := to.Underlying().(*types.Pointer)
		if !ok {
			break
		}
		to = pointer.Elem()
	}
	structure, ok := to.Underlying().(*types.Struct)
	if !ok {
		return
	}
	if named, ok := to.(*types.Named); ok {
		variable = strings.TrimPrefix(named.Obj().Pkg().Path(), module+"/") + "." + named.Obj().Name()
	} else if variable == "" {
		return // a part of something that is looked at by itself
	}
	f.structure(s, variable, structure)
}

// structure compares the size of a struct, and place and width of its members.
func (f *findings) structure(s *source, who string, structure *types.Struct) {
	listed, own, ok := f.structures.find(who)
	if !ok {
		f.missing("%s: nobody says which structure it is in C", who)
	}
	if !ok || own {
		return
	}
	words := strings.Fields(listed)
	c, members := words[0], map[string]string{}
	for _, word := range words[1:] {
		ours, theirs, renamed := strings.Cut(word, "=")
		if !renamed {
			theirs = ours
		}
		members[ours] = theirs
	}
	fields := make([]*types.Var, structure.NumFields())
	for i := range fields {
		fields[i] = structure.Field(i)
	}
	f.number(who, uint64(s.sizes.Sizeof(structure)), "sizeof("+c+")")
	for i, offset := range s.sizes.Offsetsof(fields) {
		name := fields[i].Name()
		member, ok := members[name]
		delete(members, name)
		if name == "_" {
			continue
		}
		if !ok {
			f.missing("%s: nobody says which member %s is", who, name)
			continue
		}
		f.number(who+"."+name, uint64(offset), fmt.Sprintf("offsetof(%s, %s)", c, member))
		f.number(who+"."+name+"'s type", uint64(s.sizes.Sizeof(fields[i].Type())), fmt.Sprintf("sizeof(((%s *)0)->%s)", c, member))
	}
	for name := range members {
		f.missing("%s: it has no member %s", who, name)
	}
}
