// Command apidoc writes one page for each API group from wire's version table.
// What a method does is taken from the comments of the contracts, packages host and
// node.
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
	contracts := flag.String("contracts", "", "folders of the packages with the contracts, with commas between them")
	out := flag.String("out", "", "folder of the pages")
	flag.Parse()
	if err := run(strings.Split(*contracts, ","), *out); err != nil {
		fmt.Fprintln(os.Stderr, "apidoc:", err)
		os.Exit(1)
	}
}

// run writes every page.
func run(contracts []string, out string) error {
	comments := map[string]string{}
	for _, folder := range contracts {
		if err := addMethodComments(comments, folder); err != nil {
			return err
		}
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

// addMethodComments adds the comments of the exported methods of a package's
// interfaces.
func addMethodComments(comments map[string]string, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok {
				for _, m := range i.Methods.List {
					if len(m.Names) == 1 && m.Names[0].IsExported() {
						comments[m.Names[0].Name] = strings.Join(strings.Fields(m.Doc.Text()), " ")
					}
				}
			}
			return true
		})
	}
	return nil
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
	writeMessages(&b, all)
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

// writeMessages lists what requests and responses are made of.
func writeMessages(b *bytes.Buffer, all []wire.Description) {
	written := map[string]bool{}
	for _, d := range all {
		for _, m := range d.Messages {
			if len(written) == 0 {
				b.WriteString("\n## Messages within requests and responses\n\n| message | fields |\n|---|---|\n")
			}
			if !written[m.Name] {
				fmt.Fprintf(b, "| `%s` | %s |\n", m.Name, cell(m.Fields, false))
			}
			written[m.Name] = true
		}
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
