package sidecar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// How a lease is kept when only one component of a process has one. With more
// of them each is renewed so many times less often, so that all together cost
// what one costs.
const (
	leaseDurationDefault = 15 * time.Second
	renewDeadlineDefault = 10 * time.Second
	retryPeriodDefault   = 5 * time.Second
)

// leaseOverdueMax is how long after its end a lease that was not renewed may
// still be thought to be held before the process is reported as unhealthy.
const leaseOverdueMax = 20 * time.Second

// releaseTimeout bounds the request that gives a lease back at the end.
const releaseTimeout = 5 * time.Second

// errLeaseLost is the end of a run whose lease could not be renewed in time.
var errLeaseLost = errors.New("the lease could not be renewed in time")

// LeaseConfig says how leases are kept.
type LeaseConfig struct {
	// Client is asked for the leases. One of its own keeps other requests from
	// holding up renewals.
	Client coordination.LeasesGetter
	// Namespace is where the leases are.
	Namespace string
	// Identity tells this process from the other candidates. A process that
	// comes back under the same identity has its leases again at once.
	Identity string
	// Duration is how long a lease is respected after its holder was last heard
	// of, RenewDeadline how long the holder goes on trying to renew it, and
	// RetryPeriod the interval of renewals and of tries to get a lease. What is
	// 0 is 15, 10 and 5 seconds for each component that has a lease, or as near to
	// it as goes together with what is given.
	Duration, RenewDeadline, RetryPeriod time.Duration
	// Labels are set on the leases that are held.
	Labels map[string]string
}

// withDefaults fills in what was not given, for so many leases.
func (c LeaseConfig) withDefaults(leases int) (LeaseConfig, error) {
	if leases == 0 {
		return c, nil
	}
	if err := c.Check(leases); err != nil {
		return c, err
	}
	c.fill(time.Duration(leases))
	switch {
	case c.Client == nil:
		return c, errors.New("LeaseConfig.Client is missing")
	case c.Namespace == "":
		return c, errors.New("LeaseConfig.Namespace is empty")
	case c.Identity == "":
		return c, errors.New("LeaseConfig.Identity is empty")
	}
	c.Identity = leaseSafe(c.Identity)
	return c, nil
}

// Leases is whose the settings of a LeaseConfig are in a SettingError.
const Leases = "leases"

// Check is the error that the times of a process with so many leases end it with.
func (c LeaseConfig) Check(leases int) error {
	if leases == 0 {
		return nil
	}
	c.fill(time.Duration(leases))
	wrong := func(field string, value time.Duration, limit string, others ...string) error {
		return &SettingError{Of: Leases, Field: field, Value: value, Must: limit, Others: others}
	}
	switch {
	case c.Duration < time.Second:
		return wrong("Duration", c.Duration, "at least 1s")
	case c.RenewDeadline >= c.Duration:
		return wrong("RenewDeadline", c.RenewDeadline, fmt.Sprintf("less than %%s, %s", c.Duration), "Duration")
	case c.RetryPeriod <= 0 || float64(c.RenewDeadline) <= leaderelection.JitterFactor*float64(c.RetryPeriod):
		return wrong("RetryPeriod", c.RetryPeriod,
			fmt.Sprintf("above 0 and less than %%s, %s, divided by %v", c.RenewDeadline, leaderelection.JitterFactor), "RenewDeadline")
	}
	return nil
}

// fill sets what was not given: so many times what one lease has, but never what
// contradicts what was given.
func (c *LeaseConfig) fill(leases time.Duration) {
	isDurationGiven, isDeadlineGiven := c.Duration != 0, c.RenewDeadline != 0
	if !isDeadlineGiven {
		c.RenewDeadline = renewDeadlineDefault * leases
		if c.RetryPeriod != 0 {
			c.RenewDeadline = max(c.RenewDeadline, 2*c.RetryPeriod)
		}
		if isDurationGiven {
			c.RenewDeadline = min(c.RenewDeadline, c.Duration*2/3)
		}
	}
	if !isDurationGiven {
		c.Duration = max(leaseDurationDefault*leases, c.RenewDeadline*3/2)
	}
	if c.RetryPeriod == 0 {
		c.RetryPeriod = min(retryPeriodDefault*leases, c.RenewDeadline/2)
	}
}

// LeaseName is the name of a component's lease, the same as that of the
// upstream program, so that either waits for the other in a rolling upgrade.
// It is empty for a component that upstream runs without a lease.
//
// Source: the calls of RunWithLeaderElection in external-provisioner v6.4.0,
// external-attacher v4.13.0, external-resizer v2.3.0 and csi-snapshotter
// v8.7.0; the clean-up of names in csi-lib-utils v0.25.0.
func LeaseName(component, driver string) string {
	switch component {
	case Provisioner:
		return leaseSafe(driver)
	case Attacher:
		return leaseSafe("external-attacher-leader-" + driver)
	case Resizer:
		return leaseSafe("external-resizer-" + leaseSafe(driver))
	case Snapshotter:
		return leaseSafe("external-snapshotter-leader-" + driver)
	case DriverObject:
		return leaseSafe("csi-sidecar-csidriver-" + driver)
	default:
		return ""
	}
}

// leaseSafe is a name in which every character but letters, digits and dashes
// has become a dash.
func leaseSafe(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
	if strings.HasSuffix(name, "-") {
		name += "X"
	}
	return name
}

// lease is one campaign for a lease.
type lease struct {
	lock    *resourcelock.LeaseLock
	elector *leaderelection.LeaderElector
	// held gets the context that ends with the lease.
	held chan context.Context
	// ended is closed when nothing renews the lease any more.
	ended chan struct{}
	stop  context.CancelFunc
}

// campaign begins to try for a lease. Renewals are put off by spread once, so
// that those of several components do not come together.
func (p *process) campaign(ctx context.Context, name string, spread time.Duration) (*lease, error) {
	c := p.config.Leases
	l := &lease{held: make(chan context.Context, 1), ended: make(chan struct{})}
	l.lock = &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}, Client: c.Client, Labels: c.Labels,
		// No recorder: who holds a lease stands in it, and events cost requests.
		LockConfig: resourcelock.ResourceLockConfig{Identity: c.Identity},
	}
	var err error
	l.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &spreadLock{Interface: l.lock, spread: spread}, Name: name,
		LeaseDuration: c.Duration, RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) { l.held <- held },
			OnStoppedLeading: func() {},
		},
		// The library gives a lease back before it says that it was lost, and
		// tries for as long as it tried to renew it: end does it in order.
		ReleaseOnCancel: false,
	})
	if err != nil {
		return nil, fmt.Errorf("lease %s: %w", name, err)
	}
	// The end of the process must not end the lease before the component.
	elect, stop := context.WithCancel(context.WithoutCancel(logr.NewContextWithSlogLogger(ctx, p.log)))
	l.stop = stop
	go func() {
		defer close(l.ended)
		l.elector.Run(elect)
	}()
	return l, nil
}

// end ends the campaign, and gives the lease back so that another candidate
// need not wait until it runs out.
func (l *lease) end(ctx context.Context, isLost bool) error {
	l.stop()
	<-l.ended
	if isLost || !l.elector.IsLeader() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	record, _, err := l.lock.Get(ctx)
	if err != nil || record.HolderIdentity != l.lock.Identity() {
		return err
	}
	now := metav1.Now()
	return l.lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
	})
}

// spreadLock puts the first renewal of a lease off.
type spreadLock struct {
	resourcelock.Interface
	spread  time.Duration
	isTaken bool
}

// Create implements resourcelock.Interface.
func (l *spreadLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	l.isTaken = err == nil
	return err
}

// Update implements resourcelock.Interface.
func (l *spreadLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.isTaken && l.spread > 0 {
		timer := time.NewTimer(l.spread)
		defer timer.Stop()
		l.spread = 0
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := l.Interface.Update(ctx, record)
	l.isTaken = l.isTaken || err == nil
	return err
}
