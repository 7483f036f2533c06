package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/csi-windows/csi-windows"

// rooms are the folders of the product.
func rooms() []string {
	return []string{"agent", "client", "cmd", "csikit", "driver", "host", "internal", "mounter", "node", "sim", "winos", "wire"}
}

// isVerified reports whether a file, by import path and name, is one that only
// Windows can run, of the product.
func isVerified(file string) bool {
	name, ok := strings.CutPrefix(file, module+"/")
	room, _, _ := strings.Cut(name, "/")
	return ok && slices.Contains(rooms(), room) && strings.HasSuffix(name, "_windows.go")
}

// function is one function of a verified file.
type function struct {
	file       string // from the top of the repository
	name       string // Type.Method for a method
	start, end place
}

// folder is the package of a function, from the top of the repository.
func (f *function) folder() string { return path.Dir(f.file) }

// key names a function in lists.
func (f *function) key() string { return f.file + " " + f.name }

// holds reports whether a block lies in the function.
func (f *function) holds(b block) bool {
	return b.file == module+"/"+f.file && !b.start.before(f.start) && b.start.before(f.end)
}

// functions reads the verified files below the top of the repository, in order.
func functions(top string) (all []*function, texts map[string]string, err error) {
	texts = map[string]string{}
	for _, room := range rooms() {
		err := filepath.WalkDir(filepath.Join(top, room), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, "_windows.go") {
				return err
			}
			relative, err := filepath.Rel(top, name)
			if err != nil {
				return err
			}
			relative = filepath.ToSlash(relative)
			text, found, err := functionsOf(name, relative)
			texts[relative], all = text, append(all, found...)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("no function for Windows was found below %s", top)
	}
	return all, texts, nil
}

// functionsOf parses one file. Functions without statements cannot be executed, and
// are left out.
func functionsOf(name, relative string) (text string, all []*function, err error) {
	positions := token.NewFileSet()
	b, err := readFile(name)
	if err != nil {
		return "", nil, err
	}
	syntax, err := parser.ParseFile(positions, name, b, parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
	}
	at := func(p token.Pos) place {
		position := positions.Position(p)
		return place{position.Line, position.Column}
	}
	for _, declaration := range syntax.Decls {
		d, ok := declaration.(*ast.FuncDecl)
		if !ok || d.Body == nil || len(d.Body.List) == 0 {
			continue
		}
		all = append(all, &function{file: relative, name: nameOf(d), start: at(d.Pos()), end: at(d.End())})
	}
	return string(b), all, nil
}

// nameOf is a function's name, with its type in front when it is a method.
func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// firstLine is the first line of a block's code.
func firstLine(text string, b block) string {
	lines := strings.Split(text, "\n")
	for i := b.start.line; i <= b.end.line && i <= len(lines); i++ {
		line := lines[i-1]
		if i == b.end.line {
			line = line[:min(b.end.column-1, len(line))]
		}
		if i == b.start.line {
			line = line[min(b.start.column-1, len(line)):]
		}
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "{"))
		if line != "" && !strings.HasPrefix(line, "//") {
			return line
		}
	}
	return ""
}
