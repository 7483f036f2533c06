package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/csi-windows/csi-windows"

// rooms are the folders that are looked through.
func rooms() []string {
	return []string{"winos", "sim", "wire", "client", "cmd", "test/conformance/vhdx"}
}

// source is one package of the product as the compiler sees it for Windows.
type source struct {
	name      string // the import path below the module
	files     []*ast.File
	positions *token.FileSet
	types     *types.Package
	info      *types.Info
	sizes     types.Sizes
}

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Export     string
}

// load type-checks the packages of the product that touch Windows.
func load(ctx context.Context, arch string) ([]*source, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export"}
	for _, room := range rooms() {
		args = append(args, module+"/"+room+"/...")
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Env = append(os.Environ(), "GOOS=windows", "GOARCH="+arch, "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for windows/%s: %w", arch, err)
	}
	packages, exports := []listed{}, map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if touchesWindows(p) {
			packages = append(packages, p)
		}
	}
	sources := make([]*source, 0, len(packages))
	for _, p := range packages {
		s, err := check(p, exports, types.SizesFor("gc", arch))
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// touchesWindows picks the packages of the module that have files for Windows
// alone, and those that lay out raw bytes.
func touchesWindows(p listed) bool {
	name, ok := strings.CutPrefix(p.ImportPath, module+"/")
	if !ok {
		return false
	}
	return name == "winos" || name == "winos/layout" || slices.ContainsFunc(p.GoFiles, isWindowsFile)
}

func isWindowsFile(name string) bool { return strings.HasSuffix(name, "_windows.go") }

func check(p listed, exports map[string]string, sizes types.Sizes) (*source, error) {
	s := &source{
		name: strings.TrimPrefix(p.ImportPath, module+"/"), positions: token.NewFileSet(), sizes: sizes,
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Instances: map[*ast.Ident]types.Instance{},
		},
	}
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(s.positions, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, file)
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(s.positions, "gc", lookup), Sizes: sizes}
	var err error
	s.types, err = config.Check(p.ImportPath, s.positions, s.files, s.info)
	return s, err
}

// isWindows reports whether a file of the package is for Windows alone.
func (s *source) isWindows(file *ast.File) bool {
	return isWindowsFile(s.positions.Position(file.FileStart).Filename)
}

// declared names what a node of a file declares: as it is at the top of the file,
// behind the function's name inside of one.
func declared(file *ast.File, ident *ast.Ident) string {
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Pos() <= ident.Pos() && ident.Pos() < f.End() {
			return f.Name.Name + "." + ident.Name
		}
	}
	return ident.Name
}
