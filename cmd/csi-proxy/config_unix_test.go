//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseConfigOffWindows(t *testing.T) {
	t.Parallel()
	got, err := parse("linux", "-sim-dir=/n", "-sim-drive=c=/srv/c", "-sim-drive=D:=/srv/d", "-socket-dir=/s", "-sim-control=/n/c.sock")
	if err != nil {
		t.Fatal(err)
	}
	want := onWindows(func(c *config) {
		c.Host, c.SimDir, c.SocketDir, c.SimControl = hostSim, "/n", "/s", "/n/c.sock"
		c.SimDrives = map[byte]string{'C': "/srv/c", 'D': "/srv/d"}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is said of paths of this system.
func TestParseConfigNamesPathsAndLimits(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"-sim-drive=C=x":                           {"-sim-drive", "absolute"},
		"-sim-drive=C=/x -sim-drive=C=/y":          {"-sim-drive", "twice"},
		"-socket-dir=/" + strings.Repeat("x", 200): {"-socket-dir", "shorter"},
	} {
		wantUsageError(t, args, want)
	}
}
