// Package agent carries out host.Host on one node. It holds the rules: what a
// request may say, which paths it may reach, which calls must not meet, what
// may be done again, and what is never done to somebody's data. It declares the
// operating system it needs (OS) and knows neither how that works nor who calls.
//
// A call goes through three stations. Its texts are checked (path.go,
// remote.go, iscsiname.go); run takes the locks of its objects and bounds its
// time (call.go, lock.go); the operation looks before it changes anything.
// Paths are walked component by component with open handles (walk.go) and are
// judged by where that ends (confine.go).
package agent

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// Defaults of Policy.
const (
	// DefaultMinResizeGainBytes is the gain up to which growing a volume is not
	// worth the risk: Windows refuses to extend a partition by less than 1 MiB,
	// and a maximum size a little above the present one is common.
	DefaultMinResizeGainBytes = 100 << 20
	// DefaultCallTimeout bounds an operation whose caller sets no nearer deadline.
	DefaultCallTimeout = 2 * time.Minute
	// DefaultProbeTimeout bounds the look at a share before its mapping is trusted.
	DefaultProbeTimeout = 10 * time.Second
	// DefaultHangGrace is how long an operation may outlive its deadline before
	// it is reported as hung.
	DefaultHangGrace = 5 * time.Second
	// DefaultPollInterval is the pause between two looks at a starting or
	// stopping service.
	DefaultPollInterval = 100 * time.Millisecond
)

// Policy is what a node's administrator decides.
type Policy struct {
	// Roots are the working folders: the kubelet's and any others. Nothing
	// outside them is changed through a path. At least one; absolute.
	Roots []string
	// RequirePrivacy demands encryption of every SMB mapping.
	RequirePrivacy bool
	// MinResizeGainBytes is the largest gain ResizeVolume does not carry out;
	// 0 means DefaultMinResizeGainBytes.
	MinResizeGainBytes int64
	// CallTimeout bounds every operation; 0 means DefaultCallTimeout.
	CallTimeout time.Duration
	// ProbeTimeout bounds a look at a share; 0 means DefaultProbeTimeout.
	ProbeTimeout time.Duration
	// HangGrace is the time after its deadline at which an operation counts as
	// hung; 0 means DefaultHangGrace.
	HangGrace time.Duration
	// PollInterval is the pause between two looks at a service; 0 means
	// DefaultPollInterval.
	PollInterval time.Duration
	// Logger gets the audit of every change at level Info; nil means none.
	Logger *slog.Logger
	// Observer is told of hung calls; nil means nobody is.
	Observer Observer
}

// Agent is a host.Host over one operating system. It is safe for concurrent use.
type Agent struct {
	os     OS
	policy Policy
	roots  []localPath
	// systemDrive is the letter of the drive of the operating system, upper case.
	systemDrive byte
	log         *slog.Logger
	observer    Observer
	locks       *lockTable
	workers     *workers
	watch       *watch
	leftBehind  atomic.Int64 // calls whose caller has gone
	hungCalls   atomic.Int64
	// initiatorSecretSet says that this agent has set the initiator's own CHAP
	// secret; Windows does not tell whether there is one.
	initiatorSecretSet atomic.Bool
}

var _ host.Host = (*Agent)(nil)

// New returns an agent for the node under os. It fails when a field of policy
// is out of its range, and names the field.
func New(os OS, policy Policy) (*Agent, error) {
	if os == nil {
		return nil, fmt.Errorf("agent: no operating system given")
	}
	a := &Agent{os: os, policy: policy, log: policy.Logger, observer: policy.Observer, locks: newLockTable(), workers: newWorkers(), watch: newWatch()}
	a.systemDrive = os.SystemDrive() &^ 0x20
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.observer == nil {
		a.observer = silentObserver{}
	}
	if err := a.policy.complete(); err != nil {
		return nil, err
	}
	if err := a.parseRoots(); err != nil {
		return nil, err
	}
	return a, nil
}

// HungCalls returns how many operations have outlived their callers and still run.
func (a *Agent) HungCalls() int { return int(a.hungCalls.Load()) }

// complete puts defaults in place of zero values and checks the ranges.
func (p *Policy) complete() error {
	if p.MinResizeGainBytes == 0 {
		p.MinResizeGainBytes = DefaultMinResizeGainBytes
	}
	if p.MinResizeGainBytes < 0 {
		return fmt.Errorf("agent: Policy.MinResizeGainBytes is negative: %d", p.MinResizeGainBytes)
	}
	for _, d := range []struct {
		field    string
		value    *time.Duration
		standard time.Duration
	}{
		{"CallTimeout", &p.CallTimeout, DefaultCallTimeout},
		{"ProbeTimeout", &p.ProbeTimeout, DefaultProbeTimeout},
		{"HangGrace", &p.HangGrace, DefaultHangGrace},
		{"PollInterval", &p.PollInterval, DefaultPollInterval},
	} {
		if *d.value == 0 {
			*d.value = d.standard
		}
		if *d.value < 0 {
			return fmt.Errorf("agent: Policy.%s is negative: %v", d.field, *d.value)
		}
	}
	return nil
}

func (a *Agent) parseRoots() error {
	if len(a.policy.Roots) == 0 {
		return fmt.Errorf("agent: Policy.Roots is empty: at least one working folder is needed")
	}
	for i, text := range a.policy.Roots {
		root, err := parsePath(fmt.Sprintf("Policy.Roots[%d]", i), text, a.systemDrive)
		if err != nil {
			return named("agent", host.PrintableText(text), err)
		}
		a.roots = append(a.roots, root)
	}
	return nil
}
