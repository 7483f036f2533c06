// Command apidoc writes one page for each API group from wire's version table.
// What a method does is taken from the comments of package host.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

func main() {
	hostFolder := flag.String("host", "", "folder of package host")
	out := flag.String("out", "", "folder of the pages")
	flag.Parse()
	if err := run(*hostFolder, *out); err != nil {
		fmt.Fprintln(os.Stderr, "apidoc:", err)
		os.Exit(1)
	}
}

// run writes every page.
func run(hostFolder, out string) error {
	comments, err := methodComments(hostFolder)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, group := range wire.Groups() {
		if err := os.WriteFile(filepath.Join(out, group+".md"), page(group, comments), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// methodComments returns the comments of the interface methods of a package.
func methodComments(folder string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	comments := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok {
				for _, m := range i.Methods.List {
					if len(m.Names) == 1 {
						comments[m.Names[0].Name] = strings.Join(strings.Fields(m.Doc.Text()), " ")
					}
				}
			}
			return true
		})
	}
	return comments, nil
}

// page is the document of a group.
func page(group string, comments map[string]string) []byte {
	var all []wire.Description
	for _, d := range wire.Describe() {
		if d.API.Group == group {
			all = append(all, d)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- Made from the version table by wire/internal/apidoc; do not edit. -->\n\n# API group %s\n\n", group)
	writeVersions(&b, all)
	writeMethods(&b, all, comments)
	return b.Bytes()
}

// writeVersions lists the pipes of the group.
func writeVersions(b *bytes.Buffer, all []wire.Description) {
	b.WriteString("| version | pipe | methods |\n|---|---|---|\n")
	for i := 0; i < len(all); {
		first := i
		for i < len(all) && all[i].API == all[first].API {
			i++
		}
		api := all[first].API
		fmt.Fprintf(b, "| %s | `\\\\.\\pipe\\%s` | %d |\n", api.Version, pipe.Name(api.Group, api.Version), i-first)
	}
	b.WriteString("\nOff Windows a pipe is the socket of the same name with `.sock` at its end.\n")
}

// writeMethods describes each operation and the forms it has in the versions.
func writeMethods(b *bytes.Buffer, all []wire.Description, comments map[string]string) {
	for _, op := range operations(all) {
		fmt.Fprintf(b, "\n## %s\n\n", op)
		if text := comments[op]; text != "" {
			fmt.Fprintf(b, "%s\n\n", text)
		}
		b.WriteString("| method | request | response |\n|---|---|---|\n")
		for _, d := range all {
			if d.Op == op {
				fmt.Fprintf(b, "| `%s` | %s | %s |\n", d.Path, cell(d.Request, d.OldRequest), cell(d.Response, d.OldResponse))
			}
		}
	}
	if slices.ContainsFunc(all, func(d wire.Description) bool { return d.OldRequest || d.OldResponse }) {
		b.WriteString("\n(†) other bytes than the newest version's; the server translates.\n")
	}
}

// operations returns the canonical names, the newest version's first and in its order.
func operations(all []wire.Description) []string {
	var ops []string
	for _, newest := range []bool{true, false} {
		for _, d := range all {
			if (d.API == all[len(all)-1].API) == newest && !slices.Contains(ops, d.Op) {
				ops = append(ops, d.Op)
			}
		}
	}
	return ops
}

// cell prints the fields of a message.
func cell(fields []string, old bool) string {
	text := "(empty)"
	if len(fields) > 0 {
		text = "`" + strings.Join(fields, "`; `") + "`"
	}
	if old {
		text += " †"
	}
	return text
}
