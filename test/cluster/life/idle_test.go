package life

import (
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// A minute, less the moment in which a renewal of the next one could fall.
const idleTime = time.Minute - 500*time.Millisecond

// renewalsMax is how many requests a process with four components makes in it.
const renewalsMax = 12

// idle counts what sidecars ask while there is nothing to do: leases, and no more
// often than all components together may.
func (b *bed) idle(t *testing.T, targets []*target) {
	t.Helper()
	time.Sleep(15 * time.Second) // events of the last scene, and the journal, which is cleared after a while of quiet
	begin := time.Now()
	time.Sleep(idleTime)
	renewals := map[string]int{} // by driver
	for _, r := range b.Requests(cluster.AccountUser(cluster.Namespace, cluster.SidecarAccount)) {
		if r.Time.Before(begin) || r.Time.After(begin.Add(idleTime)) {
			continue
		}
		if r.Verb == "watch" {
			continue // the server ends each watch after 5 to 10 minutes, and it is begun again
		}
		driver := ""
		for _, g := range targets {
			if r.Resource == "leases" && r.Verb == "update" && strings.HasSuffix(r.Name, strings.ReplaceAll(g.name, ".", "-")) {
				driver = g.name
			}
		}
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
