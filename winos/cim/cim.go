// Package cim talks to Windows Management Instrumentation in three calls: a
// query, an object, a method. The calls are an interface, so that the real
// COM session and the simulated node stand under the same logic.
//
// Values come as Go types by CIM type: string, bool, uint8, int16, uint16,
// int32, uint32, int64, uint64, float32, float64, slices of these, Instance for
// embedded objects, and nil for NULL. Class and property names compare without
// regard to case, as WMI does.
package cim

import (
	"context"
	"fmt"
)

// The namespaces the agent uses.
const (
	NamespaceStorage = `root\Microsoft\Windows\Storage`
	NamespaceSMB     = `root\Microsoft\Windows\Smb`
	NamespaceCIMV2   = `root\cimv2`
)

// Session is a connection to the node's CIM provider. It is safe for concurrent
// use. Failures of the provider itself are *Error; a method that ran and said
// no has a nil error and a ReturnValue other than 0 in Result.
type Session interface {
	// Query runs a WQL query (SELECT or ASSOCIATORS OF) and returns all rows.
	Query(ctx context.Context, namespace, wql string) ([]Instance, error)
	// Exec calls a method of the object at path: an instance's Path, or a class
	// name for a static method. In-parameters left out stay unset. A method that
	// has begun is waited for, whatever becomes of ctx.
	Exec(ctx context.Context, namespace, path, method string, in Values) (Result, error)
	// Close releases the connection.
	Close() error
}

// Stats say how a session's threads are used.
type Stats struct {
	// Workers are the threads that take calls.
	Workers int
	// Hung are further threads, which were replaced because their call goes on
	// although its context has ended; HungTotal is how often that has happened.
	Hung      int
	HungTotal uint64
}

// Counting is a Session that counts its threads. The one of Connect does.
type Counting interface {
	Session
	Stats() Stats
}

// Values are in-parameters or properties by name.
type Values map[string]any

// Instance is one object.
type Instance struct {
	Class string
	// Path is the relative object path (__RELPATH), empty when the query did not
	// select the key.
	Path  string
	Props Values
}

// Result is what a method returned.
type Result struct {
	ReturnValue uint32
	// Out holds the out-parameters, ReturnValue excluded.
	Out Values
}

// Error is a failure below a method's own return value: COM, WMI or the
// provider said no.
type Error struct {
	Op      string // "Query" or "Exec"
	Object  string // class, or class and method
	HRESULT uint32
	// Win32 is the system error number the provider reported beside the
	// HRESULT (MSFT_WmiError.error_Code), 0 when none.
	Win32 uint32
	// Text is what the provider said, without secrets; may be empty.
	Text string
}

// Error gives the code in the form in which it is searched for.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s %s: 0x%08X", e.Op, e.Object, e.HRESULT)
	if e.Win32 != 0 {
		s += fmt.Sprintf(" (Windows error %d)", e.Win32)
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// HRESULTs the logic distinguishes. Source: wbemcli.h, winerror.h.
const (
	Failed             = 0x80041001
	NotFound           = 0x80041002
	AccessDenied       = 0x80041003
	ProviderFailure    = 0x80041004
	TypeMismatch       = 0x80041005
	InvalidParameter   = 0x80041008
	InvalidNamespace   = 0x8004100E
	InvalidClass       = 0x80041010
	TransportFailure   = 0x80041015
	InvalidQuery       = 0x80041017
	InvalidMethod      = 0x8004102E
	ShuttingDown       = 0x80041033
	InvalidObjectPath  = 0x8004103A
	ServerTooBusy      = 0x80041045
	QuotaViolation     = 0x8004106C
	ProviderTimedOut   = 0x80041088
	GeneralAccess      = 0x80070005
	RPCDisconnected    = 0x80010108
	RPCServerUnvail    = 0x800706BA
	PropertyNotFound   = NotFound
	InvalidMethodParam = 0x8004102F
)
