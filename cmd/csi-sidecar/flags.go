package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

// flags declares the flags of a set: those of a component under the prefix of
// its name, or under their own names when the program is called as upstream's.
type flags struct {
	*flag.FlagSet
	prefix  string
	ignored *[]string
	// names are those of the flags that write to a variable, by its address.
	names map[any][]string
	// spellings are the second names of flags, with the first.
	spellings map[string]string
}

func newFlags(name string) *flags {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return &flags{FlagSet: set, ignored: &[]string{}, names: map[any][]string{}, spellings: map[string]string{}}
}

// of gives the same set for the flags of a component.
func (f *flags) of(prefix string) *flags {
	own := *f
	own.prefix = prefix
	return &own
}

// note remembers which flag writes to a variable, and gives the flag's name.
func (f *flags) note(value any, name string) string {
	name = f.prefix + name
	f.names[value] = append(f.names[value], name)
	return name
}

func (f *flags) text(value *string, name, usage string) {
	f.StringVar(value, f.note(value, name), *value, usage)
}

func (f *flags) yes(value *bool, name, usage string) {
	f.BoolVar(value, f.note(value, name), *value, usage)
}

// no declares a switch that is on unless the setting says otherwise.
func (f *flags) no(value *bool, name, usage string) {
	f.Var((*inverse)(value), f.note(value, name), usage+" (true)")
}

func (f *flags) number(value *int, name, usage string) {
	f.IntVar(value, f.note(value, name), *value, usage)
}

func (f *flags) time(value *time.Duration, name, usage string) {
	f.DurationVar(value, f.note(value, name), *value, usage)
}

// gates declares feature gates: "A=true,B=false".
func (f *flags) gates(value *map[string]bool, name, usage string) {
	if *value == nil {
		*value = map[string]bool{}
	}
	f.Var(gateValue(*value), f.prefix+name, usage)
}

// ignore takes flags of upstream's that mean nothing here, so that manifests
// that give them still work. What was given is logged once.
func (f *flags) ignore(names ...string) {
	for _, name := range names {
		f.ignoreOne(name, false)
	}
}

// ignoreSwitches takes flags in the same way that may stand without a value.
func (f *flags) ignoreSwitches(names ...string) {
	for _, name := range names {
		f.ignoreOne(name, true)
	}
}

func (f *flags) ignoreOne(name string, isSwitch bool) {
	if f.Lookup(f.prefix+name) == nil {
		f.Var(&ignoredValue{name: f.prefix + name, isSwitch: isSwitch, given: f.ignored}, f.prefix+name, "accepted for upstream's sake, without effect")
	}
}

// logFlags declares klog's flags. Those of files are without effect: the log
// goes to the standard error stream, and klog's own files are open to ordinary
// users of a Windows node (CVE-2024-5321).
func (f *flags) logFlags() {
	all := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(all)
	all.VisitAll(func(one *flag.Flag) {
		if slices.Contains([]string{"v", "vmodule", "add_dir_header", "skip_headers", "log_backtrace_at"}, one.Name) {
			f.Var(one.Value, one.Name, one.Usage)
			return
		}
		switchValue, ok := one.Value.(interface{ IsBoolFlag() bool })
		f.ignoreOne(one.Name, ok && switchValue.IsBoolFlag())
	})
	f.ignore("logging-format", "log-flush-frequency", "log-json-info-buffer-size", "log-text-info-buffer-size")
	f.ignoreSwitches("log-json-split-stream", "log-text-split-stream")
}

// inverse is a switch whose setting is its opposite.
type inverse bool

// String implements flag.Value.
func (v *inverse) String() string { return strconv.FormatBool(v == nil || !bool(*v)) }

// IsBoolFlag lets the flag stand without a value.
func (v *inverse) IsBoolFlag() bool { return true }

// Set implements flag.Value.
func (v *inverse) Set(text string) error {
	on, err := strconv.ParseBool(text)
	*v = inverse(!on)
	return err
}

// gateValue is a flag of feature gates.
type gateValue map[string]bool

// String implements flag.Value.
func (g gateValue) String() string {
	var parts []string
	for name, on := range g {
		parts = append(parts, name+"="+strconv.FormatBool(on))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// Set implements flag.Value.
func (g gateValue) Set(text string) error {
	for _, part := range strings.Split(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if !found || err != nil {
			return fmt.Errorf("%q is not NAME=true or NAME=false", part)
		}
		g[strings.TrimSpace(name)] = on
	}
	return nil
}

// ignoredValue takes any value.
type ignoredValue struct {
	name     string
	isSwitch bool
	given    *[]string
}

// String implements flag.Value.
func (v *ignoredValue) String() string { return "" }

// IsBoolFlag reports whether the flag may stand without a value.
func (v *ignoredValue) IsBoolFlag() bool { return v.isSwitch }

// Set implements flag.Value.
func (v *ignoredValue) Set(string) error {
	*v.given = append(*v.given, "--"+v.name)
	return nil
}
