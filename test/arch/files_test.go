package arch_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// linesMax is the length beyond which a file holds more than one idea.
const linesMax = 400

// sourceFile is one Go file of the repository.
type sourceFile struct {
	path      string // from the top of the repository, with slashes
	syntax    *ast.File
	positions *token.FileSet
	lines     int
}

func (f *sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// isProduct reports whether the file is part of the programs. The conformance suite
// is: csi-proxyctl has it.
func (f *sourceFile) isProduct() bool {
	isTool := strings.HasPrefix(f.path, "test/") && !strings.HasPrefix(f.path, "test/conformance/") || strings.HasPrefix(f.path, "tools/")
	return !f.isTest() && !isTool
}

func (f *sourceFile) at(node ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.positions.Position(node.Pos()).Line)
}

// sources parses every Go file that nobody generated.
func sources(t *testing.T) []*sourceFile {
	t.Helper()
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var files []*sourceFile
	err = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != top && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata") {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		positions := token.NewFileSet()
		syntax, err := parser.ParseFile(positions, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(top, path)
		if err != nil || ast.IsGenerated(syntax) {
			return err
		}
		files = append(files, &sourceFile{
			path: filepath.ToSlash(relative), syntax: syntax, positions: positions,
			lines: positions.File(syntax.FileStart).LineCount(),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("only %d files were found below %s", len(files), top)
	}
	return files
}

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		if f.lines > linesMax+1 { // the last line ends with a newline
			t.Errorf("%s has %d lines", f.path, f.lines-1)
		}
	}
}

// Every exported name says what it is.
func TestExportedNamesHaveComments(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		if f.isTest() || f.syntax.Name.Name == "main" {
			continue
		}
		for _, declaration := range f.syntax.Decls {
			for _, name := range uncommented(declaration) {
				t.Errorf("%s: %s has no comment", f.at(name), name.Name)
			}
		}
	}
}

// uncommented are the exported names of a declaration that nothing is said of. In a
// group, a comment at the group is enough, and so is one that names several.
func uncommented(declaration ast.Decl) (names []*ast.Ident) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && !isMethodOfHidden(d) {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		said := d.Doc.Text()
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					names = append(names, s.Name)
				}
			case *ast.ValueSpec:
				said += s.Doc.Text()
				for _, name := range s.Names {
					if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil && !strings.Contains(said, name.Name) {
						names = append(names, name)
					}
				}
			}
		}
	}
	return names
}

// isMethodOfHidden reports whether a function is a method of a type that is not exported.
func isMethodOfHidden(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return false
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
			return !r.IsExported()
		default:
			return false
		}
	}
}

// forbidden are the selectors no file of the product uses: they start processes,
// or load code from where the caller says.
func forbidden() map[string]bool {
	return map[string]bool{
		"os.StartProcess": true, "syscall.StartProcess": true, "syscall.ForkExec": true, "syscall.Exec": true,
		"unix.Exec": true, "windows.CreateProcess": true, "windows.ShellExecute": true, "windows.CreateProcessAsUser": true,
		"windows.NewLazyDLL": true, "windows.LoadDLL": true, "windows.LoadLibrary": true,
	}
}

// Invariant 6, as far as the text of the program shows it: no call that starts a
// process, and no name of an interpreter.
func TestC095_Invariant6_NoCallStartsAProcess(t *testing.T) {
	t.Parallel()
	calls := forbidden()
	for _, f := range sources(t) {
		if !f.isProduct() {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && calls[pkg.Name+"."+n.Sel.Name] {
					t.Errorf("%s uses %s.%s", f.at(n), pkg.Name, n.Sel.Name)
				}
			case *ast.BasicLit:
				if text := bytes.ToLower([]byte(n.Value)); n.Kind == token.STRING && namesInterpreter(text) {
					t.Errorf("%s names an interpreter: %s", f.at(n), n.Value)
				}
			}
			return true
		})
	}
}

func namesInterpreter(text []byte) bool {
	for _, name := range []string{"powershell", "pwsh", "cmd.exe", "cmd /c", "cscript", "wscript", "mklink", "/bin/sh", "bash -c", "wmic", "diskpart"} {
		if bytes.Contains(text, []byte(name)) {
			return true
		}
	}
	return false
}

// What panics in the product ends every call of a node, and what exits below cmd
// ends the process without a word: neither stands in the product.
func TestNothingPanicsOrExits(t *testing.T) {
	t.Parallel()
	for _, f := range sources(t) {
		if !f.isProduct() {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch called := call.Fun.(type) {
			case *ast.Ident:
				if called.Name == "panic" && !mayPanic(f.path) {
					t.Errorf("%s panics", f.at(call))
				}
			case *ast.SelectorExpr:
				pkg, _ := called.X.(*ast.Ident)
				if pkg != nil && pkg.Name == "os" && called.Sel.Name == "Exit" && f.syntax.Name.Name != "main" {
					t.Errorf("%s ends the process", f.at(call))
				}
			}
			return true
		})
	}
}

// mayPanic lists the files that check at start, with nothing from a request at hand,
// that the program itself is put together rightly.
func mayPanic(path string) bool { return path == "winos/cim/table.go" }
