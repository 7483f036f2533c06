package main

import (
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sidecar"
)

// tableOf are the flags in the tables below a heading of docs/csi-sidecar.md,
// and whether the page says that they have no effect.
func tableOf(t *testing.T, heading string) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/csi-sidecar.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n### "+heading+"\n")
	if !found {
		t.Fatalf("the page has no heading %q", heading)
	}
	if i := strings.Index(text, "\n#"); i >= 0 {
		text = text[:i]
	}
	all := map[string]bool{}
	name := regexp.MustCompile("`--?([a-zA-Z_-]+)`")
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, match := range name.FindAllStringSubmatch(cells[1], -1) {
			if _, twice := all[match[1]]; twice {
				t.Errorf("%s: --%s is there twice", heading, match[1])
			}
			all[match[1]] = strings.HasPrefix(strings.TrimSpace(cells[len(cells)-2]), "no effect")
		}
	}
	return all
}

// declared are the flags of a set, and whether they have no effect, without a
// component's prefix.
func declared(f *flags, prefix string) map[string]bool {
	all := map[string]bool{}
	f.VisitAll(func(one *flag.Flag) {
		_, ignored := one.Value.(*ignoredValue)
		all[strings.TrimPrefix(one.Name, prefix)] = ignored
	})
	return all
}

// What a flag does is on one page, and nothing else is: every flag of the
// program is in the table of its component, and every one of a table is a flag.
func TestThePageHasEveryFlag(t *testing.T) {
	headings := map[string]string{
		sidecar.Registrar: "Registrar", sidecar.LivenessProbe: "Liveness probe", sidecar.DriverObject: "CSIDriver object",
		sidecar.Provisioner: "Provisioner", sidecar.Attacher: "Attacher", sidecar.Resizer: "Resizer", sidecar.Snapshotter: "Snapshotter",
	}
	for _, component := range components() {
		own, joined := newFlags("own"), newFlags("joined")
		declareComponent(own, component, &settings{})
		declareComponent(joined.of(prefixes()[component]), component, &settings{})
		want := declared(own, "")
		maps.Copy(want, declared(joined, prefixes()[component]))
		compareFlags(t, headings[component], want)
	}
	common := newFlags("common")
	declareCommon(common, &settings{})
	want := declared(common, "")
	want["controllers"] = false
	compareFlags(t, "All components", want)
	logs := newFlags("logs")
	logs.logFlags()
	compareFlags(t, "Log", declared(logs, ""))
}

func compareFlags(t *testing.T, heading string, want map[string]bool) {
	t.Helper()
	got := tableOf(t, heading)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		ignored, ok := got[name]
		switch {
		case !ok:
			t.Errorf("%s: --%s is not on the page", heading, name)
		case ignored != want[name]:
			t.Errorf("%s: --%s: the page says without effect %v, the program %v", heading, name, ignored, want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: --%s is on the page and is no flag", heading, name)
		}
	}
}

// The prefixes the page names are the program's.
func TestThePageHasEveryPrefix(t *testing.T) {
	page, err := os.ReadFile("../../docs/csi-sidecar.md")
	if err != nil {
		t.Fatal(err)
	}
	for component, prefix := range prefixes() {
		if !strings.Contains(string(page), "| `"+component+"` | `"+prefix+"` |") {
			t.Errorf("the page does not say that the flags of %s begin with %s", component, prefix)
		}
	}
	for name := range programs() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not name the program %s", name)
		}
	}
}
