// Command layout compares what the product believes of Windows' structures and
// numbers with the mingw-w64 headers: where each member of a structure lies and
// how wide it is, how large structures are, and the value of every control code,
// flag and error number.
//
// The Go side is the very source of the product, read by the type checker for
// windows/amd64 and windows/arm64, so nothing of it is copied here. The C side is
// an object file that the cross compiler makes of the headers; it is read, never
// run. What no header declares rightly is declared in headers.go after its
// documentation, and listed as such.
//
// A structure or number that the product uses and this command does not know how
// to compare is a failure too.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// timeLimit bounds the whole comparison: two builds of the product's packages.
const timeLimit = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	err := run(ctx, os.Args[1:], os.Stdout)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("layout", flag.ContinueOnError)
	compiler := flags.String("cc", "x86_64-w64-mingw32-gcc", "the cross `compiler` of 64-bit Windows")
	list := flags.Bool("list", false, "only name the structures that were compared, one a line")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var all []comparison
	for _, arch := range []string{"amd64", "arm64"} {
		packages, err := load(ctx, arch)
		if err != nil {
			return err
		}
		found, err := comparisons(packages)
		if err != nil {
			return fmt.Errorf("windows/%s: %w", arch, err)
		}
		all = append(all, found...)
	}
	all = unique(all)
	values, err := ask(ctx, *compiler, all)
	if err != nil {
		return err
	}
	if differences := compare(all, values); len(differences) > 0 {
		return fmt.Errorf("the headers say otherwise:\n%s", strings.Join(differences, "\n"))
	}
	if *list {
		for _, name := range structures(all) {
			fmt.Fprintln(out, name)
		}
		return nil
	}
	fmt.Fprintf(out, "layout: %d numbers of %d structures and %d constants of the headers, for amd64 and arm64: equal\n",
		len(all), len(structures(all)), constants(all))
	return nil
}

// comparison is one number of the product and what it is in C.
type comparison struct {
	who        string // the Go name, or type and field
	value      string // as text, so that GUIDs are compared as numbers are
	expression string // C, of the headers; the symbol of a GUID
	structure  string // the structure it belongs to; empty for a constant
	guid       bool
}

// numberText is a number as it is compared and shown.
func numberText(value uint64) string { return fmt.Sprintf("%d (0x%X)", value, value) }

// unique drops what was found more than once: a constant is used in many places,
// and both architectures should agree.
func unique(all []comparison) []comparison {
	seen := map[comparison]bool{}
	return slices.DeleteFunc(all, func(c comparison) bool {
		before := seen[c]
		seen[c] = true
		return before
	})
}

// compare returns a line for each difference.
func compare(all []comparison, values map[string]string) []string {
	var differences []string
	for _, c := range all {
		if want := values[c.expression]; c.value != want {
			differences = append(differences, fmt.Sprintf("\t%s is %s, but %s is %s", c.who, c.value, c.expression, want))
		}
	}
	slices.Sort(differences)
	return slices.Compact(differences)
}

// structures names what was compared, each once, in order.
func structures(all []comparison) []string {
	var names []string
	for _, c := range all {
		if c.structure != "" {
			names = append(names, c.structure)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func constants(all []comparison) int {
	seen := map[string]bool{}
	for _, c := range all {
		if c.structure == "" {
			seen[c.expression] = true
		}
	}
	return len(seen)
}
