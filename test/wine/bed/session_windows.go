package bed

import (
	"net"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
)

// Session is a session with WMI through COM, closed at the end of the test.
func Session(t testing.TB) cim.Session {
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

// FreeAddress is a loopback address that nobody listened on a moment ago.
func FreeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
