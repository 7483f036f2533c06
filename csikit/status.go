package csikit

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/csikit/internal/rules"
	"github.com/csi-windows/csi-windows/host"
)

// statusOf makes the gRPC status of an error: of the values of errors.go, of a
// status that is in it, of a kind of host, or of a context that ended, in this
// order. What says nothing is Internal. The text of the whole error is the message.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	return statusWith(codeOf(err), messageOf(err))
}

func statusWith(code codes.Code, message string) error { return status.Error(code, message) }

// messageOf is the text of an error. That of a status is its message; one that is
// wrapped stays as it reads.
func messageOf(err error) string {
	if interrupted, ok := err.(*interruptedError); ok { //nolint:errorlint // only what was put around last
		err = interrupted.error
	}
	if plain, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return plain.GRPCStatus().Message()
	}
	return err.Error()
}

// interruptedError is an error of a handler whose time was up.
type interruptedError struct {
	error
	cause error // of the end
}

func (e *interruptedError) Unwrap() error { return e.error }

// interruptible runs a handler and notes whether it failed after its context ended.
func interruptible(ctx context.Context, handler func() (any, error)) (any, error) {
	answer, err := handler()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, &interruptedError{error: err, cause: cause}
	}
	return answer, err
}

// codeOf returns the code of an error that is not nil. What a handler could not
// name when its time was up is not known to have failed: callers take Internal
// for final, and would leave behind what was made.
func codeOf(err error) codes.Code {
	code := codeOfCause(err)
	var interrupted *interruptedError
	if (code == codes.Internal || code == codes.Unknown) && errors.As(err, &interrupted) {
		return codeOfCause(interrupted.cause)
	}
	return code
}

func codeOfCause(err error) codes.Code {
	if code, ok := codeOfValue(err); ok {
		return code
	}
	var carried interface{ GRPCStatus() *status.Status }
	if errors.As(err, &carried) && carried.GRPCStatus().Code() != codes.OK {
		return carried.GRPCStatus().Code()
	}
	var violation *rules.Violation
	var failure *host.Error
	switch {
	case errors.As(err, &violation):
		return codeOfViolation(violation)
	case errors.As(err, &failure):
		return codeOfKind(failure.Kind)
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	}
	return codes.Internal
}

// codeOfViolation is InvalidArgument, but for the one field for which CSI wants another.
//
// Source: CSI spec.md, GetMetadataAllocated Errors and GetMetadataDelta Errors.
func codeOfViolation(v *rules.Violation) codes.Code {
	if v.Field == "starting_offset" {
		return codes.OutOfRange
	}
	return codes.InvalidArgument
}

// codeOfValue looks for the values of errors.go: they are what an author says of
// an error, whatever it was made of.
func codeOfValue(err error) (codes.Code, bool) {
	for _, known := range []struct {
		value error
		code  codes.Code
	}{
		{ErrInvalid, codes.InvalidArgument},
		{ErrNotFound, codes.NotFound},
		{ErrExists, codes.AlreadyExists},
		{ErrInUse, codes.FailedPrecondition},
		{ErrPrecondition, codes.FailedPrecondition},
		{ErrBusy, codes.Aborted},
		{ErrOutOfRange, codes.OutOfRange},
		{ErrBadToken, codes.Aborted},
		{ErrExhausted, codes.ResourceExhausted},
		{ErrUnauthenticated, codes.Unauthenticated},
		{ErrDenied, codes.PermissionDenied},
		{ErrUnsupported, codes.Unimplemented},
		{ErrUnavailable, codes.Unavailable},
	} {
		if errors.Is(err, known.value) {
			return known.code, true
		}
	}
	return codes.Internal, false
}

// codeOfKind has one code for each kind of host, the same as on the pipes of
// csi-proxy.
func codeOfKind(kind host.Kind) codes.Code {
	switch kind {
	case host.KindInvalid:
		return codes.InvalidArgument
	case host.KindNotFound:
		return codes.NotFound
	case host.KindExists:
		return codes.AlreadyExists
	case host.KindDenied:
		return codes.PermissionDenied
	case host.KindUnauthenticated:
		return codes.Unauthenticated
	case host.KindBusy:
		return codes.Aborted
	case host.KindExhausted:
		return codes.ResourceExhausted
	case host.KindPrecondition:
		return codes.FailedPrecondition
	case host.KindUnsupported:
		return codes.Unimplemented
	case host.KindTimeout:
		return codes.DeadlineExceeded
	case host.KindUnavailable:
		return codes.Unavailable
	case host.KindInternal:
	}
	return codes.Internal
}
