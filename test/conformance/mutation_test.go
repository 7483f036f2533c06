package conformance_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/test/conformance"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// defect is a host with one thing wrong, and a case that must notice.
type defect struct {
	name   string
	host   func(s *stack.Stack, good host.Host) host.Host
	inCase string
}

// The suite fails for a host with a defect, whichever it is.
func TestEveryDefectIsFound(t *testing.T) {
	t.Parallel()
	for _, d := range slices.Concat(wrongAnswers(), noEffects(), harms(), wrongKinds()) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s, env := newBed(t)
			env.Host = d.host(s, s.Agent)
			results, err := conformance.Run(t.Context(), env, conformance.Options{
				Run: regexp.MustCompile("^" + regexp.QuoteMeta(d.inCase) + "$"), CaseTimeout: 10 * time.Second,
			})
			if len(results) != 1 {
				t.Fatalf("%d cases are called %s", len(results), d.inCase)
			}
			found := slices.DeleteFunc(results[0].Failures, func(f string) bool { return strings.HasPrefix(f, "clean up") })
			if len(found) == 0 {
				t.Errorf("%s %s, %q, %v", results[0].Outcome, d.inCase, results[0].Notes, err)
			}
			for _, f := range found {
				t.Logf("%.200s", f)
			}
		})
	}
}

// plain wraps a host without a look at the node.
func plain(wrap func(host.Host) host.Host) func(*stack.Stack, host.Host) host.Host {
	return func(_ *stack.Stack, good host.Host) host.Host { return wrap(good) }
}
