package sidecar_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// heldBy is a lease that another process renewed just now, or that was ours.
func heldBy(name, holder string, seconds int32) *coordinationv1.Lease {
	now, transitions := metav1.NowMicro(), int32(7)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "csi"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now, LeaseTransitions: &transitions,
		},
	}
}

func (r *running) lease(name string) *coordinationv1.Lease {
	r.Helper()
	lease, err := r.Kube.CoordinationV1().Leases("csi").Get(r.Ctx, name, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return lease
}

// leaseWrites counts the writes of leases.
func leaseWrites(b *sidecartest.Bed) int {
	count := 0
	for _, action := range b.Kube.Actions() {
		if action.GetResource().Resource == "leases" && action.GetVerb() != "get" {
			count++
		}
	}
	return count
}

func TestAComponentRunsWhileItsLeaseIsHeldAndGivesItBack(t *testing.T) {
	t.Parallel()
	one, two := &part{name: "one", run: untilTold}, &part{name: "two", run: untilTold}
	b := sidecartest.New(t, csiclient.Info{}, heldBy("taken", "another", 3600))
	r := start(t, b, func(c *sidecar.ProcessConfig) { c.Leases.Labels = map[string]string{"team": "storage"} },
		sidecar.Supervised{Component: one, Lease: "free"}, sidecar.Supervised{Component: two, Lease: "taken"})
	r.until("the first runs", one.isLive)
	r.until("the second waits", func() bool { return r.phases()["two"] == sidecar.Waiting })
	lease := r.lease("free")
	if *lease.Spec.HolderIdentity != "pod-1" || lease.Labels["team"] != "storage" || *lease.Spec.LeaseDurationSeconds != 30 {
		t.Errorf("lease: %v", lease)
	}
	if r.value("leader_election_master_status", "free") != 1 {
		t.Error("the metric does not say that it is held")
	}
	writes := leaseWrites(b)
	r.until("it is renewed", func() bool { return leaseWrites(b) > writes+1 })
	if two.started() != 0 || one.started() != 1 {
		t.Errorf("started %d and %d times", one.started(), two.started())
	}
	r.stop()
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if lease := r.lease("free"); lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		t.Errorf("still held by %s", *lease.Spec.HolderIdentity)
	}
	if holder := r.lease("taken").Spec.HolderIdentity; *holder != "another" {
		t.Errorf("the other's lease is held by %s", *holder)
	}
	if len(b.Events()) > 0 || slices.ContainsFunc(b.Kube.Actions(), func(a clienttesting.Action) bool { return a.GetResource().Resource == "events" }) {
		t.Error("events about leases")
	}
}

// A process that comes back under the same identity need not wait.
func TestALeaseOfOnesOwnIsResumedAtOnce(t *testing.T) {
	t.Parallel()
	one := &part{name: "one", run: untilTold}
	r := start(t, sidecartest.New(t, csiclient.Info{}, heldBy("own", "pod-1", 3600)), nil, sidecar.Supervised{Component: one, Lease: "own"})
	r.until("it runs", one.isLive)
	if transitions := r.lease("own").Spec.LeaseTransitions; *transitions != 7 {
		t.Errorf("the lease changed hands: %d", *transitions)
	}
}

func TestAComponentThatFailsGivesItsLeaseToAnother(t *testing.T) {
	t.Parallel()
	weak := &part{name: "weak", run: func(context.Context, int) error { return errors.New("no luck") }}
	r := start(t, sidecartest.New(t, csiclient.Info{}), nil, sidecar.Supervised{Component: weak, Lease: "own"})
	r.until("it waits", r.clock.HasWaiters)
	if holder := r.lease("own").Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("still held by %s", *holder)
	}
}

// A lease that is lost stops its component, which runs again when the lease is
// back; the others and the process go on.
func TestALostLeaseStopsItsComponentOnly(t *testing.T) {
	t.Parallel()
	one, two := &part{name: "one", run: untilTold}, &part{name: "two", run: untilTold}
	b := sidecartest.New(t, csiclient.Info{})
	r := start(t, b, func(c *sidecar.ProcessConfig) {
		c.Leases.Duration, c.Leases.RenewDeadline = 4*time.Second, 3*time.Second // the second has to be renewed within it
	}, sidecar.Supervised{Component: one, Lease: "one"}, sidecar.Supervised{Component: two, Lease: "two"})
	r.until("both run", func() bool { return len(names(one, two)) == 2 })
	b.Refuse("update leases csi/one", -1, apierrors.NewServiceUnavailable("paused"))
	r.until("the first stopped", func() bool { return !one.isLive() && r.phases()["one"] == sidecar.Waiting })
	if !two.isLive() {
		t.Error("the second stopped too")
	}
	b.Mend()
	r.until("the first runs again", func() bool { return one.started() == 2 && one.isLive() })
	if two.started() != 1 || strings.Contains(r.Log(), "Component failed") {
		t.Errorf("the second was started %d times:\n%s", two.started(), r.Log())
	}
	for _, c := range r.config.Health.Components() {
		if c.Failures != 0 {
			t.Errorf("a lost lease is no failure: %+v", c)
		}
	}
}

// However many components have leases, the renewals of all cost what those of
// one cost, and do not come together.
func TestLeasesOfSeveralComponentsCostWhatOneCosts(t *testing.T) {
	t.Parallel()
	b := sidecartest.New(t, csiclient.Info{})
	var parts []sidecar.Supervised
	for _, name := range []string{"one", "two", "three", "four"} {
		parts = append(parts, sidecar.Supervised{Component: &part{name: name, run: untilTold}, Lease: name})
	}
	r := start(t, b, func(c *sidecar.ProcessConfig) {
		c.Leases.Duration, c.Leases.RenewDeadline, c.Leases.RetryPeriod = 0, 0, 0
	}, parts...)
	r.until("all run", func() bool {
		for _, p := range parts {
			if !p.Component.(*part).isLive() {
				return false
			}
		}
		return true
	})
	if got := *r.lease("three").Spec.LeaseDurationSeconds; got != 60 {
		t.Errorf("a lease lasts %d s", got)
	}
	// Taking each costs one write; the first of them is renewed at once.
	if writes := leaseWrites(b); writes > 5 {
		t.Errorf("%d writes", writes)
	}
	r.stop()
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestHealthSpeaksOfLeasesAndComponents(t *testing.T) {
	t.Parallel()
	weak := &part{name: "weak", run: func(context.Context, int) error { return errors.New("no\nluck") }}
	r := start(t, sidecartest.New(t, csiclient.Info{}), nil,
		sidecar.Supervised{Component: weak}, sidecar.Supervised{Component: &part{name: "sound", run: untilTold}, Lease: "own"})
	r.until("one failed and one runs", func() bool {
		return r.phases()["weak"] == sidecar.Failed && r.phases()["sound"] == sidecar.Running
	})
	url := serve(t, &sidecar.HTTP{Health: r.config.Health, Metrics: r.metrics, Log: r.Env.Log})
	for path, want := range map[string][]string{
		sidecar.HealthPath:         {"ok\n", "weak: failed since", "failures: 1, the last: no; luck", "sound: running since"},
		sidecar.LeaderHealthPath:   {"ok"},
		sidecar.MetricsPathDefault: {"csi_sidecar_component_up{component=\"sound\"} 1", "process_start_time_seconds", "go_goroutines"},
	} {
		answer, body := get(t, url+path)
		for _, one := range want {
			if answer != http.StatusOK || !strings.Contains(body, one) {
				t.Errorf("%s: %d, without %q:\n%s", path, answer, one, body)
			}
		}
	}
}
