package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/cmd/internal/flagvalue"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// The kinds of node that can be served.
const (
	hostWindows = "windows" // the machine itself
	hostSim     = "sim"     // a simulated node in a folder
)

// Limits and defaults of the durations.
const (
	defaultGraceTime = 15 * time.Second
	maxGraceTime     = 10 * time.Minute
	minCallTime      = time.Second
	maxCallTime      = time.Hour
)

// Limits and default of the number of files of a log.
const (
	defaultLogFiles = 3
	maxLogFiles     = 100
)

// defaultKubeletPath is where kubelet keeps its data on Windows nodes.
const defaultKubeletPath = `C:\var\lib\kubelet`

// config is everything the command line says.
type config struct {
	KubeletPath    string   // Windows path; the first working folder
	WorkingDirs    []string // Windows paths; those beside kubelet's
	RequirePrivacy bool
	MetricsAddress string // host:port; empty means no metrics
	WindowsService bool

	Host       string // hostWindows or hostSim
	SimDir     string
	SimDrives  map[byte]string
	SimControl string // host:port or the path of a socket; empty means no control interface

	SocketDir   string     // off Windows: where the sockets go
	APIs        []wire.API // in the order of the table
	PipeAccess  []string   // SIDs
	GraceTime   time.Duration
	CallTime    time.Duration
	LogFiles    int // of one log, full ones included
	ShowVersion bool
}

// newFlagSet declares our own flags, which write into the config.
func newFlagSet(c *config, env environment) *flag.FlagSet {
	c.GraceTime, c.CallTime, c.SimDrives, c.LogFiles = defaultGraceTime, agent.DefaultCallTimeout, map[byte]string{}, defaultLogFiles
	defaultHost := hostSim
	if env.GOOS == "windows" {
		defaultHost = hostWindows
	}

	fs := flag.NewFlagSet("csi-proxy", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.KubeletPath, "kubelet-path", defaultKubeletPath, "kubelet's folder on the node; paths outside the working folders are refused")
	fs.Var(flagvalue.List{Items: &c.WorkingDirs}, "working-dir", "one more working folder; may be repeated")
	fs.BoolVar(&c.RequirePrivacy, "require-privacy", true, "demand encryption of SMB mappings; switch off only for servers that cannot encrypt")
	fs.StringVar(&c.MetricsAddress, "metrics-bind-address", "", "address to serve Prometheus metrics on, such as 127.0.0.1:9750; empty for none")
	fs.BoolVar(&c.WindowsService, "windows-service", false, "run under the Windows service control manager")

	fs.StringVar(&c.Host, "host", defaultHost, "node to serve: windows (this machine) or sim (a simulated node)")
	fs.StringVar(&c.SimDir, "sim-dir", "", "folder with the state of the simulated node; made when missing, and refused when it holds something else")
	fs.Var(driveValue(c.SimDrives), "sim-drive", "map a drive of the simulated node onto a folder, such as C=/srv/node; may be repeated")
	fs.StringVar(&c.SimControl, "sim-control", "", "where the simulated node is controlled: a loopback address such as 127.0.0.1:9751, or off Windows the path of a socket; empty for none")

	fs.StringVar(&c.SocketDir, "socket-dir", pipe.DefaultDir, "off Windows: folder for the sockets that stand for the pipes")
	fs.Var(apiValue{&c.APIs}, "api", "API versions to serve, such as disk/v1,volume/*; all when not given")
	fs.Var(flagvalue.List{Items: &c.PipeAccess, Commas: true}, "pipe-access", "SID that may use the pipes besides SYSTEM and Administrators; may be repeated")
	fs.Var(flagvalue.Duration{Value: &c.GraceTime, Min: 0, Max: maxGraceTime}, "grace-period", "how long calls in flight may go on after a stop")
	fs.Var(flagvalue.Duration{Value: &c.CallTime, Min: minCallTime, Max: maxCallTime}, "call-timeout", "longest time of one call, whatever deadline its caller set")
	fs.Var(countValue{&c.LogFiles, 1, maxLogFiles}, "log-file-max-count", "how many files of a log are kept, full ones (.1, .2 …) included")
	fs.BoolVar(&c.ShowVersion, "version", false, "print the version and exit")
	return fs
}

// parseConfig reads a command line made of our own flags and those of more. Its
// error is flag.ErrHelp, or an [exit.UsageError] that names flag and limit.
func parseConfig(args []string, env environment, more *flag.FlagSet) (*config, error) {
	c := &config{}
	fs := newFlagSet(c, env)
	more.VisitAll(func(f *flag.Flag) { fs.Var(f.Value, f.Name, f.Usage) })
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, exit.Usage(flagvalue.WithHelp(err, "csi-proxy -help"))
	}
	if c.ShowVersion {
		return c, nil // asks for nothing that the rest could be wrong for
	}
	if len(c.APIs) == 0 {
		c.APIs = wire.APIs()
	}
	if fs.NArg() > 0 {
		return nil, exit.Usage(fmt.Errorf("unexpected argument %q: every option starts with a dash", fs.Arg(0)))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := c.check(given, env); err != nil {
		return nil, exit.Usage(err)
	}
	return c, nil
}

// printUsage writes every flag with its default.
func printUsage(w io.Writer, env environment, more *flag.FlagSet) {
	fs := newFlagSet(&config{}, env)
	more.VisitAll(func(f *flag.Flag) { fs.Var(f.Value, f.Name, f.Usage) })
	fs.SetOutput(w)
	fmt.Fprintln(w, "csi-proxy serves the storage of a Windows node to CSI node plugins.\n\nFlags (one dash or two):")
	fs.PrintDefaults()
	fmt.Fprintln(w, "\nA word before the flags manages the Windows service instead; each has flags of its own (csi-proxy WORD -help):")
	all := verbs()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(w, "  %-10s %s\n", name, all[name].summary)
	}
}

var sidPattern = regexp.MustCompile(`^S-1-\d{1,15}(-\d{1,10}){1,15}$`)

// check says what is wrong with the values, naming the flag.
func (c *config) check(given map[string]bool, env environment) error {
	for _, rule := range []struct {
		flag string
		ok   bool
		want string
	}{
		{"host", c.Host == hostSim || c.Host == hostWindows, "must be windows or sim"},
		{"host", c.Host != hostWindows || env.GOOS == "windows", "windows works on Windows only; use sim"},
		{"windows-service", !c.WindowsService || env.GOOS == "windows", "works on Windows only"},
		{"socket-dir", env.GOOS != "windows" || !given["socket-dir"], "works off Windows only; Windows has pipes"},
		{"socket-dir", !given["socket-dir"] || filepath.IsAbs(c.SocketDir), "must be an absolute path"},
		{"sim-dir", c.Host != hostSim || c.SimDir != "", "is needed with -host=sim"},
		{"sim-dir", c.Host == hostSim || !given["sim-dir"], "works with -host=sim only"},
		{"sim-drive", c.Host == hostSim || !given["sim-drive"], "works with -host=sim only"},
		{"sim-control", c.Host == hostSim || !given["sim-control"], "works with -host=sim only"},
	} {
		if !rule.ok {
			return fmt.Errorf("-%s: %s", rule.flag, rule.want)
		}
	}
	return errors.Join(
		c.checkWorkingDirs(),
		c.checkSockets(env),
		flagvalue.CheckAddress("-metrics-bind-address", c.MetricsAddress),
		checkControlAddress("sim-control", c.SimControl),
		checkEach("pipe-access", c.PipeAccess, sidPattern.MatchString, "is no SID such as S-1-5-32-545"),
	)
}

// roots returns the folders of the node that callers may use, kubelet's first.
func (c *config) roots() []string { return append([]string{c.KubeletPath}, c.WorkingDirs...) }

// tasksFolder is the folder of the node tasks' own, where kubelet keeps those of
// plugins.
func (c *config) tasksFolder() string {
	return strings.TrimRight(c.KubeletPath, `\/`) + `\plugins\csi-windows`
}

// checkWorkingDirs asks the agent whether it would accept each folder.
func (c *config) checkWorkingDirs() error {
	flagName := "kubelet-path"
	for _, folder := range c.roots() {
		if _, err := agent.New(systemDriveOnly{}, agent.Policy{Roots: []string{folder}}); err != nil {
			return fmt.Errorf("-%s: %w", flagName, err)
		}
		flagName = "working-dir"
	}
	return nil
}

// checkSockets refuses a folder so deep that a socket's path does not fit.
func (c *config) checkSockets(env environment) error {
	if env.GOOS == "windows" {
		return nil
	}
	place := pipe.Place{Dir: c.SocketDir}
	for _, api := range c.APIs {
		if _, err := place.Address(api.Group, api.Version); err != nil {
			return fmt.Errorf("-socket-dir: %w", err)
		}
	}
	return nil
}

// systemDriveOnly is as much of an operating system as the agent needs to judge
// its working folders.
type systemDriveOnly struct{ agent.OS }

// SystemDrive returns the letter that most nodes use; the judgement does not depend on it.
func (systemDriveOnly) SystemDrive() byte { return 'C' }

// checkControlAddress accepts, besides, the path of a socket. Who controls the
// simulated node controls everything, so a host has to be a loopback one.
func checkControlAddress(flagName, address string) error {
	if filepath.IsAbs(address) {
		return nil
	}
	if err := flagvalue.CheckAddress("-"+flagName, address); err != nil || address == "" {
		return err
	}
	hostname, _, _ := net.SplitHostPort(address) // was split a moment ago
	if ip := net.ParseIP(hostname); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("-%s: host %q must be a loopback address such as 127.0.0.1", flagName, hostname)
	}
	return nil
}

// checkEach refuses the first value for which ok is false.
func checkEach(flagName string, values []string, ok func(string) bool, want string) error {
	for _, value := range values {
		if !ok(value) {
			return fmt.Errorf("-%s: %q %s", flagName, value, want)
		}
	}
	return nil
}
