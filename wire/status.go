package wire

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// kindCodes are the gRPC codes of the kinds, one each.
var kindCodes = [...]codes.Code{
	host.KindInternal:        codes.Internal,
	host.KindInvalid:         codes.InvalidArgument,
	host.KindNotFound:        codes.NotFound,
	host.KindExists:          codes.AlreadyExists,
	host.KindDenied:          codes.PermissionDenied,
	host.KindUnauthenticated: codes.Unauthenticated,
	host.KindBusy:            codes.Aborted,
	host.KindExhausted:       codes.ResourceExhausted,
	host.KindPrecondition:    codes.FailedPrecondition,
	host.KindUnsupported:     codes.Unimplemented,
	host.KindTimeout:         codes.DeadlineExceeded,
	host.KindUnavailable:     codes.Unavailable,
}

// codeOf returns the code of a kind, and codes.Internal for what is no kind.
func codeOf(kind host.Kind) codes.Code {
	if int(kind) < len(kindCodes) {
		return kindCodes[kind]
	}
	return codes.Internal
}

// kindOfCode returns the kind of a code. Codes that no kind has are internal
// errors, with one exception: a call that its caller gave up is like one that ran
// out of time, since its outcome is as unknown.
func kindOfCode(code codes.Code) host.Kind {
	if code == codes.Canceled {
		return host.KindTimeout
	}
	for kind, c := range kindCodes {
		if c == code {
			return host.Kind(kind)
		}
	}
	return host.KindInternal
}

// statusOf makes the status of a failed job. Its message is the whole text of the
// error, for clients that read nothing else; its detail keeps the parts apart.
func statusOf(op string, err error) *status.Status {
	var failure *host.Error
	if !errors.As(err, &failure) {
		failure = &host.Error{Op: op, Kind: contextKind(err), Cause: err}
	}
	return statusWithCode(codeOf(failure.Kind), failure)
}

func statusWithCode(code codes.Code, failure *host.Error) *status.Status {
	detail := &wirepb.ErrorDetail{Op: text(failure.Op), Object: text(failure.Object), Kind: uint32(failure.Kind)}
	if failure.Cause != nil {
		detail.Cause = text(failure.Cause.Error())
	}
	plain := status.New(code, text(failure.Error()))
	detailed, err := plain.WithDetails(detail)
	if err != nil {
		return plain // the message alone still says everything
	}
	return detailed
}

// contextKind is the kind of an error that is no host.Error.
func contextKind(err error) host.Kind {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return host.KindTimeout
	}
	return host.KindInternal
}

// ErrorFromStatus makes a host.Error from the error of a gRPC call for the
// operation op. Servers that know host.Error say everything; of others the kind
// is that of the code, and the text is the cause. The result matches
// context.Canceled and context.DeadlineExceeded when the call ended so.
func ErrorFromStatus(op string, err error) *host.Error {
	s, _ := status.FromError(err)
	for _, detail := range s.Details() {
		if d, ok := detail.(*wirepb.ErrorDetail); ok {
			return errorFromDetail(s.Code(), d)
		}
	}
	return &host.Error{Op: op, Kind: kindOfCode(s.Code()), Cause: causeOf(s.Code(), s.Message())}
}

// errorFromDetail puts the parts together again. A kind that is not known here,
// as of a newer server, is that of the code.
func errorFromDetail(code codes.Code, d *wirepb.ErrorDetail) *host.Error {
	failure := &host.Error{Op: d.GetOp(), Object: d.GetObject(), Kind: kindOfCode(code)}
	if d.GetKind() < uint32(len(kindCodes)) {
		failure.Kind = host.Kind(d.GetKind())
	}
	if d.GetCause() != "" {
		failure.Cause = causeOf(code, d.GetCause())
	}
	return failure
}

// causeOf is the text of a failure. It makes no difference whether the server or
// the client's own clock was first to see that the time was up.
func causeOf(code codes.Code, text string) error {
	switch code {
	case codes.Canceled:
		return &endedCall{text: text, reason: context.Canceled}
	case codes.DeadlineExceeded:
		return &endedCall{text: text, reason: context.DeadlineExceeded}
	}
	return errors.New(text)
}

// endedCall is the text of a call that its context ended, and the reason.
type endedCall struct {
	text   string
	reason error
}

func (e *endedCall) Error() string { return e.text }
func (e *endedCall) Unwrap() error { return e.reason }
