package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/cmd/internal/flagvalue"
	"github.com/csi-windows/csi-windows/cmd/internal/sandbox"
	"github.com/csi-windows/csi-windows/internal/endpoint"
	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/attacher"
	"github.com/csi-windows/csi-windows/sidecar/liveness"
	"github.com/csi-windows/csi-windows/sidecar/provisioner"
	"github.com/csi-windows/csi-windows/sidecar/registrar"
	"github.com/csi-windows/csi-windows/sidecar/resizer"
	"github.com/csi-windows/csi-windows/sidecar/snapshotter"
)

// settings is everything the command line says.
type settings struct {
	Program     string
	Controllers []string
	ShowVersion bool
	// Ignored are the flags given that have no effect here.
	Ignored []string
	// flags know which flag a setting comes from.
	flags *flags

	CSIAddress string
	Kubeconfig string
	Master     string
	QPS        float64
	Burst      int
	HTTP       httpSettings
	HealthPort int
	Leader     leaderSettings

	Registrar     registrar.Config
	RegistrarMode string
	Liveness      liveness.Config
	Provisioner   provisioner.Config
	Capacity      capacitySettings
	Attacher      attacher.Config
	Resizer       resizer.Config
	Snapshotter   snapshotter.Config
	DriverObject  driverObjectSettings

	NodeDeployment            nodeDeploymentSettings
	SnapshotterNodeDeployment bool

	ProvisionerGates, AttacherGates, ResizerGates, SnapshotterGates map[string]bool
}

type httpSettings struct {
	Endpoint, MetricsAddress, MetricsPath string
	// Flag is the one that Endpoint comes from.
	Flag  string
	Pprof bool
}

type leaderSettings struct {
	On                                        bool
	Namespace                                 string
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	Labels                                    labelValue
}

type nodeDeploymentSettings struct {
	On, NoImmediateBinding bool
	BaseDelay, MaxDelay    time.Duration
}

type capacitySettings struct {
	On, Immediate       bool
	Threads, OwnerLevel int
	PollInterval        time.Duration
}

// Modes of the registrar.
const (
	modeRegistration = "registration"
	modeProbe        = "kubelet-registration-probe"
)

// parse reads a command line, the program's name included.
func parse(args []string, env environment) (*settings, *flags, error) {
	program, rest := chooseProgram(args)
	s := &settings{Program: program, RegistrarMode: modeRegistration, Capacity: capacitySettings{OwnerLevel: 1}}
	s.Snapshotter.Groups = true
	f := newFlags(program)
	s.flags = f
	var controllers string
	declareCommon(f, s)
	if component := programs()[program]; component != "" {
		s.Controllers = []string{component}
		declareComponent(f, component, s)
	} else {
		s.Leader.On = true
		f.Lookup("leader-election").DefValue = "true"
		f.StringVar(&controllers, "controllers", "", "the components to run, by commas: "+strings.Join(components(), ", "))
		for _, component := range components() {
			declareComponent(f.of(prefixes()[component]), component, s)
		}
	}
	f.logFlags()
	if err := f.Parse(rest); err != nil {
		return s, f, exit.Usage(f.unknown(err, helpOf(args)))
	}
	s.Ignored = *f.ignored
	if f.NArg() > 0 {
		return s, f, exit.Usage(unexpected(program, f.Arg(0), len(rest) == f.NArg()))
	}
	if s.ShowVersion {
		return s, f, nil
	}
	if program == programName {
		var err error
		if s.Controllers, err = splitControllers(controllers); err != nil {
			return s, f, exit.Usage(err)
		}
	}
	for _, check := range []func() error{f.join, func() error { return s.finish(env) }, func() error { return s.check(env) }} {
		if err := check(); err != nil {
			return s, f, exit.Usage(err)
		}
	}
	return s, f, nil
}

// declareCommon declares what is said once for all components.
func declareCommon(f *flags, s *settings) {
	s.CSIAddress = "/run/csi/socket"
	f.text(&s.CSIAddress, "csi-address", "where the driver answers: a path, unix:PATH, tcp://HOST:PORT or, on Windows, npipe:NAME")
	f.text(&s.Kubeconfig, "kubeconfig", "file that says where the API server is; empty inside a cluster")
	f.text(&s.Master, "master", "address of the API server instead of the file's")
	f.Float64Var(&s.QPS, "kube-api-qps", 0, "requests to the API server a second on average; 0 leaves it to the server's priority and fairness")
	f.number(&s.Burst, "kube-api-burst", "requests to the API server at once; with --kube-api-qps only")
	f.text(&s.HTTP.Endpoint, "http-endpoint", "address of the metrics, of /healthz and of /healthz/leader-election; empty for none")
	f.text(&s.HTTP.MetricsAddress, "metrics-address", "the same by its older name; of livenessprobe the address of the metrics alone")
	s.HTTP.MetricsPath = "/metrics"
	f.text(&s.HTTP.MetricsPath, "metrics-path", "path of the metrics")
	f.yes(&s.HTTP.Pprof, "enable-pprof", "serve profiles there too")
	f.yes(&s.Leader.On, "leader-election", "work only while this process holds the component's lease")
	f.text(&s.Leader.Namespace, "leader-election-namespace", "namespace of the leases; that of the pod when empty")
	f.time(&s.Leader.LeaseDuration, "leader-election-lease-duration", "how long a lease is respected after its holder was last heard of; 15s for each component when not given")
	f.time(&s.Leader.RenewDeadline, "leader-election-renew-deadline", "how long the holder goes on trying to renew; 10s for each component when not given")
	f.time(&s.Leader.RetryPeriod, "leader-election-retry-period", "interval of renewals and of tries to get a lease; 5s for each component when not given")
	f.Var(&s.Leader.Labels, "leader-election-labels", "labels of the leases, KEY=VALUE,…")
	f.yes(&s.ShowVersion, "version", "print the version and exit")
	f.ignore("resync")
	f.ignoreSwitches("automaxprocs")
}

func splitControllers(text string) ([]string, error) {
	var list []string
	seen := map[string]bool{}
	for _, name := range strings.Split(text, ",") {
		name = strings.TrimSpace(name)
		if component := programs()[name]; component != "" {
			name = component
		}
		switch {
		case name == "":
			continue
		case !isComponent(name):
			return nil, fmt.Errorf("--controllers: %q is none of %s", name, strings.Join(components(), ", "))
		case !seen[name]:
			seen[name] = true
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("--controllers is needed: some of " + strings.Join(components(), ", "))
	}
	return list, nil
}

// has reports whether a component is to run.
func (s *settings) has(component string) bool {
	for _, one := range s.Controllers {
		if one == component {
			return true
		}
	}
	return false
}

// needsServer reports whether any component speaks to the API server.
func (s *settings) needsServer() bool {
	for _, one := range s.Controllers {
		if one != sidecar.Registrar && one != sidecar.LivenessProbe {
			return true
		}
	}
	return false
}

// finish makes of the flags what the components take.
func (s *settings) finish(env environment) error {
	place := sandbox.Of(env.GOOS, env.Getenv)
	s.CSIAddress = place.Endpoint(s.CSIAddress)
	s.Kubeconfig = place.Path(s.Kubeconfig)
	s.Registrar.PluginRegistrationPath = place.Path(s.Registrar.PluginRegistrationPath)
	gates(s)
	if s.RegistrarMode != modeRegistration && s.RegistrarMode != modeProbe {
		return fmt.Errorf("%s %q: must be %s or %s", s.flags.nameOf(&s.RegistrarMode), s.RegistrarMode, modeRegistration, modeProbe)
	}
	if s.QPS < 0 || s.Burst < 0 {
		return fmt.Errorf("--kube-api-qps %v, --kube-api-burst %d: must not be below 0", s.QPS, s.Burst)
	}
	if err := s.finishHTTP(); err != nil {
		return err
	}
	node := env.Getenv("NODE_NAME")
	if (s.NodeDeployment.On || s.SnapshotterNodeDeployment) && node == "" {
		of := any(&s.NodeDeployment.On)
		if !s.NodeDeployment.On {
			of = &s.SnapshotterNodeDeployment
		}
		return errors.New(s.flags.nameOf(of) + " needs the node's name in the environment as NODE_NAME")
	}
	if s.NodeDeployment.On {
		s.Provisioner.NodeDeployment = &provisioner.NodeDeployment{
			NodeName: node, NoImmediateBinding: s.NodeDeployment.NoImmediateBinding,
			BaseDelay: s.NodeDeployment.BaseDelay, MaxDelay: s.NodeDeployment.MaxDelay,
		}
	}
	if s.Resizer.Timeout != 0 {
		// The older flag has the last word, as with upstream.
		s.Resizer.ResizeTimeout, s.Resizer.ModifyTimeout = s.Resizer.Timeout, s.Resizer.Timeout
	}
	if s.SnapshotterNodeDeployment {
		s.Snapshotter.NodeName = node
	}
	if err := s.DriverObject.finish(); err != nil {
		return err
	}
	s.DriverObject.Config.PublishesCapacity = s.Capacity.On && s.has(sidecar.Provisioner)
	s.Liveness.CSIAddress = s.CSIAddress
	return nil
}

// check says what is wrong with settings that are complete.
func (s *settings) check(env environment) error {
	if s.RegistrarMode == modeProbe {
		if s.Registrar.KubeletRegistrationPath == "" {
			return errors.New("--kubelet-registration-path: must be given: it tells which driver is meant")
		}
		return nil // asks for nothing that the rest could be wrong for
	}
	if _, err := endpoint.Parse(s.CSIAddress, env.GOOS); err != nil {
		return fmt.Errorf("--csi-address: %w", err)
	}
	return s.checkComponents(env)
}

// finishHTTP says what is answered where.
func (s *settings) finishHTTP() error {
	for _, address := range []*string{&s.HTTP.Endpoint, &s.HTTP.MetricsAddress, &s.Liveness.HTTPEndpoint} {
		if err := flagvalue.CheckAddress(s.flags.nameOf(address), *address); err != nil {
			return err
		}
	}
	if !strings.HasPrefix(s.HTTP.MetricsPath, "/") {
		return fmt.Errorf("--metrics-path is %q: must be a path that begins with a slash", s.HTTP.MetricsPath)
	}
	if s.HealthPort > 65535 {
		return fmt.Errorf("--health-port: %d: must be at most 65535", s.HealthPort)
	}
	switch {
	case s.HTTP.MetricsAddress != "" && s.HTTP.Endpoint != "" && s.HTTP.MetricsAddress != s.HTTP.Endpoint:
		return errors.New("only one of --metrics-address and --http-endpoint can be given")
	case s.Program != programName && s.has(sidecar.LivenessProbe):
		// It answers for itself, and its health is not where the older flag has the metrics.
		s.Liveness.HTTPEndpoint, s.Liveness.MetricsAddress, s.Liveness.MetricsPath = s.HTTP.Endpoint, s.HTTP.MetricsAddress, s.HTTP.MetricsPath
		s.HTTP.Endpoint = ""
		return nil
	}
	s.HTTP.Flag = "--http-endpoint"
	if s.HTTP.Endpoint == "" {
		s.HTTP.Endpoint, s.HTTP.Flag = s.HTTP.MetricsAddress, "--metrics-address"
	}
	if s.has(sidecar.LivenessProbe) && meet(s.HTTP.Endpoint, s.Liveness.Address()) {
		return fmt.Errorf("%s %s is where the liveness probe answers, %s: give one of them another port", s.HTTP.Flag, s.HTTP.Endpoint, s.Liveness.Address())
	}
	if s.HealthPort > 0 { // upstream's registrar takes one below 0 for none
		if s.HTTP.Endpoint != "" {
			return errors.New("only one of --health-port and --http-endpoint can be given")
		}
		s.HTTP.Endpoint, s.HTTP.Flag = net.JoinHostPort("", fmt.Sprint(s.HealthPort)), "--health-port"
	}
	return nil
}

// meet reports whether two addresses cannot both be listened at.
func meet(one, other string) bool {
	host, port, err := net.SplitHostPort(one)
	otherHost, otherPort, otherErr := net.SplitHostPort(other)
	if err != nil || otherErr != nil || port != otherPort || port == "0" {
		return false
	}
	isAll := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	return host == otherHost || isAll(host) || isAll(otherHost)
}

// gates carries the feature gates that have an effect into the settings.
func gates(s *settings) {
	off := func(gates map[string]bool, name string) bool {
		on, given := gates[name]
		return given && !on
	}
	s.Provisioner.NoVolumeAttributesClass = off(s.ProvisionerGates, "VolumeAttributesClass")
	s.Resizer.NoModify = off(s.ResizerGates, "VolumeAttributesClass")
	s.Resizer.NoResizeAnnotation = off(s.ResizerGates, "AnnotateFsResize")
	s.Snapshotter.Groups = s.Snapshotter.Groups && !off(s.SnapshotterGates, "CSIVolumeGroupSnapshot")
}

// labelValue is a flag of labels.
type labelValue map[string]string

// String implements flag.Value.
func (l *labelValue) String() string { return "" }

// Set implements flag.Value.
func (l *labelValue) Set(text string) error {
	*l = labelValue{}
	for _, part := range strings.Split(text, ",") {
		key, value, found := strings.Cut(part, "=")
		if !found || key == "" {
			return fmt.Errorf("%q is not KEY=VALUE", part)
		}
		(*l)[key] = value
	}
	return nil
}

var _ flag.Value = (*labelValue)(nil)
