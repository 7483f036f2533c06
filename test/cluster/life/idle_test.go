package life

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// A minute, less the moment in which a renewal of the next one could fall.
const idleTime = time.Minute - 500*time.Millisecond

// renewalsMax is how many requests a process with four components makes in it.
const renewalsMax = 12

// quietTime without requests is the end of all work: of events of the last scene, and
// of the journal, which is cleared after a while without any.
const quietTime = 15 * time.Second

// quiet waits until sidecars have asked for nothing but leases for a while.
func (b *bed) quiet(t *testing.T, targets []*target) {
	t.Helper()
	began := time.Now()
	b.For(t).Wait("the sidecars are quiet", waitTime, func(context.Context) error {
		last := began
		for _, r := range b.Requests(cluster.AccountUser(cluster.Namespace, cluster.SidecarAccount)) {
			if r.Verb != "watch" && renewed(r, targets) == "" && r.Time.After(last) {
				last = r.Time
			}
		}
		if since := time.Since(last); since < quietTime {
			time.Sleep(time.Second) // a look is a whole log
			return fmt.Errorf("the last request was %v ago", since)
		}
		return nil
	})
}

// renewed is the driver whose sidecar's lease a request renews, or none.
func renewed(r cluster.Request, targets []*target) (driver string) {
	for _, g := range targets {
		if r.Resource == "leases" && r.Verb == "update" && strings.HasSuffix(r.Name, strings.ReplaceAll(g.name, ".", "-")) {
			driver = g.name
		}
	}
	return driver
}

// idle counts what sidecars ask while there is nothing to do: leases, and no more
// often than all components together may.
func (b *bed) idle(t *testing.T, targets []*target) {
	t.Helper()
	b.quiet(t, targets)
	begin := time.Now()
	time.Sleep(idleTime)
	renewals := map[string]int{} // by driver
	for _, r := range b.Requests(cluster.AccountUser(cluster.Namespace, cluster.SidecarAccount)) {
		if r.Time.Before(begin) || r.Time.After(begin.Add(idleTime)) || r.Verb == "watch" {
			continue // the server ends each watch after 5 to 10 minutes, and it is begun again
		}
		driver := renewed(r, targets)
		if driver == "" {
			t.Errorf("asked while idle: %+v", r)
		}
		renewals[driver]++
	}
	for _, g := range targets {
		if count := renewals[g.name]; count == 0 || count > renewalsMax {
			t.Errorf("%s: %d renewals, at most %d", g.name, count, renewalsMax)
		}
	}
	t.Logf("requests in a minute: %v", renewals)
}
