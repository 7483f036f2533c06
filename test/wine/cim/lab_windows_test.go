package cim

import (
	"errors"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/winos/cim"
)

const (
	gib = int64(1) << 30
	// patience is for what takes a moment; on a busy machine it may take long.
	patience = 30 * time.Second
)

// lab is the simulated node as a test arranges it, and a COM session with it.
type lab struct {
	*bed.Node
	session cim.Session
}

// newLab gives a fresh node. It fails the test when the lab is not there.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{Node: bed.Connect(t)}
	l.Fresh()
	l.session = bed.Session(t)
	t.Cleanup(l.Reset) // before the session is closed
	return l
}

// call runs a method that must succeed.
func (l *lab) call(namespace, class, path, method string, in cim.Values) cim.Values {
	l.Helper()
	out, err := cim.Call(l.Context(), l.session, namespace, class, path, method, in)
	l.OK(err)
	return out
}

// returns runs a method of the storage classes that must return a code.
func (l *lab) returns(want uint32, class, path, method string, in cim.Values) {
	l.Helper()
	_, err := cim.Call(l.Context(), l.session, cim.NamespaceStorage, class, path, method, in)
	if code, ok := cim.ReturnCode(err); !ok || code != want {
		l.Errorf("%s.%s: error %v, want return value %d", class, method, err, want)
	}
}

// failed checks a failure of the provider: HRESULT, and what it was about.
func failed(t *testing.T, err error, hresult uint32, object string) *cim.Error {
	t.Helper()
	var failure *cim.Error
	if !errors.As(err, &failure) || failure.HRESULT != hresult || failure.Object != object {
		t.Errorf("error %v, want 0x%08X of %s", err, hresult, object)
		return &cim.Error{}
	}
	return failure
}
