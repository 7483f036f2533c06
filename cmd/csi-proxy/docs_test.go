package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestOperationsPageNamesEveryFlagAndMetric(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	newFlagSet(&config{}, environment{GOOS: "windows"}).VisitAll(func(f *flag.Flag) {
		if !bytes.Contains(page, []byte("| `-"+f.Name+"` |")) {
			t.Errorf("docs/operations.md does not describe -%s", f.Name)
		}
	})
	m := newMetrics()
	m.calls.WithLabelValues("", "", "", "")
	m.seconds.WithLabelValues("", "")
	for _, collector := range []prometheus.Collector{m.calls, m.seconds, m.inFlight, m.hung} {
		described := make(chan *prometheus.Desc, 1)
		collector.Describe(described)
		_, name, _ := strings.Cut((<-described).String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		if !bytes.Contains(page, []byte("| `"+name+"` |")) {
			t.Errorf("docs/operations.md does not describe %s", name)
		}
	}
}

func TestRunWithoutServing(t *testing.T) {
	t.Parallel()
	for args, test := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		"-version":            {0, "csi-proxy ", ""},
		"-help":               {0, "-kubelet-path", ""},
		"--log_file_max_size": {2, "", "log_file_max_size"},
		"-v=x":                {2, "", "-v"},
		"-no-such-flag":       {2, "", "no-such-flag"},
		"-host=mars":          {2, "", "-host: must be windows or sim"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(context.Background(), strings.Fields(args), environment{GOOS: "linux", Stdout: &stdout, Stderr: &stderr})
			if code != test.code || !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
			}
			if (stderr.Len() > 0) != (test.code != 0) {
				t.Errorf("exit code %d, but stderr %q", code, stderr.String())
			}
		})
	}
}
