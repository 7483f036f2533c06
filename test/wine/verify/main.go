// Command verify measures which functions of the product's files for Windows are
// executed under Wine, and by which tests, and keeps docs/windows-verification.md.
//
//	verify [-check] [-keep] [-only LANE] [-linux PROFILE]
//
// It builds the programs and the test binaries with counters, runs every test of
// both Wine lanes (test/wine/run) in a process of its own, and writes the document.
// With -check the document is compared instead. It fails when less is executed than
// the project promises, when a function that is not wholly executed has no reason in
// reasons.txt, and when a reason there has become wrong.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// promisedPercent is how much of the code for Windows is executed under Wine at least.
const promisedPercent = 90

var (
	//go:embed introduction.md
	introduction string
	//go:embed reasons.txt
	reasonsText string
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "exec" {
		return execute(ctx, args[1:], out)
	}
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	check := flags.Bool("check", false, "compare the document instead of writing it")
	keep := flags.Bool("keep", false, "run nothing: use the profiles of the last run")
	only := flags.String("only", "", "run this `lane` only; the others are read as the last run left them")
	linux := flags.String("linux", "", "a coverage `profile` of the tests on Linux, for the figure of the whole module")
	if err := flags.Parse(args); err != nil {
		return err
	}
	top, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	r := &runner{top: top, out: filepath.Join(top, "bin", "verify"), log: out}
	var failures error
	if !*keep {
		failures = r.run(ctx, *only)
	}
	runs, err := readRuns(r.out)
	if err != nil {
		return errors.Join(failures, err)
	}
	return errors.Join(failures, report(ctx, top, runs, *linux, *check, out))
}

// report writes or checks the document, and prints the figures.
func report(ctx context.Context, top string, runs []*testRun, linux string, check bool, out io.Writer) error {
	all, texts, err := functions(top)
	if err != nil {
		return err
	}
	reasons, err := parseReasons(reasonsText)
	if err != nil {
		return err
	}
	results, whole := evaluate(all, texts, runs)
	if err := figures(out, results, whole, linux); err != nil {
		return err
	}
	problems := checkReasons(results, reasons)
	executed, statements := 0, 0
	for _, r := range results {
		executed, statements = executed+r.executed, statements+r.statements
	}
	if 100*executed < promisedPercent*statements {
		problems = append(problems, fmt.Sprintf("%d of %d statements are executed: less than %d %%", executed, statements, promisedPercent))
	}
	structures, err := comparedStructures(ctx, top)
	if err != nil {
		return err
	}
	path := filepath.Join(top, "docs", "windows-verification.md")
	if text := document(strings.Replace(introduction, "{structures}", structures, 1), results, reasons); check {
		if present, err := readFile(path); err != nil {
			return err
		} else if difference := firstDifference(string(present), text); difference != "" {
			problems = append(problems, "docs/windows-verification.md is not what the tests say; make verify writes it: "+difference)
		}
	} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d problems:\n%s", len(problems), strings.Join(problems, "\n"))
	}
	return nil
}

// comparedStructures asks test/layout what it compares with the headers.
func comparedStructures(ctx context.Context, top string) (string, error) {
	command := exec.CommandContext(ctx, "go", "run", "./test/layout", "-list")
	command.Dir, command.Stderr = top, os.Stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("test/layout: %w", err)
	}
	return wrapped(strings.Fields(string(output))), nil
}

// wrapped lists names in lines of the document's width.
func wrapped(names []string) string {
	const width = 118
	var b strings.Builder
	column := 0
	for i, name := range names {
		name = "`" + name + "`"
		if i < len(names)-1 {
			name += ","
		}
		switch {
		case column == 0:
		case column+1+len(name) > width:
			b.WriteString("\n")
			column = 0
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(name)
		column += len(name)
	}
	b.WriteString(".")
	return b.String()
}

// figures prints how much is executed, by file and in all.
func figures(out io.Writer, results []*result, whole profile, linux string) error {
	var files []string
	executed, statements := map[string]int{}, map[string]int{}
	for _, r := range results {
		if !slices.Contains(files, r.file) {
			files = append(files, r.file)
		}
		executed[r.file] += r.executed
		statements[r.file] += r.statements
		executed[""] += r.executed
		statements[""] += r.statements
	}
	for _, file := range files {
		fmt.Fprintf(out, "%-45s %4d of %4d statements\n", file, executed[file], statements[file])
	}
	fmt.Fprintf(out, "files for Windows: %s under Wine\n", share(executed[""], statements[""]))
	if linux == "" {
		return nil
	}
	p, err := readProfile(linux)
	if err != nil {
		return err
	}
	p.add(whole)
	product := p.only(isProduct)
	fmt.Fprintf(out, "the whole product: %s, on Linux or under Wine\n", share(product.count()))
	return nil
}

func share(executed, statements int) string {
	if statements == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%d of %d statements executed (%.1f %%)", executed, statements, 100*float64(executed)/float64(statements))
}

// isProduct reports whether a file is part of the programs and written by hand.
func isProduct(file string) bool {
	name, ok := strings.CutPrefix(file, module+"/")
	room, _, _ := strings.Cut(name, "/")
	return ok && slices.Contains(rooms(), room) && !strings.HasSuffix(file, ".pb.go")
}

// firstDifference describes where two texts part; empty when they are equal.
func firstDifference(a, b string) string {
	if a == b {
		return ""
	}
	ours, theirs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(ours), len(theirs)) {
		if ours[i] != theirs[i] {
			return fmt.Sprintf("line %d is %q and should be %q", i+1, ours[i], theirs[i])
		}
	}
	return "one is longer"
}

func readFile(path string) ([]byte, error) { return os.ReadFile(path) }
