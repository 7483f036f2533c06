package sidecartest

import (
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// gate counts the steps of a component to the outside, the writes to the API
// server and the CSI calls, and refuses them from a given one on.
type gate struct {
	mu     sync.Mutex
	steps  int
	limit  int // -1 for none
	cut    chan struct{}
	refuse []refusal
}

// refusal is a kind of write that is answered with an error.
type refusal struct {
	write string
	times int // below 0 for ever
	err   error
}

func newGate() *gate { return &gate{limit: -1, cut: make(chan struct{})} }

// pass counts a step, and reports whether it may be taken.
func (g *gate) pass() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limit >= 0 && g.steps >= g.limit {
		return false
	}
	g.steps++
	if g.steps == g.limit {
		close(g.cut)
	}
	return true
}

// refused is the error for a write, if there is one.
func (g *gate) refused(action clienttesting.Action) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := describe(action)
	for i := range g.refuse {
		if r := &g.refuse[i]; r.times != 0 && strings.HasPrefix(text, r.write) {
			r.times--
			return r.err
		}
	}
	return nil
}

// guard puts the gate before a client.
func (g *gate) guard(server *clienttesting.Fake) {
	server.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if err := g.refused(action); err != nil {
			return true, nil, err
		}
		switch action.GetVerb() {
		case "get", "list", "watch":
			return false, nil, nil
		}
		if !g.pass() {
			return true, nil, apierrors.NewServiceUnavailable("cut off")
		}
		return false, nil, nil
	})
}

// Refuse has the next times requests fail that begin with write, which is
// spelled as in Writes: "patch persistentvolumes/status pv-1", or less of it.
// Below 0 all fail.
func (b *Bed) Refuse(write string, times int, err error) {
	b.gate.mu.Lock()
	defer b.gate.mu.Unlock()
	b.gate.refuse = append(b.gate.refuse, refusal{write, times, err})
}

// CutAfter lets so many more writes and CSI calls through and refuses all
// after them, as if the process had been killed there: the API server is
// unavailable, and a CSI call does not reach the driver. What is given back is
// closed when the last one was let through. Steps counts those of a run.
func (b *Bed) CutAfter(steps int) <-chan struct{} {
	b.gate.mu.Lock()
	defer b.gate.mu.Unlock()
	b.gate.cut = make(chan struct{})
	b.gate.limit = b.gate.steps + steps
	if steps == 0 {
		close(b.gate.cut)
	}
	return b.gate.cut
}

// Mend ends what CutAfter and Refuse began.
func (b *Bed) Mend() {
	b.gate.mu.Lock()
	defer b.gate.mu.Unlock()
	b.gate.limit, b.gate.refuse = -1, nil
}

// Steps is how many writes and CSI calls were let through so far.
func (b *Bed) Steps() int {
	b.gate.mu.Lock()
	defer b.gate.mu.Unlock()
	return b.gate.steps
}
