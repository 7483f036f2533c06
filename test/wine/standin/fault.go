package standin

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// Kinds of faults: what the provider behind a stand-in does.
const (
	// FaultHang gives no answer until the faults are reset; then the connection ends.
	FaultHang = "hang"
	// FaultDie ends the connection without an answer.
	FaultDie = "die"
	// FaultSlow answers after a delay.
	FaultSlow = "slow"
	// FaultGarbage answers with success and bytes that make no sense.
	FaultGarbage = "garbage"
	// FaultNull answers with every property and out-parameter NULL.
	FaultNull = "null"
	// FaultReturn lets a method run and answers with a return value of the
	// fault's, and its text in an embedded MSFT_StorageExtendedStatus.
	FaultReturn = "return"
	// FaultHRESULT answers with a status of its own: an HRESULT, or a Windows
	// error number for the operations that have those.
	FaultHRESULT = "hresult"
)

// Fault makes answers of the link go wrong. The node's own faults, see
// sim.Fault, act on the calls behind the link.
type Fault struct {
	// Op is the operation by its name without "Op"; empty means any but those of
	// the driver, of programs and of services, with which nobody asks for anything.
	Op string `json:"op,omitempty"`
	// Class is the class a WMI operation is about, Method the method; empty
	// means any. Both compare without case.
	Class  string `json:"class,omitempty"`
	Method string `json:"method,omitempty"`
	Kind   string `json:"kind"`
	// Code is the status of FaultHRESULT or the return value of FaultReturn; Win32
	// and Text are what the provider says beside an HRESULT.
	Code  uint32 `json:"code,omitempty"`
	Win32 uint32 `json:"win32,omitempty"`
	Text  string `json:"text,omitempty"`
	// DelayMilliseconds is the delay of FaultSlow.
	DelayMilliseconds int `json:"delayMilliseconds,omitempty"`
	// Times is how many calls it applies to; 0 means 1, negative all.
	Times int `json:"times,omitempty"`
	// After lets the call take effect first.
	After bool `json:"after,omitempty"`
}

// check refuses what nobody can carry out.
func (f *Fault) check() error {
	kinds := []string{FaultHang, FaultDie, FaultSlow, FaultGarbage, FaultNull, FaultReturn, FaultHRESULT}
	if !slices.Contains(kinds, f.Kind) {
		return fmt.Errorf("fault: no kind %q", f.Kind)
	}
	if (f.Kind == FaultHRESULT || f.Kind == FaultReturn) && f.Code == 0 {
		return fmt.Errorf("fault: kind %s needs a code", f.Kind)
	}
	if f.Op == "" {
		return nil
	}
	for _, o := range operations() {
		if strings.EqualFold(o.name, f.Op) {
			return nil
		}
	}
	return fmt.Errorf("fault: no operation %q", f.Op)
}

func (f *Fault) selects(op Op, name, class, method string) bool {
	if f.Op == "" && op >= OpDevices && op <= OpServiceStopped {
		return false
	}
	match := func(want, have string) bool { return want == "" || strings.EqualFold(want, have) }
	return match(f.Op, name) && match(f.Class, class) && match(f.Method, method)
}

// faults are those that are armed.
type faults struct {
	mu      sync.Mutex
	armed   []*Fault
	release chan struct{} // closed to let hanging calls go
	hanging int
	fired   int
}

func (f *faults) init() { f.release = make(chan struct{}) }

func (f *faults) add(fault Fault) error {
	if err := fault.check(); err != nil {
		return err
	}
	if fault.Times == 0 {
		fault.Times = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, &fault)
	return nil
}

// reset disarms every fault and lets hanging calls go.
func (f *faults) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = nil
	close(f.release)
	f.release = make(chan struct{})
}

// take gives the fault that applies to a call, nil for none.
func (f *faults) take(op Op, name, class, method string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, fault := range f.armed {
		if !fault.selects(op, name, class, method) {
			continue
		}
		f.fired++
		taken := *fault
		if fault.Times--; fault.Times == 0 {
			f.armed = slices.Delete(f.armed, i, i+1)
		}
		return &taken
	}
	return nil
}

func (f *faults) hang(c *call) {
	f.mu.Lock()
	release := f.release
	f.hanging++
	f.mu.Unlock()
	select {
	case <-release:
	case <-c.ctx.Done():
	}
	f.mu.Lock()
	f.hanging--
	f.mu.Unlock()
}

// errDie ends the connection of a call without an answer.
var errDie = errors.New("stand-in fault: the connection ends")

// faultBefore looks whether a fault applies to the call, and carries it out
// unless the call is to take effect first.
func (c *call) faultBefore() error {
	o := c.server.operations[c.op]
	c.fault = c.server.faults.take(c.op, o.name, c.subject, c.method)
	if c.fault == nil || c.fault.After {
		return nil
	}
	return c.carryOut(o)
}

// faultAfter carries out what is left of a fault when the call is done.
func (c *call) faultAfter() error {
	if c.fault == nil {
		return nil
	}
	if c.fault.After {
		if err := c.carryOut(c.server.operations[c.op]); err != nil {
			return err
		}
	}
	if c.fault.Kind == FaultGarbage {
		c.out.data = append(c.out.data[:8], bytes.Repeat([]byte{0xFF, 0xFE, 0x00, 0x7F, 0x80, 0xAA}, 16)...)
	}
	return nil
}

func (c *call) carryOut(o operation) error {
	switch c.fault.Kind {
	case FaultHang:
		c.server.faults.hang(c)
		return errDie
	case FaultDie:
		return errDie
	case FaultSlow:
		return c.pause(time.Duration(c.fault.DelayMilliseconds) * time.Millisecond)
	case FaultHRESULT:
		if o.wmi {
			return &cim.Error{Op: o.name, Object: c.subject, HRESULT: c.fault.Code, Win32: c.fault.Win32, Text: c.fault.Text}
		}
		return &win32.Error{Call: o.name, Code: c.fault.Code}
	}
	return nil
}

// pause waits, at most until the connection's end.
func (c *call) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.ctx.Done():
		return errDie
	}
}

// spoil makes values NULL, or puts others in their place, when the fault says so.
func (c *call) spoil(values cim.Values) {
	if c.fault == nil {
		return
	}
	if c.fault.Kind == FaultReturn && c.op == OpExec {
		values["ReturnValue"] = c.fault.Code
		values["ExtendedStatus"] = cim.Instance{Class: "MSFT_StorageExtendedStatus", Props: cim.Values{
			"CIMStatusCode": c.fault.Code, "Message": c.fault.Text,
		}}
		return
	}
	if c.fault.Kind != FaultNull {
		return
	}
	for name, value := range values {
		values[name] = nil
		if t, ok := typeOf(value); ok {
			values[name] = null(t)
		}
	}
}
