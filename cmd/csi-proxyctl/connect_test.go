package main

import (
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// Without a csi-proxy every command fails with one line that says so.
func TestNoServerIsOneLine(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	for _, what := range []string{"disks", "volumes", "mounts", "mappings", "targets", "services", "versions"} {
		var out, errOut strings.Builder
		code := run(t.Context(), []string{"get", what, "--socket-dir", place.Dir}, environment{Stdout: &out, Stderr: &errOut, Open: openClient})
		text := errOut.String()
		if code != 1 || out.Len() != 0 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "unavailable") || len(text) > 1000 {
			t.Errorf("get %s: exit code %d, %q, %q", what, code, out.String(), text)
		}
	}
}
