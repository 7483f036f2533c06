package files

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/sim"
)

// change is an operation of the agent below root\a\b.
type change struct {
	name string
	do   func(a *agent.Agent, ctx context.Context, root string) error
}

func changes() []change {
	return []change{
		{"Mkdir", func(a *agent.Agent, ctx context.Context, root string) error {
			return a.Mkdir(ctx, root+`\a\b\deep\er\new`)
		}},
		{"Rmdir", func(a *agent.Agent, ctx context.Context, root string) error {
			return a.Rmdir(ctx, root+`\a\b\empty`, false)
		}},
		{"Rmdir by force", func(a *agent.Agent, ctx context.Context, root string) error {
			return a.Rmdir(ctx, root+`\a\b\tree`, true)
		}},
		{"RmdirContents", func(a *agent.Agent, ctx context.Context, root string) error {
			return a.RmdirContents(ctx, root+`\a\b\tree`)
		}},
		{"CreateSymlink", func(a *agent.Agent, ctx context.Context, root string) error {
			return a.CreateSymlink(ctx, root+`\source`, root+`\a\b\link`)
		}},
	}
}

// twin makes the same tree inside and outside the working folder, so that a call that is
// led astray finds what it looks for.
func (l *lab) twin(folder string) {
	l.Helper()
	l.OK(l.Control.MakeDir(context.Background(), folder+`\b\empty`))
	l.write(folder+`\b\tree\sub\file`, "inside or outside")
}

// renew makes the working folder as it is before a change.
func (l *lab) renew() {
	l.Helper()
	l.wipe(l.path("root"))
	l.OK(l.Control.MakeDir(context.Background(), l.below("root", "source")))
	l.twin(l.below("root", "a"))
}

// Invariant 3 and C096, through the calls of Windows: between any two calls of an
// operation a folder on its path is swapped for a link to a tree of the same form
// outside. Nothing there changes.
func TestC096_Invariant3_SwapBetweenCalls(t *testing.T) {
	const stride = 3 // most calls of the product are several of Windows, and as many of the node
	l := open(t)
	a := l.agent()
	l.twin(l.below("outside", "a"))
	outside := l.look(l.path("outside"))
	for i, c := range changes() {
		l.renew()
		l.OK(l.Control.RecordCalls(t.Context(), true))
		l.OK(c.do(a, t.Context(), l.below("root")))
		log, err := l.Control.CallLog(t.Context())
		l.OK(err)
		if len(log) < 10 {
			t.Errorf("%s makes %d calls", c.name, len(log))
		}
		for nth := i % stride; nth < len(log); nth += stride {
			folder := [...]string{`a`, `a\b`}[nth%2]
			l.renew()
			err := l.swapBefore(nth+1, folder, func() error { return c.do(a, t.Context(), l.below("root")) })
			if now := l.look(l.path("outside")); now != outside {
				t.Fatalf("%s, %s swapped before call %d (%s): %v; outside there was\n%s\nand is\n%s",
					c.name, folder, nth+1, log[nth].Name, err, outside, now)
			}
		}
	}
}

// swapBefore runs an operation, holds it at its call number nth, swaps a folder for a
// link, and lets it go on.
func (l *lab) swapBefore(nth int, folder string, do func() error) error {
	l.Helper()
	ctx := context.Background()
	l.OK(l.Control.RecordCalls(ctx, true)) // empties the log
	l.OK(l.Control.AddFault(ctx, sim.Fault{Call: "win32.*", Nth: nth, Hang: true}))
	done := make(chan error, 1)
	go func() { done <- do() }()
	for end := time.Now().Add(waitMax); ; time.Sleep(time.Millisecond) {
		log, err := l.Control.CallLog(ctx)
		l.OK(err)
		if len(log) >= nth-1 {
			break
		}
		if time.Now().After(end) {
			l.Fatalf("the operation made %d calls, want %d", len(log), nth-1)
		}
	}
	_, err := l.Control.SwapForLink(ctx, l.below("root", folder), l.below("outside", folder))
	l.OK(err)
	l.OK(l.Control.ClearFaults(ctx))
	select {
	case err := <-done:
		return err
	case <-time.After(waitMax):
		l.Fatal("the operation does not end")
		return nil
	}
}

// The same without an order: somebody swaps folders as fast as can be while the agent
// works on them.
func TestC096_Invariant3_FreeRace(t *testing.T) {
	l := open(t)
	a := l.agent()
	l.twin(l.below("outside", "a"))
	outside := l.look(l.path("outside"))
	for round := range 30 {
		l.renew()
		var running sync.WaitGroup
		for _, c := range changes() {
			running.Go(func() { _ = c.do(a, context.Background(), l.below("root")) }) // what it says is its own matter
		}
		folder := [...]string{`a`, `a\b`}[round%2]
		time.Sleep(time.Duration(round) * time.Millisecond / 2)
		_, err := l.Control.SwapForLink(t.Context(), l.below("root", folder), l.below("outside", folder))
		l.OK(err)
		running.Wait()
		if now := l.look(l.path("outside")); now != outside {
			t.Fatalf("round %d: outside there was\n%s\nand is\n%s", round, outside, now)
		}
	}
}

// What the test would see if the agent walked by text: a call that follows the swapped
// folder does reach the outside.
func TestSwapLeadsOutside(t *testing.T) {
	l := open(t)
	l.twin(l.below("root", "a"))
	l.twin(l.below("outside", "a"))
	outside := l.look(l.path("outside"))
	_, err := l.Control.SwapForLink(t.Context(), l.below("root", "a"), l.below("outside", "a"))
	l.OK(err)
	l.OK(l.mkdir(l.path("root", "a", "b", "new")))
	if l.look(l.path("outside")) == outside {
		t.Error("nothing reached the outside")
	}
}
