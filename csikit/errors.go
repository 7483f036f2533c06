package csikit

import "errors"

// What a backend's errors say, matched with errors.Is. Each becomes one gRPC
// code; the text of the whole error becomes the message.
var (
	ErrInvalid         = errors.New("invalid")           // InvalidArgument
	ErrNotFound        = errors.New("not found")         // NotFound
	ErrExists          = errors.New("exists already")    // AlreadyExists
	ErrInUse           = errors.New("in use")            // FailedPrecondition
	ErrPrecondition    = errors.New("wrong state")       // FailedPrecondition
	ErrBusy            = errors.New("busy")              // Aborted
	ErrOutOfRange      = errors.New("size out of range") // OutOfRange
	ErrBadToken        = errors.New("bad token")         // Aborted, as CSI has it for list tokens
	ErrExhausted       = errors.New("exhausted")         // ResourceExhausted
	ErrUnauthenticated = errors.New("bad credentials")   // Unauthenticated
	ErrDenied          = errors.New("access denied")     // PermissionDenied
	ErrUnsupported     = errors.New("unsupported")       // Unimplemented
	ErrUnavailable     = errors.New("unavailable")       // Unavailable
)
