package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/cmd/internal/flagvalue"
	"github.com/csi-windows/csi-windows/cmd/internal/sandbox"
	"github.com/csi-windows/csi-windows/cmd/internal/version"
	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim/cloud"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// What the driver serves.
const (
	modeController = "controller"
	modeNode       = "node"
	modeAll        = "all"
)

// How the node's storage is reached.
const (
	hostAuto  = "auto"
	hostProxy = "proxy" // over the pipes of csi-proxy
	hostLocal = "local" // in process
)

// Who carries out the node tasks when the host is csi-proxy.
const (
	tasksAuto   = "auto"
	tasksProxy  = "proxy"  // csi-proxy, one round trip a task
	tasksDriver = "driver" // the driver, over the primitives of any csi-proxy
)

// Limits and defaults.
const (
	defaultEndpoint    = "unix:/csi/csi.sock"
	defaultKubeletPath = `C:\var\lib\kubelet`
	defaultCallTime    = 2 * time.Minute
	defaultGraceTime   = 15 * time.Second
	maxGraceTime       = 10 * time.Minute
	minCallTime        = time.Second
	maxCallTime        = time.Hour
	nodeIDBytesMax     = 256 // source: CSI, NodeGetInfoResponse.node_id
)

// config is everything the command line says.
type config struct {
	Mode           string
	Driver         string
	DriverName     string
	Endpoint       string
	NodeID         string
	MetricsAddress string // host:port; empty means no metrics
	CallTime       time.Duration
	GraceTime      time.Duration
	ShowVersion    bool

	Host           string
	NodeTasks      string
	NodeFolder     string   // Windows path
	SocketDir      string   // off Windows: where the sockets are
	KubeletPath    string   // Windows path, of hostLocal
	WorkingDirs    []string // Windows paths, of hostLocal
	RequirePrivacy bool     // of hostLocal
	SimDir         string

	Cloud cloudConfig
	SMB   smbConfig
	ISCSI iscsiConfig
}

// newFlagSet declares our own flags, which write into the config.
func newFlagSet(c *config) *flag.FlagSet {
	c.CallTime, c.GraceTime = defaultCallTime, defaultGraceTime
	fs := flag.NewFlagSet("csi-driver", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	names := strings.Join(slices.Sorted(maps.Keys(backends())), ", ")
	fs.StringVar(&c.Mode, "mode", modeAll, "what to serve: controller, node or all")
	fs.StringVar(&c.Driver, "driver", "", "the backend: "+names)
	fs.StringVar(&c.DriverName, "driver-name", "", "name of the driver in Kubernetes; that of the backend when empty")
	fs.StringVar(&c.Endpoint, "endpoint", defaultEndpoint, "where to listen: unix:PATH, tcp://HOST:PORT or, on Windows, npipe:NAME")
	fs.StringVar(&c.NodeID, "node-id", "", "name of this node to the backend, usually that of its Node object; needed but for -mode=controller")
	fs.StringVar(&c.MetricsAddress, "metrics-bind-address", "", "address to serve Prometheus metrics on, such as 127.0.0.1:9752; empty for none")
	fs.Var(flagvalue.Duration{Value: &c.CallTime, Min: minCallTime, Max: maxCallTime}, "call-timeout", "longest time of calls that come without a deadline, and of a task on the node")
	fs.Var(flagvalue.Duration{Value: &c.GraceTime, Min: 0, Max: maxGraceTime}, "grace-period", "how long calls in flight may go on after a stop")
	fs.BoolVar(&c.ShowVersion, "version", false, "print the version and exit")

	fs.StringVar(&c.Host, "host", hostAuto, "how the node's storage is reached: proxy (the pipes of csi-proxy), local (in process, as in a HostProcess pod) or auto")
	fs.StringVar(&c.NodeTasks, "node-tasks", tasksAuto, "with csi-proxy, who does the node tasks: proxy (its group node), driver (over the primitives of any csi-proxy) or auto")
	fs.StringVar(&c.NodeFolder, "node-folder", node.DefaultFolder, "the driver's own folder on the node, a Windows path")
	fs.StringVar(&c.SocketDir, "socket-dir", "", "off Windows: folder with the sockets that stand for the pipes of csi-proxy; empty for its usual one")
	fs.StringVar(&c.KubeletPath, "kubelet-path", defaultKubeletPath, "with -host=local: kubelet's folder; paths outside the working folders are refused")
	fs.Var(flagvalue.List{Items: &c.WorkingDirs}, "working-dir", "with -host=local: one more working folder; may be repeated")
	fs.BoolVar(&c.RequirePrivacy, "require-privacy", true, "with -host=local: demand encryption of SMB mappings")
	fs.StringVar(&c.SimDir, "sim-dir", "", "off Windows, with -host=local: folder with a simulated node; made when missing, and refused when it holds something else")
	c.Cloud.addFlags(fs)
	c.SMB.addFlags(fs)
	c.ISCSI.addFlags(fs)
	return fs
}

func (c *cloudConfig) addFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Dir, "cloud-dir", "", "simcloud, controller: folder of the simulated cloud; made when missing, and refused when it holds something else")
	fs.Var(nodesValue{&c.Nodes}, "cloud-node", "simcloud, controller: a node and where its hypervisor is controlled, NAME=ADDRESS, then ,zone=ZONE and ,max=DISKS if wanted; may be repeated")
	fs.StringVar(&c.Zone, "cloud-zone", cloud.DefaultZone, "simcloud, node: zone of this node")
	fs.Int64Var(&c.MaxVolumes, "cloud-max-volumes", 0, "simcloud, node: how many disks this node takes; 0 for any number")
	fs.StringVar(&c.Control, "cloud-control", "", "simcloud, node: where the hypervisor of this node is asked for the health of disks; empty for nowhere")
}

func (c *smbConfig) addFlags(fs *flag.FlagSet) {
	fs.Var(sourcesValue{&c.Sources}, "smb-source", "smb: where volumes may be made, //SERVER/SHARE/FOLDER, or with ,credentials=FOLDER the folder of the files username, password and domain; may be repeated")
	fs.BoolVar(&c.AnySource, "smb-any-source", false, "smb: let storage classes name any server and share")
	fs.Var(dialValue{&c.Dial}, "smb-dial", "smb, controller: reach a server at another address, SERVER=HOST:PORT; may be repeated")
	fs.BoolVar(&c.RequireEncryption, "smb-require-encryption", false, "smb, controller: use no server that does not encrypt")
}

func (c *iscsiConfig) addFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.PoolFile, "iscsi-pool-file", "", "iscsi, controller: file that lists the logical units to hand out; empty for static volumes only")
	fs.StringVar(&c.StateDir, "iscsi-state-dir", "", "iscsi, controller: folder for the records of what was handed out; must be kept")
}

// parseConfig reads a command line made of our own flags and those of more. Its
// error is flag.ErrHelp, or an [exit.UsageError] that names flag and limit.
func parseConfig(args []string, env environment, more *flag.FlagSet) (*config, error) {
	c := &config{}
	fs := newFlagSet(c)
	more.VisitAll(func(f *flag.Flag) { fs.Var(f.Value, f.Name, f.Usage) })
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, exit.Usage(flagvalue.WithHelp(err, "csi-driver -help"))
	}
	if c.ShowVersion {
		return c, nil // asks for nothing that the rest could be wrong for
	}
	if fs.NArg() > 0 {
		return nil, exit.Usage(fmt.Errorf("unexpected argument %q: every option starts with a dash", fs.Arg(0)))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := c.check(given, env); err != nil {
		return nil, exit.Usage(err)
	}
	c.resolvePaths(sandbox.Of(env.GOOS, env.Getenv))
	return c, nil
}

// printUsage writes every flag with its default.
func printUsage(w io.Writer, more *flag.FlagSet) {
	fs := newFlagSet(&config{})
	more.VisitAll(func(f *flag.Flag) { fs.Var(f.Value, f.Name, f.Usage) })
	fs.SetOutput(w)
	fmt.Fprintln(w, "csi-driver serves volumes for Windows nodes to Kubernetes over CSI.\n\nFlags (one dash or two):")
	fs.PrintDefaults()
}

func (c *config) servesController() bool { return c.Mode == modeController || c.Mode == modeAll }
func (c *config) servesNode() bool       { return c.Mode == modeNode || c.Mode == modeAll }

// check says what is wrong with the values, naming the flag.
func (c *config) check(given map[string]bool, env environment) error {
	b, known := backends()[c.Driver]
	isOneOf := func(value string, of ...string) bool { return slices.Contains(of, value) }
	isLocal := c.Host == hostLocal || c.Host == hostAuto
	for _, rule := range []struct {
		flag string
		ok   bool
		want string
	}{
		{"mode", isOneOf(c.Mode, modeController, modeNode, modeAll), "must be controller, node or all"},
		{"driver", known, "must be one of " + strings.Join(slices.Sorted(maps.Keys(backends())), ", ")},
		{"node-id", !c.servesNode() || c.NodeID != "", "is needed with -mode=" + c.Mode},
		{"node-id", len(c.NodeID) <= nodeIDBytesMax, fmt.Sprintf("must not be longer than %d bytes", nodeIDBytesMax)},
		{"host", isOneOf(c.Host, hostAuto, hostProxy, hostLocal), "must be auto, proxy or local"},
		{"node-tasks", isOneOf(c.NodeTasks, tasksAuto, tasksProxy, tasksDriver), "must be auto, proxy or driver"},
		{"node-tasks", c.NodeTasks == tasksAuto || c.Host != hostLocal, "works with csi-proxy only; -host=local does the tasks in the driver"},
		{"sim-dir", !given["sim-dir"] || env.GOOS != "windows", "works off Windows only"},
		{"sim-dir", !given["sim-dir"] || isLocal, "works with -host=local only"},
		{"sim-dir", c.SimDir != "" || c.Host != hostLocal || env.GOOS == "windows", "is needed with -host=local off Windows"},
		{"socket-dir", !given["socket-dir"] || env.GOOS != "windows", "works off Windows only; Windows has pipes"},
	} {
		if !rule.ok {
			return fmt.Errorf("-%s: %s", rule.flag, rule.want)
		}
	}
	for name := range given {
		if prefix, _, found := strings.Cut(name, "-"); found && isOneOf(prefix, "cloud", "smb", "iscsi") && prefix != b.flagPrefix {
			return fmt.Errorf("-%s: does not go with -driver=%s", name, c.Driver)
		}
	}
	return first(
		flagvalue.CheckAddress("-metrics-bind-address", c.MetricsAddress),
		c.checkFolders(),
		b.check(c),
	)
}

// first is the first error: one mistake is told at a time, on one line.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkFolders asks the agent whether it would accept the folders of the node.
func (c *config) checkFolders() error {
	check := func(flagName, folder string) error {
		if _, err := agent.New(systemDriveOnly{}, agent.Policy{Roots: []string{folder}}); err != nil {
			return fmt.Errorf("-%s: %w", flagName, err)
		}
		return nil
	}
	for _, folder := range c.WorkingDirs {
		if err := check("working-dir", folder); err != nil {
			return err
		}
	}
	return first(check("kubelet-path", c.KubeletPath), check("node-folder", c.NodeFolder))
}

// systemDriveOnly is as much of an operating system as the agent needs to judge
// folders.
type systemDriveOnly struct{ agent.OS }

// SystemDrive returns the letter that most nodes use; the judgement does not depend on it.
func (systemDriveOnly) SystemDrive() byte { return 'C' }

// checkServed asks the kit and the pipes whether they would accept what the command
// line says, on the system that runs this. Nothing is opened.
func (c *config) checkServed() error {
	if c.Endpoint == "" {
		return errors.New("-endpoint: must not be empty")
	}
	nothing := struct{ csikit.Backend }{}
	name := cmp.Or(c.DriverName, backends()[c.Driver].name)
	if _, err := csikit.New(csikit.Config{Name: name, Version: version.Number(), Backend: nothing}); err != nil {
		return fmt.Errorf("-driver-name: %w", err)
	}
	server := csikit.ServerConfig{Endpoint: c.Endpoint}
	if _, err := csikit.New(csikit.Config{Name: name, Version: version.Number(), Backend: nothing, Server: server}); err != nil {
		return fmt.Errorf("-endpoint: %w", err)
	}
	for _, group := range wire.Groups() {
		if _, err := (pipe.Place{Dir: c.SocketDir}).Address(group, "v1alpha1"); err != nil { // no version has a longer name
			return fmt.Errorf("-socket-dir: %w", err)
		}
	}
	return nil
}
