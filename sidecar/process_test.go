package sidecar_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// part is a component that does what a test says.
type part struct {
	name string
	run  func(ctx context.Context, start int) error

	mu     sync.Mutex
	starts int
	live   int
}

func (p *part) Name() string { return p.name }

func (p *part) Run(ctx context.Context) error {
	p.mu.Lock()
	p.starts++
	p.live++
	start := p.starts
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.live--
		p.mu.Unlock()
	}()
	return p.run(ctx, start)
}

func (p *part) started() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

func (p *part) isLive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live > 0
}

// untilTold works until it is told to end.
func untilTold(ctx context.Context, _ int) error {
	<-ctx.Done()
	return nil
}

// running is a process of a test.
type running struct {
	*sidecartest.Bed
	config  sidecar.ProcessConfig
	clock   *clocktesting.FakeClock
	stop    context.CancelFunc
	ended   chan struct{}
	err     error
	metrics *sidecar.Metrics
}

// start runs components on a clock that only the test moves.
func start(t *testing.T, b *sidecartest.Bed, change func(*sidecar.ProcessConfig), parts ...sidecar.Supervised) *running {
	t.Helper()
	r := &running{Bed: b, ended: make(chan struct{}), clock: clocktesting.NewFakeClock(time.Now()), metrics: sidecar.NewMetrics()}
	r.config = sidecar.ProcessConfig{
		Leases: sidecar.LeaseConfig{
			Client: b.Kube.CoordinationV1(), Namespace: "csi", Identity: "pod_1",
			Duration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 20 * time.Millisecond,
		},
		Health: &sidecar.Health{}, Metrics: r.metrics, Log: b.Env.Log, Clock: r.clock,
	}
	if change != nil {
		change(&r.config)
	}
	ctx, stop := context.WithCancel(b.Ctx)
	r.stop = stop
	go func() {
		defer close(r.ended)
		r.err = sidecar.Run(ctx, r.config, parts)
	}()
	t.Cleanup(func() { stop(); <-r.ended })
	return r
}

// end waits for the end of the process.
func (r *running) end() error {
	r.Helper()
	select {
	case <-r.ended:
	case <-time.After(30 * time.Second):
		r.Fatal("the process does not end")
	}
	return r.err
}

func (r *running) until(what string, isSo func() bool) {
	r.Helper()
	r.Eventually(func() error {
		if !isSo() {
			return errors.New(what)
		}
		return nil
	})
}

func (r *running) phases() map[string]sidecar.Phase {
	phases := map[string]sidecar.Phase{}
	for _, c := range r.config.Health.Components() {
		phases[c.Name] = c.Phase
	}
	return phases
}

// value is that of a metric with one label.
func (r *running) value(name, label string) float64 {
	r.Helper()
	families, err := r.metrics.Gatherer().Gather()
	if err != nil {
		r.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && len(m.GetLabel()) > 0 && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return -1
}

func TestAComponentThatFailsIsStartedAgainAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func() error{
		"error":   func() error { return errors.New("no luck") },
		"panic":   func() error { panic("no luck") },
		"no word": func() error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			weak := &part{name: "weak", run: func(ctx context.Context, start int) error {
				if start <= 3 {
					return fails()
				}
				return untilTold(ctx, start)
			}}
			sound := &part{name: "sound", run: untilTold}
			r := start(t, sidecartest.New(t, csiclient.Info{}), nil, sidecar.Supervised{Component: weak}, sidecar.Supervised{Component: sound})
			for i, delay := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
				r.until("it waits", r.clock.HasWaiters)
				r.clock.Step(delay - time.Millisecond)
				if weak.started() != i+1 {
					t.Errorf("started again before %s", delay)
				}
				r.clock.Step(time.Millisecond)
				r.until("it is started again", func() bool { return weak.started() == i+2 })
			}
			r.until("it runs", func() bool { return r.phases()["weak"] == sidecar.Running })
			r.until("the other runs", sound.isLive)
			if sound.started() != 1 || !sound.isLive() {
				t.Errorf("the other was started %d times", sound.started())
			}
			if got := r.value("csi_sidecar_component_failures_total", "weak"); got != 3 {
				t.Errorf("failures counted: %v", got)
			}
			if got := strings.Count(r.Log(), "Component failed, it will be started again"); got != 3 {
				t.Errorf("logged %d times:\n%s", got, r.Log())
			}
			if name == "panic" && !strings.Contains(r.Log(), "process_test.go") {
				t.Errorf("no stack:\n%s", r.Log())
			}
			r.stop()
			if err := r.end(); err != nil || weak.isLive() || sound.isLive() {
				t.Errorf("end: %v", err)
			}
			if r.phases()["weak"] != sidecar.Ended || r.value("csi_sidecar_component_up", "sound") != 0 {
				t.Errorf("phases: %v", r.phases())
			}
		})
	}
}

func TestFailuresOfLongAgoAreForgotten(t *testing.T) {
	t.Parallel()
	fail := make(chan struct{})
	weak := &part{name: "weak", run: func(ctx context.Context, _ int) error {
		select {
		case <-fail:
			return errors.New("no luck")
		case <-ctx.Done():
			return nil
		}
	}}
	r := start(t, sidecartest.New(t, csiclient.Info{}), nil, sidecar.Supervised{Component: weak})
	starts := 1
	again := func(delay time.Duration) {
		t.Helper()
		r.until("it runs", func() bool { return weak.started() == starts && r.phases()["weak"] == sidecar.Running })
		fail <- struct{}{}
		r.until("it waits", r.clock.HasWaiters)
		r.clock.Step(delay - time.Millisecond)
		if weak.started() != starts {
			t.Errorf("start %d came before %s", starts+1, delay)
		}
		r.clock.Step(time.Millisecond)
		starts++
		r.until(fmt.Sprintf("start %d after %s", starts, delay), func() bool { return weak.started() == starts })
	}
	for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		again(time.Duration(seconds) * time.Second)
	}
	r.until("it runs", func() bool { return r.phases()["weak"] == sidecar.Running })
	r.clock.Step(5 * time.Minute)
	again(time.Second)
}

func TestTheFirstFailureEndsAProcessOfOneProgram(t *testing.T) {
	t.Parallel()
	cause := errors.New("no luck")
	weak := &part{name: "weak", run: func(context.Context, int) error { return cause }}
	sound := &part{name: "sound", run: untilTold}
	r := start(t, sidecartest.New(t, csiclient.Info{}), func(c *sidecar.ProcessConfig) { c.ExitOnFailure = true },
		sidecar.Supervised{Component: sound}, sidecar.Supervised{Component: weak})
	if err := r.end(); !errors.Is(err, cause) || !strings.Contains(err.Error(), "weak") || sound.isLive() {
		t.Errorf("end: %v", err)
	}
}

func TestAComponentThatDoesNotEndEndsTheProcess(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	stuck := &part{name: "stuck", run: func(context.Context, int) error { <-release; return nil }}
	defer close(release)
	r := start(t, sidecartest.New(t, csiclient.Info{}), func(c *sidecar.ProcessConfig) { c.StopTimeout = time.Second }, sidecar.Supervised{Component: stuck})
	r.until("it runs", stuck.isLive)
	r.stop()
	r.until("it is waited for", r.clock.HasWaiters)
	r.clock.Step(time.Second)
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "stuck did not end within 1s") {
		t.Errorf("end: %v", err)
	}
}

func TestSettingsOfLeasesAreChecked(t *testing.T) {
	t.Parallel()
	b := sidecartest.New(t, csiclient.Info{})
	sound := func(c *sidecar.LeaseConfig) {
		*c = sidecar.LeaseConfig{Client: b.Kube.CoordinationV1(), Namespace: "csi", Identity: "x"}
	}
	for want, change := range map[string]func(*sidecar.LeaseConfig){
		"Client":        func(c *sidecar.LeaseConfig) { c.Client = nil },
		"Namespace":     func(c *sidecar.LeaseConfig) { c.Namespace = "" },
		"Identity":      func(c *sidecar.LeaseConfig) { c.Identity = "" },
		"Duration":      func(c *sidecar.LeaseConfig) { c.Duration = time.Millisecond },
		"RenewDeadline": func(c *sidecar.LeaseConfig) { c.Duration, c.RenewDeadline = 15*time.Second, 20*time.Second },
		"RetryPeriod":   func(c *sidecar.LeaseConfig) { c.RenewDeadline, c.RetryPeriod = 10*time.Second, 9*time.Second },
	} {
		config := sidecar.ProcessConfig{Log: b.Env.Log}
		sound(&config.Leases)
		change(&config.Leases)
		err := sidecar.Run(b.Ctx, config, []sidecar.Supervised{{Component: &part{name: "x"}, Lease: "x"}})
		if err == nil || !strings.Contains(err.Error(), want+" is") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestLeasesHaveTheNamesOfUpstream(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ component, driver, want string }{
		{sidecar.Provisioner, "pd.csi.storage.gke.io", "pd-csi-storage-gke-io"},
		{sidecar.Provisioner, "example.com/nfs", "example-com-nfs"},
		{sidecar.Attacher, "pd.csi.storage.gke.io", "external-attacher-leader-pd-csi-storage-gke-io"},
		{sidecar.Resizer, "pd.csi.storage.gke.io", "external-resizer-pd-csi-storage-gke-io"},
		{sidecar.Resizer, "odd_", "external-resizer-odd-X"},
		{sidecar.Snapshotter, "pd.csi.storage.gke.io", "external-snapshotter-leader-pd-csi-storage-gke-io"},
		{sidecar.Registrar, "pd.csi.storage.gke.io", ""},
		{sidecar.LivenessProbe, "pd.csi.storage.gke.io", ""},
	} {
		if got := sidecar.LeaseName(c.component, c.driver); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.component, c.driver, got, c.want)
		}
	}
}

func names(parts ...*part) []string {
	var live []string
	for _, p := range parts {
		if p.isLive() {
			live = append(live, p.name)
		}
	}
	slices.Sort(live)
	return live
}

// wrote checks which writes a client has seen.
func wrote(client *fake.Clientset, verbs ...string) error {
	var got []string
	for _, action := range client.Actions() {
		got = append(got, action.GetVerb())
	}
	if !slices.Equal(got, verbs) {
		return fmt.Errorf("verbs %q, want %q", got, verbs)
	}
	return nil
}
