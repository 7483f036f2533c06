package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/cmd/internal/flagvalue"
)

// again declares another spelling of the flag that writes to a variable. What it
// says is carried over by join.
func (f *flags) again(value any, name string) {
	first := f.names[value][0]
	name = f.note(value, name)
	f.spellings[name] = first
	usage := "the same as --" + first
	switch value.(type) {
	case *string:
		f.String(name, "", usage)
	case *time.Duration:
		f.Duration(name, 0, usage)
	}
}

// join carries what second spellings say over to the first. Two that contradict
// each other are refused: whichever won, the other one's author would be surprised.
func (f *flags) join() error {
	for _, name := range slices.Sorted(maps.Keys(f.spellings)) {
		second, first := f.Lookup(name), f.Lookup(f.spellings[name])
		if !f.isGiven(name) {
			continue
		}
		if f.isGiven(first.Name) && first.Value.String() != second.Value.String() {
			return fmt.Errorf("--%s=%s and --%s=%s contradict each other: both are the same setting", first.Name, first.Value, name, second.Value)
		}
		if err := first.Value.Set(second.Value.String()); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	return nil
}

// isGiven reports whether a flag is on the command line.
func (f *flags) isGiven(name string) (given bool) {
	f.Visit(func(one *flag.Flag) { given = given || one.Name == name })
	return given
}

// nameOf is the flag that wrote to a variable, or that may; empty for none.
func (f *flags) nameOf(value any) string {
	names := f.names[value]
	for _, name := range names {
		if f.isGiven(name) {
			return "--" + name
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "--" + names[0]
}

// unknown says of a flag that does not exist which ones do: those of components
// that are called the same but for the prefix, and where all are listed.
func (f *flags) unknown(err error, help string) error {
	name, ok := flagvalue.Unknown(err)
	if !ok {
		return err
	}
	var similar []string
	f.VisitAll(func(one *flag.Flag) {
		for _, prefix := range prefixes() {
			if one.Name == prefix+name || name == prefix+one.Name {
				similar = append(similar, "--"+one.Name)
			}
		}
	})
	hint := ""
	if len(similar) > 0 {
		hint = "; there are " + strings.Join(similar, ", ")
	}
	return errors.New("unknown flag --" + name + hint + "; " + help + " lists the flags")
}
