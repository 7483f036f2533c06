package host

import (
	"context"
	"errors"
	"strings"
)

// Kind says what sort of failure an Error is. The set is closed: wire makes
// exactly one gRPC status code from each kind, and the client makes the kind
// from the code again.
type Kind uint8

// The kinds of failure.
const (
	// KindInternal is a defect or an answer nobody expected. It is the zero
	// value so that an error without a kind is never taken for a milder one.
	KindInternal Kind = iota
	// KindInvalid is a request that can never succeed as it stands.
	KindInvalid
	// KindNotFound is an object that does not exist.
	KindNotFound
	// KindExists is an object that exists already and differs from the one asked for.
	KindExists
	// KindDenied is a caller, or the agent itself, without the right to do it.
	KindDenied
	// KindUnauthenticated is a wrong or missing credential: user, password, CHAP secret.
	KindUnauthenticated
	// KindBusy is an object that another operation holds; try again.
	KindBusy
	// KindExhausted is a resource that has run out: space, memory, mappings.
	KindExhausted
	// KindPrecondition is an object in a state that forbids the operation.
	// Refusals that protect data are of this kind.
	KindPrecondition
	// KindUnsupported is an operation this node or this version cannot do.
	KindUnsupported
	// KindTimeout is a deadline that passed; the outcome may be unknown.
	KindTimeout
	// KindUnavailable is a peer or a service that cannot be reached now; try again.
	KindUnavailable
)

var kindNames = [...]string{
	KindInternal: "internal error", KindInvalid: "invalid", KindNotFound: "not found",
	KindExists: "already exists", KindDenied: "access denied", KindUnauthenticated: "bad credentials",
	KindBusy: "busy", KindExhausted: "exhausted", KindPrecondition: "precondition failed",
	KindUnsupported: "unsupported", KindTimeout: "timed out", KindUnavailable: "unavailable",
}

// String returns the words used in error texts.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[KindInternal]
}

// Error is every failure that leaves this contract: what was tried (Op), on
// what (Object), what sort of failure it is (Kind), and why (Cause). The code
// of the operating system, or the class, method and return value of a CIM
// call, stay in the cause and are found with errors.As. No field ever holds a
// secret.
type Error struct {
	Op     string // the operation in its contract name, e.g. "FormatVolume"
	Object string // the object, e.g. "disk 3" or `C:\var\lib\kubelet\x`
	Kind   Kind
	Cause  error
}

// Error names operation and object once, then kind and cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Object != "" {
		b.WriteByte(' ')
		b.WriteString(e.Object)
	}
	b.WriteString(": ")
	b.WriteString(e.Kind.String())
	if e.Cause != nil {
		b.WriteString(": ")
		b.WriteString(e.Cause.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf returns the kind of the outermost Error in err's chain. Without one it is
// KindTimeout for an error of a context, and KindInternal for any other. It must not
// be called with nil.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return KindTimeout
	default:
		return KindInternal
	}
}

// IsKind reports whether err is a failure of kind k.
func IsKind(err error, k Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == k
}
