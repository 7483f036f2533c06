package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// How long a component that failed waits before it is started again: from the
// least, doubled with each failure, to the most; and how long it must have run
// for its failures to be forgotten.
const (
	restartDelayMin = time.Second
	restartDelayMax = time.Minute
	healthyAfter    = 5 * time.Minute
)

// stopTimeoutDefault is how long components may take to end.
const stopTimeoutDefault = 20 * time.Second

// ErrNothingToDo is in the error of a component that the driver, as it is, has
// no use for. The component rests until the driver has changed.
var ErrNothingToDo = errors.New("nothing to do")

// ProcessConfig says how a process runs its components.
type ProcessConfig struct {
	// Leases says how leases are kept. It may be empty when no component has one.
	Leases LeaseConfig
	// Driver is watched: when another driver answers under its address the
	// process ends, when its capabilities have changed the components start
	// anew. Nil for none.
	Driver *csiclient.Driver
	// ExitOnFailure has the first failure of a component end the process, as
	// upstream's programs do.
	ExitOnFailure bool
	// StopTimeout is how long a component may take to end when it is told to; a
	// process with one that takes longer ends without it. 0 for 20 s.
	StopTimeout time.Duration
	// Health is told of the components' states. Nil for nobody.
	Health *Health
	// Metrics count starts and failures. Nil for none.
	Metrics *Metrics
	// Log is the process' log; Clock is the time, the real one when nil.
	Log   *slog.Logger
	Clock clock.Clock
}

// Supervised is a component and the name of the lease it needs.
type Supervised struct {
	Component
	// Lease is the lease without which the component does not run; empty for
	// one that needs none. See [LeaseName].
	Lease string
}

// process is a run of components.
type process struct {
	config ProcessConfig
	log    *slog.Logger
	clock  clock.Clock
	cancel context.CancelFunc
	mu     sync.Mutex
	err    error // why the process ends, if not because it was told to
}

// endWith ends the process with an error.
func (p *process) endWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.cancel()
}

// Run runs components side by side until ctx ends, and then returns nil, or
// until the process cannot go on. A component runs while its lease is held.
// One that fails or panics is reported, gives its lease to another process, and
// is started again after a delay; the others go on. What a component's own
// goroutines panic with ends the process, as ever.
func Run(ctx context.Context, config ProcessConfig, components []Supervised) error {
	leases := 0
	for _, s := range components {
		if s.Lease != "" {
			leases++
		}
	}
	config, err := config.withDefaults(leases)
	if err != nil {
		return err
	}
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &process{config: config, log: config.Log, clock: config.Clock, cancel: cancel}
	var all sync.WaitGroup
	if config.Driver != nil {
		all.Go(func() {
			if err := config.Driver.Watch(life); err != nil {
				p.endWith(err)
			}
		})
	}
	spread := time.Duration(0)
	for _, s := range components {
		own := spread
		if s.Lease != "" {
			spread += config.Leases.RetryPeriod / time.Duration(leases)
		}
		all.Go(func() { p.supervise(life, s, own) })
	}
	all.Wait()
	return p.err
}

func (c ProcessConfig) withDefaults(leases int) (ProcessConfig, error) {
	var err error
	if c.Log == nil {
		return c, errors.New("ProcessConfig.Log is missing")
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = stopTimeoutDefault
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	c.Leases, err = c.Leases.withDefaults(leases)
	return c, err
}

// supervise runs a component again and again until ctx ends.
func (p *process) supervise(ctx context.Context, s Supervised, spread time.Duration) {
	delay := restartDelayMin
	for ctx.Err() == nil {
		began := p.clock.Now()
		err := p.lead(ctx, s, spread)
		spread = 0 // the campaigns after the first do not begin together
		switch {
		case isStuck(err):
			p.report(s, Failed, err)
			p.endWith(err)
			return
		case ctx.Err() != nil:
			continue
		case errors.Is(err, errLeaseLost):
			p.log.WarnContext(ctx, "Component stopped, it waits for its lease again", "component", s.Name(), "lease", s.Lease, "error", err)
			continue
		}
		if p.clock.Since(began) >= healthyAfter {
			delay = restartDelayMin
		}
		p.failed(ctx, s, err, delay)
		select {
		case <-ctx.Done():
		case <-p.clock.After(delay):
		}
		delay = min(2*delay, restartDelayMax)
	}
	p.report(s, Ended, nil)
}

// failed reports a failure, or ends the process with it.
func (p *process) failed(ctx context.Context, s Supervised, err error, delay time.Duration) {
	p.report(s, Failed, err)
	if p.config.ExitOnFailure {
		p.endWith(fmt.Errorf("%s: %w", s.Name(), err))
		return
	}
	attrs := []any{"component", s.Name(), "error", err, "delay", delay}
	if crash := (*panicError)(nil); errors.As(err, &crash) {
		attrs = append(attrs, "stack", string(crash.stack))
	}
	p.log.ErrorContext(ctx, "Component failed, it will be started again", attrs...)
}

// lead runs a component once, while it holds its lease. It returns nil or an
// error, and nothing of the run is left then.
func (p *process) lead(ctx context.Context, s Supervised, spread time.Duration) error {
	if s.Lease == "" {
		return p.run(ctx, s)
	}
	p.report(s, Waiting, nil)
	l, err := p.campaign(ctx, s.Lease, spread)
	if err != nil {
		return err
	}
	p.config.Health.watch(s.Lease, l.elector)
	defer p.config.Health.watch(s.Lease, nil)
	isLost := false
	select {
	case <-ctx.Done():
	case held := <-l.held:
		p.config.Metrics.leads(s.Lease, true)
		run, cancel := context.WithCancel(ctx)
		unhook := context.AfterFunc(held, cancel)
		err = p.run(run, s)
		unhook()
		cancel()
		isLost = held.Err() != nil
		p.config.Metrics.leads(s.Lease, false)
	}
	if endErr := l.end(ctx, isLost); endErr != nil {
		p.log.WarnContext(ctx, "The lease was not given back, it runs out", "lease", s.Lease, "error", endErr)
	}
	if isLost && ctx.Err() == nil && !isStuck(err) {
		return errors.Join(errLeaseLost, err)
	}
	return err
}

// run runs a component, anew whenever the driver's capabilities have changed.
func (p *process) run(ctx context.Context, s Supervised) error {
	for {
		var changed <-chan struct{}
		if p.config.Driver != nil {
			changed = p.config.Driver.Changed()
		}
		p.report(s, Running, nil)
		err := p.once(ctx, s, changed)
		if errors.Is(err, ErrNothingToDo) && !p.config.ExitOnFailure {
			p.log.WarnContext(ctx, "Component rests", "component", s.Name(), "error", err)
			select {
			case <-changed: // a nil one never is
				err = nil
			case <-ctx.Done():
				return nil
			}
		}
		if !isClosed(changed) || ctx.Err() != nil || err != nil {
			return err
		}
		p.log.InfoContext(ctx, "Component starts anew, the driver's capabilities have changed", "component", s.Name())
	}
}

// once runs a component until ctx ends, changed is closed, or it fails.
func (p *process) once(ctx context.Context, s Supervised, changed <-chan struct{}) error {
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- safely(run, s.Component) }()
	select {
	case err := <-done:
		if err == nil && ctx.Err() == nil {
			return errors.New("it ended without being told to")
		}
		return err
	case <-changed:
	case <-run.Done():
	}
	cancel()
	select {
	case err := <-done:
		return err
	case <-p.clock.After(p.config.StopTimeout):
		return &stuckError{s.Name(), p.config.StopTimeout}
	}
}

func (p *process) report(s Supervised, phase Phase, err error) {
	p.config.Health.set(s, phase, err, p.clock.Now())
	p.config.Metrics.component(s.Name(), phase)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// stuckError is a component that does not end. Nothing may take its place while
// it may still work, so the process has to end.
type stuckError struct {
	component string
	timeout   time.Duration
}

func (e *stuckError) Error() string {
	return fmt.Sprintf("%s did not end within %s of being told to", e.component, e.timeout)
}

func isStuck(err error) bool {
	var stuck *stuckError
	return errors.As(err, &stuck)
}

// panicError is what a component panicked with.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

func safely(ctx context.Context, component Component) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, debug.Stack()}
		}
	}()
	return component.Run(ctx)
}
