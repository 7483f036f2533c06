package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// logMax bounds the call log; the oldest lines go first.
const logMax = 20000

// gate is what every call passes. While nothing is armed that costs one atomic
// load. It never holds the node's lock, so a call that waits in it delays
// nobody else.
type gate struct {
	armed atomic.Bool // faults are set or the log is on

	mu      sync.Mutex
	faults  []*armedFault
	release chan struct{} // closed to let hanging calls go
	logging bool
	log     []Call
	total   int // calls ever logged
}

type armedFault struct {
	Fault
	seen int
}

// site names a call for the gate; the name is put together only when needed.
type site struct {
	prefix, class, method string
	code                  uint32
	object                string
	params                cim.Values
}

func (s site) name() string {
	switch {
	case s.code != 0:
		return fmt.Sprintf("%s 0x%X", s.prefix, s.code)
	case s.method != "":
		return s.prefix + " " + s.class + "." + s.method
	case s.class != "":
		return s.prefix + " " + s.class
	}
	return s.prefix
}

// returnValueError carries a Fault's ReturnValue through the gate.
type returnValueError struct{ value uint32 }

func (e *returnValueError) Error() string { return fmt.Sprintf("return value %d", e.value) }

// gated passes one call through the gate.
func gated[T any](ctx context.Context, g *gate, s site, do func() (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		var zero T
		return zero, err
	}
	if !g.armed.Load() {
		return do()
	}
	var result T
	err := g.pass(ctx, s, func() error {
		var err error
		result, err = do()
		return err
	})
	return result, err
}

// pass runs a call with its faults and logs it.
func (g *gate) pass(ctx context.Context, s site, do func() error) error {
	name, begin := s.name(), time.Now()
	due, release := g.due(name, s.object)
	err := apply(ctx, due, release, false, name, s.object)
	if err == nil {
		err = do()
		if after := apply(ctx, due, release, true, name, s.object); after != nil {
			err = after
		}
	}
	g.record(name, s, err, time.Since(begin))
	return err
}

// due returns the faults that apply to this call.
func (g *gate) due(name, object string) ([]Fault, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var due []Fault
	for _, f := range g.faults {
		if !globMatch(f.Call, name) || f.Object != "" && !globMatch(f.Object, object) {
			continue
		}
		f.seen++
		first := max(f.Nth, 1)
		count := f.Count
		if count == 0 {
			count = 1
		}
		if f.seen >= first && (count < 0 || f.seen < first+count) {
			due = append(due, f.Fault)
		}
	}
	return due, g.release
}

// apply runs the faults of one phase: before or after the call's effect.
func apply(ctx context.Context, due []Fault, release <-chan struct{}, after bool, name, object string) error {
	for i := range due {
		f := &due[i]
		if f.After != after {
			continue
		}
		if f.Hook != nil {
			f.Hook()
		}
		if f.Hang {
			<-release
		}
		if err := wait(ctx, f.Latency); err != nil {
			return err
		}
		if err := f.failure(name, object); err != nil {
			return err
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failure is the error the fault asks for, in the form of the call's interface.
func (f *Fault) failure(name, object string) error {
	isCIM := strings.HasPrefix(name, "cim.")
	op, rest, _ := strings.Cut(strings.TrimPrefix(name, "cim."), " ")
	switch {
	case f.CIM != nil && isCIM:
		e := *f.CIM
		if e.Op == "" {
			e.Op, e.Object = op, rest
		}
		return &e
	case f.ReturnValue != 0:
		return &returnValueError{f.ReturnValue}
	case f.Win32 != 0 && isCIM:
		return &cim.Error{Op: op, Object: rest, HRESULT: cim.Failed, Win32: f.Win32}
	case f.Win32 != 0:
		return &win32.Error{Call: strings.TrimPrefix(name, "win32."), Object: object, Code: f.Win32}
	}
	return nil
}

func (g *gate) record(name string, s site, err error, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.logging {
		return
	}
	c := Call{Sequence: g.total, Name: name, Object: s.object, Params: withoutSecrets(s.params), Duration: d}
	if err != nil {
		c.Error = err.Error()
	}
	g.total++
	if len(g.log) == logMax {
		g.log = append(g.log[:0], g.log[logMax/10:]...)
	}
	g.log = append(g.log, c)
}

// withoutSecrets copies in-parameters for the log.
func withoutSecrets(in cim.Values) map[string]any {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]any, len(in))
	for name, value := range in {
		switch strings.ToLower(name) {
		case "credential", "chapsecret":
			value = "(secret)"
		}
		out[name] = value
	}
	return out
}

// rearm sets the fast-path flag; the caller holds g.mu.
func (g *gate) rearm() { g.armed.Store(g.logging || len(g.faults) > 0) }

// AddFault implements FaultController.
func (n *Node) AddFault(_ context.Context, fault Fault) error {
	if fault.Call == "" {
		return errors.New("add fault: no call selected")
	}
	g := &n.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.release == nil {
		g.release = make(chan struct{})
	}
	g.faults = append(g.faults, &armedFault{Fault: fault})
	g.rearm()
	return nil
}

// ClearFaults implements FaultController.
func (n *Node) ClearFaults(context.Context) error {
	g := &n.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = nil
	if g.release != nil {
		close(g.release)
		g.release = nil
	}
	g.rearm()
	return nil
}

// RecordCalls implements FaultController.
func (n *Node) RecordCalls(_ context.Context, on bool) error {
	g := &n.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.logging, g.log = on, nil
	g.rearm()
	return nil
}

// CallLog implements FaultController.
func (n *Node) CallLog(context.Context) ([]Call, error) {
	g := &n.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Call(nil), g.log...), nil
}

// globMatch compares without case; * stands for any text, ? for one byte.
func globMatch(pattern, text string) bool {
	pattern, text = strings.ToLower(pattern), strings.ToLower(text)
	star, mark, p, t := -1, 0, 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
