package cim

import (
	"context"
	"testing"
	"time"
)

func failures(codes ...uint32) []error {
	errs := make([]error, len(codes))
	for i, code := range codes {
		errs[i] = &Error{Op: "Query", HRESULT: code}
	}
	return errs
}

func TestRetrying(t *testing.T) {
	t.Parallel()
	fast := RetryPolicy{Attempts: 3, FirstDelay: time.Microsecond, LongestDelay: time.Millisecond}
	for _, tt := range []struct {
		name      string
		exec      bool
		errs      []error
		wantCalls int
		wantErr   bool
	}{
		{"query succeeds", false, nil, 1, false},
		{"query after busy and restart", false, failures(ServerTooBusy, RPCDisconnected), 3, false},
		{"query gives up", false, failures(ServerTooBusy, ShuttingDown, TransportFailure, ProviderTimedOut), 3, true},
		{"query does not repeat a final failure", false, failures(InvalidClass), 1, true},
		{"method that did not run is repeated", true, failures(ServerTooBusy, RPCServerUnvail), 3, false},
		{"method that may have run is not", true, failures(RPCDisconnected), 1, true},
		{"method that timed out is not", true, failures(ProviderTimedOut), 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeSession{errs: tt.errs}
			s := Retrying(fake, fast)
			var err error
			if tt.exec {
				_, err = s.Exec(t.Context(), NamespaceStorage, "p", "m", nil)
			} else {
				_, err = s.Query(t.Context(), NamespaceStorage, "q")
			}
			if fake.calls != tt.wantCalls || (err != nil) != tt.wantErr {
				t.Errorf("%d calls, error %v; want %d, error %v", fake.calls, err, tt.wantCalls, tt.wantErr)
			}
		})
	}
}

func TestRetryingHonoursContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fake := &fakeSession{errs: failures(ServerTooBusy, ServerTooBusy)}
	if _, err := Retrying(fake, RetryPolicy{FirstDelay: time.Hour}).Query(ctx, NamespaceStorage, "q"); !Transient(err) {
		t.Errorf("error %v, want the failure of the call", err)
	}
	if fake.calls != 1 {
		t.Errorf("%d calls after the end of the context", fake.calls)
	}
}

// What COM and RPC say of a lost connection is told from what WMI, a provider or
// Windows say of the call.
func TestConnectionLoss(t *testing.T) {
	t.Parallel()
	for code, want := range map[uint32]bool{
		RPCDisconnected: true, RPCServerUnvail: true, TransportFailure: true,
		0x800401FD: true, 0x80010114: true, 0x800706B5: true, // CO_E_OBJNOTCONNECTED, RPC_E_INVALID_OBJECT, RPC_S_UNKNOWN_IF
		NotFound: false, ShuttingDown: false, GeneralAccess: false, 0xEFFF0002: false, 0x80070490: false,
	} {
		if got := isConnectionLoss(code); got != want {
			t.Errorf("0x%08X: %v, want %v", code, got, want)
		}
	}
}
