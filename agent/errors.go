package agent

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// refuse makes a failure that does not yet say what was tried on what; the
// runner adds operation and object once, at the border of the contract.
func refuse(kind host.Kind, format string, args ...any) error {
	return &host.Error{Kind: kind, Cause: fmt.Errorf(format, args...)}
}

// invalid refuses a request because of one field of it, which it names.
func invalid(field, format string, args ...any) error {
	return refuse(host.KindInvalid, field+": "+format, args...)
}

// named is the failure err of operation op on object, as it leaves the
// contract. What an inner error says of operation and object is kept only
// where it adds something.
func named(op, object string, err error) error {
	if err == nil {
		return nil
	}
	// Only the error itself is taken apart; what somebody wrapped has words of its own.
	inner, isHostError := any(err).(*host.Error)
	if !isHostError {
		return &host.Error{Op: op, Object: object, Kind: host.KindOf(err), Cause: err}
	}
	outer := &host.Error{Op: op, Object: object, Kind: inner.Kind, Cause: inner.Cause}
	within := stepError{op: inner.Op, object: inner.Object, cause: inner.Cause}
	if within.op == op {
		within.op = ""
	}
	if within.object == object {
		within.object = ""
	}
	if within.op != "" || within.object != "" {
		outer.Cause = &within
	}
	return outer
}

// stepError is the part of an operation that failed.
type stepError struct {
	op     string
	object string
	cause  error
}

// Error names the step, its object and the cause, as far as each is known.
func (e *stepError) Error() string {
	parts := make([]string, 0, 2)
	if step := strings.TrimSpace(e.op + " " + e.object); step != "" {
		parts = append(parts, step)
	}
	if e.cause != nil {
		parts = append(parts, e.cause.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *stepError) Unwrap() error { return e.cause }

func diskObject(number uint32) string {
	return "disk " + strconv.FormatUint(uint64(number), 10)
}
