package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// parse reads a command line as on goos, with no flags but our own.
func parse(goos string, args ...string) (*config, error) {
	return parseConfig(args, environment{GOOS: goos}, flag.NewFlagSet("", flag.ContinueOnError))
}

// onWindows is the configuration of a command line without flags.
func onWindows(change func(*config)) *config {
	c := &config{
		KubeletPath: defaultKubeletPath, RequirePrivacy: true, Host: hostWindows, SimDrives: map[byte]string{},
		SocketDir: pipe.DefaultDir, APIs: wire.APIs(), GraceTime: defaultGraceTime, CallTime: agent.DefaultCallTimeout, LogFiles: defaultLogFiles,
	}
	change(c)
	return c
}

func TestParseConfigAcceptsWhatNodeImagesPass(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args string
		want *config
	}{
		"nothing":           {"", onWindows(func(*config) {})},
		"one dash":          {`-kubelet-path=D:\k`, onWindows(func(c *config) { c.KubeletPath = `D:\k` })},
		"two dashes, space": {`--kubelet-path D:\k --windows-service`, onWindows(func(c *config) { c.KubeletPath, c.WindowsService = `D:\k`, true })},
		"working folders": {`-working-dir=C:\a -working-dir C:\b`, onWindows(func(c *config) {
			c.WorkingDirs = []string{`C:\a`, `C:\b`}
		})},
		"working folders first": {`-working-dir=C:\a -kubelet-path=D:\k -working-dir C:\b`, onWindows(func(c *config) {
			c.KubeletPath, c.WorkingDirs = `D:\k`, []string{`C:\a`, `C:\b`}
		})},
		"kubelet's usual folder beside another": {`-working-dir=C:\var\lib\kubelet -kubelet-path=D:\k`, onWindows(func(c *config) {
			c.KubeletPath, c.WorkingDirs = `D:\k`, []string{defaultKubeletPath}
		})},
		"privacy off (C044)": {`-require-privacy=false`, onWindows(func(c *config) { c.RequirePrivacy = false })},
		"privacy on (C044)":  {`-require-privacy`, onWindows(func(*config) {})},
		"metrics":            {`-metrics-bind-address=:9750`, onWindows(func(c *config) { c.MetricsAddress = ":9750" })},
		"one API and a group": {`-api=disk/v1,smb/*`, onWindows(func(c *config) {
			c.APIs = []wire.API{{Group: "disk", Version: "v1"}, {Group: "smb", Version: "v1alpha1"}, {Group: "smb", Version: "v1beta1"},
				{Group: "smb", Version: "v1beta2"}, {Group: "smb", Version: "v1"}}
		})},
		"an SID twice (C060)": {`-pipe-access=S-1-5-32-545 -pipe-access=S-1-5-32-545`, onWindows(func(c *config) { c.PipeAccess = []string{"S-1-5-32-545"} })},
		"log files":           {`-log-file-max-count=1`, onWindows(func(c *config) { c.LogFiles = 1 })},
		"times":               {`-grace-period=0s -call-timeout=1h`, onWindows(func(c *config) { c.GraceTime, c.CallTime = 0, time.Hour })},
		"simulated node on Windows": {`-host=sim -sim-dir=C:\node -sim-control=[::1]:9000`, onWindows(func(c *config) {
			c.Host, c.SimDir, c.SimControl = hostSim, `C:\node`, "[::1]:9000"
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse("windows", strings.Fields(test.args)...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseConfigNamesFlagAndLimit(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"-grace-period=11m":            {"-grace-period", "0s to 10m"},
		"-grace-period=-1s":            {"-grace-period", "0s to 10m"},
		"-grace-period=soon":           {"-grace-period", "duration"},
		"-call-timeout=0s":             {"-call-timeout", "1s to 1h"},
		"-log-file-max-count=0":        {"-log-file-max-count", "1 to 100"},
		"-log-file-max-count=x":        {"-log-file-max-count", "1 to 100"},
		"-kubelet-path=":               {"-kubelet-path"},
		"-kubelet-path=relative":       {"-kubelet-path"},
		`-kubelet-path=C:\a\..\b`:      {"-kubelet-path"},
		`-working-dir=\\server\share`:  {"-working-dir"},
		"-working-dir=":                {"-working-dir", "empty"},
		"-require-privacy=perhaps":     {"-require-privacy"},
		"-metrics-bind-address=9750":   {"-metrics-bind-address", "HOST:PORT"},
		"-metrics-bind-address=:70000": {"-metrics-bind-address", "65535"},
		"-host=mac":                    {"-host", "windows or sim"},
		"-host=windows":                {"-host", "Windows only"},
		"-windows-service -sim-dir=/n": {"-windows-service", "Windows only"},
		"-sim-drive=CC=/x":             {"-sim-drive", "A to Z"},
		"-sim-control=control.sock":    {"-sim-control", "HOST:PORT"},
		"-sim-control=0.0.0.0:1":       {"-sim-control", "loopback"},
		"-sim-control=example:1":       {"-sim-control", "loopback"},
		"-socket-dir=here":             {"-socket-dir", "absolute"},
		"-api=disk/v9":                 {"-api", "disk/v9", "groups are disk"},
		"-api=":                        {"-api"},
		"-pipe-access=Everyone":        {"-pipe-access", "Everyone"},
		"extra":                        {"extra"},
		"-no-such-flag":                {"unknown flag -no-such-flag", "csi-proxy -help"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			wantUsageError(t, args, want)
		})
	}
}

// wantUsageError checks that a command line is refused, and what is said of it.
func wantUsageError(t *testing.T, args string, want []string) {
	t.Helper()
	_, err := parse("linux", append([]string{"-sim-dir=/n"}, strings.Fields(args)...)...)
	var usage *exit.UsageError
	if !errors.As(err, &usage) || exit.Code(err) != 2 {
		t.Fatalf("%s: error %v (exit code %d), want a usage error", args, err, exit.Code(err))
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: error %q does not say %q", args, err, part)
		}
	}
}

func TestParseConfigWindowsHasNoSockets(t *testing.T) {
	t.Parallel()
	if _, err := parse("windows", `-socket-dir=C:\x`); err == nil || !strings.Contains(err.Error(), "-socket-dir") {
		t.Errorf("error %v, want one that names -socket-dir", err)
	}
}

func TestParseConfigSimulatedNodeNeedsAFolder(t *testing.T) {
	t.Parallel()
	if _, err := parse("linux"); err == nil || !strings.Contains(err.Error(), "-sim-dir") {
		t.Errorf("error %v, want one that names -sim-dir", err)
	}
}

func TestParseConfigHelp(t *testing.T) {
	t.Parallel()
	if _, err := parse("linux", "--help"); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error %v, want flag.ErrHelp", err)
	}
}
