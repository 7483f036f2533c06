package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/csi-windows/csi-windows/host"
)

// refuse makes a failure that does not yet say what was tried on what; the task
// adds both once, at the border of the contract.
func refuse(kind host.Kind, format string, args ...any) error {
	return &host.Error{Kind: kind, Cause: fmt.Errorf(format, args...)}
}

// invalid refuses a request because of one field of it, which it names.
func invalid(field, format string, args ...any) error {
	return refuse(host.KindInvalid, field+": "+format, args...)
}

// named is the failure err of a task on an object, as it leaves the contract.
// The failure of a primitive stays whole as the cause and gives its kind.
func named(op, object string, err error) error {
	if err == nil {
		return nil
	}
	outer := &host.Error{Op: op, Object: object, Kind: kindOf(err), Cause: err}
	if inner, ok := any(err).(*host.Error); ok && inner.Op == "" {
		outer.Cause = inner.Cause // one of ours, which has nothing else to say
	}
	return outer
}

// kindOf is host.KindOf for errors that may also be those of a context.
func kindOf(err error) host.Kind {
	var inner *host.Error
	switch {
	case errors.As(err, &inner):
		return inner.Kind
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return host.KindTimeout
	default:
		return host.KindInternal
	}
}

// objectTextMax bounds what a request can put into errors and logs, in bytes.
const objectTextMax = 400

// text is text from a request as it may stand in errors and logs: bounded, and
// quoted when it holds anything that could pass for something else there.
func text(s string) string {
	if len(s) > objectTextMax {
		s = strings.ToValidUTF8(s[:objectTextMax], "") + "…"
	}
	for _, r := range s {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}
