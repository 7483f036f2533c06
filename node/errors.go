package node

import (
	"fmt"

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
	outer := &host.Error{Op: op, Object: object, Kind: host.KindOf(err), Cause: err}
	if inner, ok := any(err).(*host.Error); ok && inner.Op == "" {
		outer.Cause = inner.Cause // one of ours, which has nothing else to say
	}
	return outer
}
