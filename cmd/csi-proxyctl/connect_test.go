package main

import (
	"runtime"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// Without a csi-proxy every command fails with one line that says so.
func TestNoServerIsOneLine(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	const before, after = "csi-proxyctl: no csi-proxy answers in ", ": unavailable; is it running, is --socket-dir right?\n"
	want := before + place.Dir + after
	if runtime.GOOS == "windows" {
		want = before + `\\.\pipe\` + place.Dir + after
	}
	for _, what := range []string{"get disks", "get volumes", "get mounts", "get mappings", "get targets", "get services", "get versions", "conformance --scratch=none"} {
		var out, errOut strings.Builder
		args := append(strings.Fields(what), "--socket-dir", place.Dir)
		code := run(t.Context(), args, environment{Stdout: &out, Stderr: &errOut, Open: openClient})
		if code != 1 || out.Len() != 0 || errOut.String() != want {
			t.Errorf("%s: exit code %d, %q, %q; want %q", what, code, out.String(), errOut.String(), want)
		}
	}
}

func TestAnUnknownFlagIsToldWhereTheFlagsAre(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--no-such":           "csi-proxyctl --help lists",
		"get disks --no-such": "csi-proxyctl get disks --help lists",
		"conformance -x":      "csi-proxyctl conformance --help lists",
	} {
		var out, errOut strings.Builder
		code := run(t.Context(), strings.Fields(args), environment{Stdout: &out, Stderr: &errOut, Open: openClient})
		if code == 0 || !strings.Contains(errOut.String(), want) {
			t.Errorf("%s: exit code %d, %q; want %q in it", args, code, errOut.String(), want)
		}
	}
}
