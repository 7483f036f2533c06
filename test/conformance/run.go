package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// Defaults of Options.
const (
	// DefaultCaseTimeout bounds one case.
	DefaultCaseTimeout = 3 * time.Minute
	// DefaultCleanupTimeout bounds the cleaning up after one case.
	DefaultCleanupTimeout = time.Minute
)

// Options say what is run and how.
type Options struct {
	// Run selects cases by name; nil selects all.
	Run *regexp.Regexp
	// CaseTimeout bounds one case; 0 means DefaultCaseTimeout.
	CaseTimeout time.Duration
	// CleanupTimeout bounds the cleaning up after one case, and how long a case may
	// outlive its end; 0 means DefaultCleanupTimeout.
	CleanupTimeout time.Duration
	// Observe is told each result as it comes; nil means nobody is.
	Observe func(Result)
}

// Outcome is how a case ended.
type Outcome string

// The outcomes.
const (
	Passed Outcome = "passed"
	Failed Outcome = "failed"
	NotRun Outcome = "not run"
)

// Result is what became of one case.
type Result struct {
	Name                 string   `json:"name"`
	Group                Group    `json:"group"`
	Outcome              Outcome  `json:"outcome"`
	DurationMilliseconds int64    `json:"durationMilliseconds"`
	Failures             []string `json:"failures,omitempty"`
	Notes                []string `json:"notes,omitempty"`
}

// Select returns the cases whose names match, all with nil.
func Select(pattern *regexp.Regexp) []Case {
	var selected []Case
	for _, c := range Cases() {
		if pattern == nil || pattern.MatchString(c.Name) {
			selected = append(selected, c)
		}
	}
	return selected
}

// Run runs the selected cases one after the other and returns their results in
// order. The error is not about cases: the environment is unusable, the host cannot
// be reached, no case was selected, ctx has ended, a case never ended, or something
// could not be cleaned up.
func Run(ctx context.Context, env Env, options Options) ([]Result, error) {
	if err := env.check(); err != nil {
		return nil, err
	}
	if err := reach(ctx, env.Host); err != nil {
		return nil, fmt.Errorf("conformance: the host cannot be reached: %w", err)
	}
	return runCases(ctx, env, options, Select(options.Run))
}

// reach makes one call, so that a host that is not there is one error and not one of
// every case.
func reach(ctx context.Context, h host.Host) error {
	ctx, cancel := context.WithTimeout(ctx, arrivalTime)
	defer cancel()
	if _, err := h.ListDiskIDs(ctx); host.IsKind(err, host.KindUnavailable) {
		return err
	}
	return nil
}

func runCases(ctx context.Context, env Env, options Options, cases []Case) ([]Result, error) {
	if err := env.check(); err != nil {
		return nil, err
	}
	if len(cases) == 0 {
		return nil, errors.New("conformance: no case has such a name")
	}
	r := &runner{env: &env, options: options.complete(), name: newRunName()}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	var results []Result
	for i, c := range cases {
		result := r.one(ctx, i, c)
		results = append(results, result)
		if r.options.Observe != nil {
			r.options.Observe(result)
		}
	}
	if r.stopped == nil && ctx.Err() != nil {
		r.stopped = context.Cause(ctx)
	}
	return results, errors.Join(r.stopped, r.finish(ctx))
}

func (o Options) complete() Options {
	if o.CaseTimeout <= 0 {
		o.CaseTimeout = DefaultCaseTimeout
	}
	if o.CleanupTimeout <= 0 {
		o.CleanupTimeout = DefaultCleanupTimeout
	}
	return o
}

// newRunName is the name that everything a run makes has in it.
func newRunName() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return "csi-conformance-" + hex.EncodeToString(random[:])
}

// runner is one run over the table.
type runner struct {
	env     *Env
	options Options
	name    string
	// made are the folders above the cases' own that were missing, deepest first.
	made []string
	// sameNode says that a scratch disk was seen to arrive on the host's node.
	sameNode bool
	// stopped is why no further case is run.
	stopped error
}

// begin notes which folders the run makes on the way to its own. One that is perhaps
// there, in a folder that cannot be listed, is not among them.
func (r *runner) begin(ctx context.Context) error {
	for _, folder := range []string{r.env.WorkingDir, r.env.OutsideDir} {
		var below []string // missing when the next one is
		for at := strings.LastIndexByte(folder, '\\'); at > 0; at = strings.LastIndexByte(folder, '\\') {
			there, err := r.holds(ctx, folder[:at], folder[at+1:])
			if ctx.Err() != nil {
				return fmt.Errorf("conformance: look into %s: %w", folder[:at], err)
			}
			if err == nil {
				if !there {
					r.made = append(append(r.made, below...), folder)
				}
				break
			}
			below = append(below, folder)
			folder = folder[:at]
		}
	}
	return nil
}

// one runs a case, or says why not.
func (r *runner) one(ctx context.Context, index int, c Case) Result {
	result := Result{Name: c.Name, Group: c.Group, Outcome: NotRun}
	switch need := c.missing(r.env); {
	case r.stopped != nil:
		result.Notes = []string{r.stopped.Error()}
		return result
	case ctx.Err() != nil:
		result.Notes = []string{context.Cause(ctx).Error()}
		return result
	case need != "":
		result.Notes = []string{"no " + string(need) + " was given"}
		return result
	}
	started := time.Now()
	s := newScene(r, index)
	ended := r.perform(ctx, c, s)
	if !ended {
		r.stopped = fmt.Errorf("conformance: case %s did not end", c.Name)
	}
	r.clean(ctx, s)
	result.DurationMilliseconds = time.Since(started).Milliseconds()
	result.Failures, result.Notes = s.log.take()
	result.Outcome = Passed
	if len(result.Failures) > 0 {
		result.Outcome = Failed
	}
	return result
}

// perform runs the case on a goroutine of its own, so that one that hangs stops
// nobody. It reports whether the case has ended.
func (r *runner) perform(ctx context.Context, c Case, s *scene) bool {
	ctx, cancel := context.WithTimeout(ctx, r.options.CaseTimeout)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer s.log.catchPanic()
		s.open(ctx)
		c.run(ctx, s)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		grace := time.NewTimer(r.options.CleanupTimeout)
		defer grace.Stop()
		select {
		case <-done:
		case <-grace.C:
			s.log.Errorf("the case goes on %s after its end", r.options.CleanupTimeout)
			return false
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.log.Errorf("the case had %s and took longer", r.options.CaseTimeout)
		}
	}
	return true
}

// clean undoes what the case has left, also when the run is over.
func (r *runner) clean(ctx context.Context, s *scene) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.options.CleanupTimeout)
	defer cancel()
	for _, err := range s.clean(ctx) {
		s.log.Errorf("clean up: %v", err)
	}
}

// finish removes the folders of the run.
func (r *runner) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.options.CleanupTimeout)
	defer cancel()
	var errs []error
	for _, parent := range []string{r.env.WorkingDir, r.env.OutsideDir} {
		if err := r.removeTree(ctx, parent, r.name, 0); err != nil {
			errs = append(errs, fmt.Errorf("conformance: clean up %s\\%s: %w", parent, r.name, err))
		}
	}
	for _, folder := range r.made {
		// One that somebody uses by now is not empty, and stays.
		_ = r.env.Files.RemoveFile(ctx, folder)
	}
	return errors.Join(errs...)
}
