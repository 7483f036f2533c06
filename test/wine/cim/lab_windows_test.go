package cim

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/test/wine/standin"
	"github.com/csi-windows/csi-windows/winos/cim"
)

const (
	gib = int64(1) << 30
	// patience is for what takes a moment; on a busy machine it may take long.
	patience = 30 * time.Second
)

// lab is the simulated node as a test arranges it, and a COM session with it.
type lab struct {
	*testing.T
	control *control.Client
	address string
	session cim.Session
}

// newLab gives a fresh node. It fails the test when the lab is not there.
func newLab(t *testing.T) *lab {
	t.Helper()
	address := os.Getenv("CSI_STANDIN_CONTROL")
	if address == "" || os.Getenv("CSI_STANDIN") == "" {
		t.Fatal("CSI_STANDIN and CSI_STANDIN_CONTROL are not set; run test/wine/run lab")
	}
	l := &lab{T: t, control: control.NewClient(address), address: address}
	t.Cleanup(l.control.Close)
	l.post("/standin/node/reset", nil)
	l.session = connect(t)
	t.Cleanup(func() { l.post("/standin/reset", nil) }) // before the session is closed
	return l
}

// connect opens a session of its own, which is closed at the end of the test.
func connect(t *testing.T) cim.Session {
	t.Helper()
	session, err := cim.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return session
}

// post sends a control request to the node server.
func (l *lab) post(path string, body any) {
	l.Helper()
	data, err := json.Marshal(body)
	l.must(err)
	reply, err := http.Post("http://"+l.address+path, "application/json", bytes.NewReader(data))
	l.must(err)
	defer reply.Body.Close()
	if reply.StatusCode >= http.StatusMultipleChoices {
		l.Fatalf("%s: %s", path, reply.Status)
	}
}

// fault arms a fault of the link.
func (l *lab) fault(f standin.Fault) {
	l.Helper()
	l.post("/standin/fault", f)
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// attach plugs a disk in.
func (l *lab) attach(spec sim.DiskSpec) (number uint32) {
	l.Helper()
	spec.Image = strings.ReplaceAll(filepath.Base(l.TempDir()), ":", "") + l.Name() + ".img"
	if spec.SizeBytes == 0 {
		spec.SizeBytes = 5 * gib
	}
	number, err := l.control.AttachDisk(l.Context(), spec)
	l.must(err)
	return number
}

// call runs a method that must succeed.
func (l *lab) call(namespace, class, path, method string, in cim.Values) cim.Values {
	l.Helper()
	out, err := cim.Call(l.Context(), l.session, namespace, class, path, method, in)
	l.must(err)
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
