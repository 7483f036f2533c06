package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/host"
)

var update = flag.Bool("update", false, "write the golden files anew")

// ctl runs the program against a node.
func ctl(n *fakeNode, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, environment{
		Stdout: &out, Stderr: &errs,
		Open: func(string) (node, error) { return n, nil },
	})
	return code, out.String(), errs.String()
}

func TestGetPrintsGoldenTables(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"disks", "volumes", "mounts", "mappings", "targets", "services", "versions"} {
		for kind, n := range map[string]*fakeNode{"own": {}, "foreign": {foreign: true}} {
			for _, form := range []string{formTable, formJSON} {
				t.Run(what+"/"+kind+"/"+form, func(t *testing.T) {
					t.Parallel()
					n := *n
					code, stdout, stderr := ctl(&n, "get", what, "-o", form)
					if !n.closed {
						t.Error("the connection was not closed")
					}
					golden(t, what+"-"+kind+"."+form, stdout+stderr)
					if wantFailure := kind == "foreign" && (what == "mounts" || what == "mappings"); (code != 0) != wantFailure {
						t.Errorf("exit code %d", code)
					}
				})
			}
		}
	}
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestGetFailsReadably(t *testing.T) {
	t.Parallel()
	down := &host.Error{Op: "ListDisks", Kind: host.KindUnavailable}
	for args, test := range map[string]struct {
		node *fakeNode
		want string
	}{
		"get disks":               {&fakeNode{failure: down}, "csi-proxyctl: ListDisks: unavailable\n"},
		"get disks extra":         {&fakeNode{}, "extra"},
		"get disks -o yaml":       {&fakeNode{}, `--output: "yaml" must be table or json`},
		"get disks --timeout=-1s": {&fakeNode{}, "--timeout: -1s must be more than 0"},
		"get tapes":               {&fakeNode{}, "tapes"},
		"get services none":       {&fakeNode{}, "service none: not found"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := ctl(test.node, strings.Fields(args)...)
			if code != 1 || stdout != "" || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want 1 and %q", code, stdout, stderr, test.want)
			}
		})
	}
}

func TestSizeText(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1 << 30: "1.0 GiB", 1 << 62: "4.0 EiB", 10<<30 + 512<<20: "10.5 GiB"} {
		if got := sizeText(bytes); got != want {
			t.Errorf("sizeText(%d) = %q, want %q", bytes, got, want)
		}
	}
}
