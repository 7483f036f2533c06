package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/cmd/internal/flagvalue"
	"github.com/csi-windows/csi-windows/cmd/internal/service"
)

// verb is a word before the flags: something to do with the service instead of
// being it.
type verb struct {
	summary    string
	takesFlags bool // of the agent, as the service's own
	run        func(v *verbRun, ctx context.Context) error
}

// verbs are the words that may stand before the flags.
func verbs() map[string]verb {
	return map[string]verb{
		"install":   {"install the service with the flags that follow, or change it to them, and start it", true, (*verbRun).install},
		"upgrade":   {"replace the service's program by this one; its flags stay", false, (*verbRun).upgrade},
		"uninstall": {"stop and remove the service", false, (*verbRun).uninstall},
		"status":    {"say what the service is and does; the exit code is 0 while it runs", false, (*verbRun).status},
	}
}

// Defaults and limits of the flags of verbs.
const (
	// defaultServiceName is the one in csi-proxy's own instructions, so that an
	// installation takes the place of a service that was made by hand.
	defaultServiceName = "csiproxy"
	defaultStartWait   = time.Minute
	minStartWait       = time.Second
	maxStartWait       = 10 * time.Minute
)

// stateInterval is the time between two looks at a service that changes its state.
const stateInterval = 100 * time.Millisecond

// verbConfig is what the command line of a verb says.
type verbConfig struct {
	ServiceName string
	InstallDir  string
	Start       bool
	StartWait   time.Duration
	Output      string   // outputTable or outputJSON
	AgentArgs   []string // the service's flags
}

// newVerbFlagSet declares the flags of a verb.
func newVerbFlagSet(name string, c *verbConfig) *flag.FlagSet {
	c.StartWait = defaultStartWait
	fs := flag.NewFlagSet("csi-proxy "+name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.ServiceName, "service-name", defaultServiceName, "name of the service")
	if name == "install" || name == "uninstall" {
		fs.StringVar(&c.InstallDir, "install-dir", "", "folder of the installed program; csi-proxy in the folder for programs when empty")
	}
	if name == "install" || name == "upgrade" {
		fs.BoolVar(&c.Start, "start", true, "start the service")
		fs.Var(flagvalue.Duration{Value: &c.StartWait, Min: minStartWait, Max: maxStartWait}, "start-wait", "how long the service may take to start before what ran before is restored")
	}
	if name == "status" {
		fs.StringVar(&c.Output, "o", outputTable, "form of the output: table or json")
	}
	return fs
}

// parseVerb reads the command line of a verb. Flags that the service could not
// start with are refused here, before anything is touched.
func parseVerb(name string, v verb, args []string, env environment) (*verbConfig, error) {
	c := &verbConfig{}
	own := newVerbFlagSet(name, c)
	if v.takesFlags {
		args, c.AgentArgs = splitArgs(args, own, agentFlagSet(env))
	}
	if err := own.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, exit.Usage(fmt.Errorf("%s: %w", name, flagvalue.WithHelp(err, "csi-proxy "+name+" -help")))
	}
	if err := c.check(own, env); err != nil {
		return nil, exit.Usage(fmt.Errorf("%s: %w", name, err))
	}
	if v.takesFlags {
		c.AgentArgs = append(withoutServiceFlag(c.AgentArgs), "-windows-service")
		if err := checkServiceArgs(c.AgentArgs, env); err != nil {
			return nil, exit.Usage(fmt.Errorf("%s: %w", name, err))
		}
	}
	return c, nil
}

// check says what is wrong with the values, naming the flag.
func (c *verbConfig) check(fs *flag.FlagSet, env environment) error {
	switch {
	case env.GOOS != "windows":
		return errors.New("this is for the Windows service, on Windows only")
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	// Source: CreateServiceW, lpServiceName.
	case c.ServiceName == "" || len(c.ServiceName) > 256 || strings.ContainsAny(c.ServiceName, "/\\\x00"):
		return errors.New("-service-name: must have 1 to 256 characters, without slashes")
	case c.InstallDir != "" && !filepath.IsAbs(c.InstallDir):
		return errors.New("-install-dir: must be an absolute path")
	// A share may be away when the node starts, and belongs to whoever runs its server.
	case strings.HasPrefix(c.InstallDir, `\\`) || strings.HasPrefix(c.InstallDir, "//"):
		return errors.New("-install-dir: must be on a drive of this machine, such as C:")
	case c.Output != "" && c.Output != outputTable && c.Output != outputJSON:
		return errors.New("-o: must be table or json")
	}
	return nil
}

// agentFlagSet has every flag of the agent, for looking them up.
func agentFlagSet(env environment) *flag.FlagSet {
	fs := newFlagSet(&config{}, env)
	addLogFlags(fs)
	return fs
}

// splitArgs takes the flags of own out of a command line and leaves the rest as it
// was written. What neither set knows is left to the rest, which is checked by itself.
func splitArgs(args []string, own, rest *flag.FlagSet) (owned, others []string) {
	for len(args) > 0 {
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		found, list := own.Lookup(name), &owned
		if found == nil {
			found, list = rest.Lookup(name), &others
		}
		if name == "h" || name == "help" {
			list = &owned
		}
		taken := 1
		if found != nil && !hasValue && !isSwitch(found) {
			taken = min(2, len(args))
		}
		*list = append(*list, args[:taken]...)
		args = args[taken:]
	}
	return owned, others
}

// isSwitch reports whether a flag needs no value.
func isSwitch(f *flag.Flag) bool {
	value, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && value.IsBoolFlag()
}

// withoutServiceFlag removes -windows-service, in whatever form it was given.
func withoutServiceFlag(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return name == "windows-service" && strings.HasPrefix(arg, "-")
	})
}

// checkServiceArgs asks whether the agent would take a command line as a service.
func checkServiceArgs(args []string, env environment) error {
	logFlags := flag.NewFlagSet("log", flag.ContinueOnError)
	addLogFlags(logFlags)
	c, err := parseConfig(args, env, logFlags)
	switch {
	case err != nil:
		return err
	case c.ShowVersion:
		return errors.New("-version: a service does not end at once")
	case !c.WindowsService:
		return errors.New("-windows-service: is missing in the service's flags; install it anew")
	}
	// A service starts in the folder of the system.
	for _, name := range []string{"log_file", "log_dir"} {
		if path := value(logFlags, name); path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("-%s: must be an absolute path for a service", name)
		}
	}
	return nil
}

// runVerb carries out a verb and returns the exit code.
func runVerb(ctx context.Context, name string, v verb, args []string, env environment) int {
	c, err := parseVerb(name, v, args, env)
	if errors.Is(err, flag.ErrHelp) {
		printVerbUsage(env.Stdout, name, v)
		return 0
	}
	if err == nil {
		// Whoever gives up leaves no node without its storage: what was begun is undone.
		ctx, release := signal.NotifyContext(ctx, stopSignals()...)
		defer release()
		run := &verbRun{config: c, env: env, manager: serviceManager()}
		err = v.run(run, ctx)
	}
	if err != nil {
		fmt.Fprintf(env.Stderr, "csi-proxy: %v\n", err)
	}
	return exit.Code(err)
}

// printVerbUsage writes the flags of a verb.
func printVerbUsage(w io.Writer, name string, v verb) {
	fs := newVerbFlagSet(name, &verbConfig{})
	fs.SetOutput(w)
	fmt.Fprintf(w, "csi-proxy %s: %s.\n\nFlags (one dash or two):\n", name, v.summary)
	fs.PrintDefaults()
	if v.takesFlags {
		fmt.Fprintln(w, "\nAll other flags are those of the service; csi-proxy -help lists them.")
	}
}

// verbRun is a verb on its way.
type verbRun struct {
	config  *verbConfig
	env     environment
	manager service.Manager
}

// installer makes what changes services.
func (v *verbRun) installer() (*service.Installer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &service.Installer{
		Manager: v.manager, Source: self, Events: eventSource,
		StartTime: v.config.StartWait, StopTime: longestStop, Interval: stateInterval,
		Notice: func(format string, args ...any) { fmt.Fprintf(v.env.Stdout, format+"\n", args...) },
	}, nil
}

// installDir is the folder of the installed program.
func (v *verbRun) installDir() (string, error) {
	if v.config.InstallDir != "" {
		return filepath.Clean(v.config.InstallDir), nil
	}
	folder := "csi-proxy"
	if !strings.EqualFold(v.config.ServiceName, defaultServiceName) { // no two services share a program
		folder += "-" + v.config.ServiceName
	}
	programs, err := programsFolder()
	return filepath.Join(programs, folder), err
}

func (v *verbRun) install(ctx context.Context) error {
	folder, err := v.installDir()
	if err != nil {
		return exit.With(stageManage, err)
	}
	d := definition(v.config.ServiceName, filepath.Join(folder, programName), v.config.AgentArgs)
	if err := checkCommandLine(d); err != nil {
		return exit.Usage(fmt.Errorf("install: %w", err))
	}
	if err := v.refuseForeign(); err != nil {
		return exit.With(stageManage, err)
	}
	return v.change(d, "is installed", func(i *service.Installer) error { return i.Install(ctx, d, v.config.Start) })
}

// refuseForeign refuses to change a service that runs something else than csi-proxy,
// such as one of Windows, whose name was given by mistake. One of csi-proxy's own name
// is taken over whatever runs it, such as a wrapper.
func (v *verbRun) refuseForeign() error {
	name := v.config.ServiceName
	registration, _, err := v.manager.Lookup(name)
	switch {
	case errors.Is(err, service.ErrNotInstalled), strings.EqualFold(name, defaultServiceName):
		return nil
	case err != nil:
		return err
	case len(withoutServiceFlag(registration.Args)) < len(registration.Args):
		return nil
	}
	return fmt.Errorf("the service %s is another program's, %s; choose another -service-name", name, registration.Program)
}

func (v *verbRun) upgrade(ctx context.Context) error {
	registration, _, err := v.manager.Lookup(v.config.ServiceName)
	if err == nil {
		// A newer program may not know a flag any more.
		err = checkServiceArgs(registration.Args, v.env)
	}
	if err != nil {
		return exit.With(stageManage, err)
	}
	d := definition(v.config.ServiceName, registration.Program, registration.Args)
	return v.change(d, "has this program", func(i *service.Installer) error { return i.Upgrade(ctx, d, v.config.Start) })
}

func (v *verbRun) uninstall(ctx context.Context) error {
	folder, err := v.installDir()
	if err != nil {
		return exit.With(stageManage, err)
	}
	name := v.config.ServiceName
	if err := v.refuseForeign(); err != nil {
		return exit.With(stageManage, err)
	}
	return v.change(service.Definition{Name: name}, "is gone", func(i *service.Installer) error { return i.Uninstall(ctx, name, folder) })
}

// change lets an installer do something and says that it has.
func (v *verbRun) change(d service.Definition, done string, do func(*service.Installer) error) error {
	i, err := v.installer()
	if err == nil {
		err = do(i)
	}
	if err != nil {
		return exit.With(stageManage, err)
	}
	fmt.Fprintf(v.env.Stdout, "the service %s %s\n", d.Name, done)
	return nil
}
