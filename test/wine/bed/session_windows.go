package bed

import (
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
