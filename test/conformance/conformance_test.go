package conformance_test

import (
	"testing"

	"github.com/csi-windows/csi-windows/test/conformance"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// The agent in process passes, and so does the agent at the other end of sockets.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*stack.Stack, *conformance.Env){
		"in process":   func(s *stack.Stack, env *conformance.Env) { env.Host = s.Agent },
		"over sockets": func(s *stack.Stack, env *conformance.Env) { env.Host = s.Client() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, env := newBed(t)
			connect(s, &env)
			results, err := conformance.Run(t.Context(), env, conformance.Options{})
			mustPass(t, results, err)
			if len(results) != len(conformance.Cases()) {
				t.Errorf("%d results of %d cases", len(results), len(conformance.Cases()))
			}
			isClean(t, s)
		})
	}
}
