package wire_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// Each kind has one code, and a client makes the whole error again.
func TestKindsTravel(t *testing.T) {
	t.Parallel()
	want := map[host.Kind]codes.Code{
		host.KindInternal: codes.Internal, host.KindInvalid: codes.InvalidArgument, host.KindNotFound: codes.NotFound,
		host.KindExists: codes.AlreadyExists, host.KindDenied: codes.PermissionDenied,
		host.KindUnauthenticated: codes.Unauthenticated, host.KindBusy: codes.Aborted,
		host.KindExhausted: codes.ResourceExhausted, host.KindPrecondition: codes.FailedPrecondition,
		host.KindUnsupported: codes.Unimplemented, host.KindTimeout: codes.DeadlineExceeded, host.KindUnavailable: codes.Unavailable,
	}
	seen := map[codes.Code]bool{}
	for kind := host.KindInternal; kind <= host.KindUnavailable; kind++ {
		sent := &host.Error{Op: "Rescan", Object: "disk 3", Kind: kind, Cause: errors.New("MSFT_Disk.Refresh returned 5")}
		h := &wiretest.Host{Before: func(context.Context, string) error { return sent }}
		err := rescan(t.Context(), dial(t, serve(t, h), diskV1))
		wantCode(t, err, want[kind])
		if seen[want[kind]] {
			t.Errorf("code %s has two kinds", want[kind])
		}
		seen[want[kind]] = true
		if got := status.Convert(err).Message(); got != sent.Error() {
			t.Errorf("message %q, want %q", got, sent)
		}
		if got := wire.ErrorFromStatus("Other", err); got.Error() != sent.Error() || got.Kind != kind || got.Op != "Rescan" || got.Object != "disk 3" {
			t.Errorf("made again: %#v", got)
		}
	}
}

// What is no host.Error becomes one; a foreign server's text is kept.
func TestOtherErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sent error
		code codes.Code
	}{
		{errors.New("plain"), codes.Internal},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{&host.Error{Op: "Rescan", Kind: 99}, codes.Internal},
		{&host.Error{Op: "Rescan", Object: "bad \xff text", Kind: host.KindNotFound}, codes.NotFound},
	} {
		h := &wiretest.Host{Before: func(context.Context, string) error { return c.sent }}
		wantCode(t, rescan(t.Context(), dial(t, serve(t, h), diskV1)), c.code)
	}
	foreign := wire.ErrorFromStatus("Mkdir", status.Error(codes.Unknown, "mkdir failed: Access is denied."))
	if foreign.Kind != host.KindInternal || foreign.Op != "Mkdir" || !strings.Contains(foreign.Error(), "Access is denied.") {
		t.Errorf("foreign error: %v", foreign)
	}
	if ended := wire.ErrorFromStatus("Mkdir", status.Error(codes.Canceled, "gone")); ended.Kind != host.KindTimeout || !errors.Is(ended, context.Canceled) {
		t.Errorf("cancelled call: %v", ended)
	}
	if late := wire.ErrorFromStatus("Mkdir", status.Error(codes.DeadlineExceeded, "late")); !errors.Is(late, context.DeadlineExceeded) {
		t.Errorf("late call: %v", late)
	}
	newer, err := status.New(codes.NotFound, "new").WithDetails(&wirepb.ErrorDetail{Op: "Mkdir", Kind: 1000, Cause: "new"})
	if err != nil {
		t.Fatal(err)
	}
	if got := wire.ErrorFromStatus("Mkdir", newer.Err()); got.Kind != host.KindNotFound {
		t.Errorf("kind of a newer server: %v", got)
	}
}

// A deadline that the server saw is a deadline for the caller too.
func TestServerSeesTheDeadline(t *testing.T) {
	t.Parallel()
	h := &wiretest.Host{Before: func(context.Context, string) error {
		return &host.Error{Op: "Rescan", Kind: host.KindTimeout, Cause: context.DeadlineExceeded}
	}}
	err := wire.ErrorFromStatus("Rescan", rescan(t.Context(), dial(t, serve(t, h), diskV1)))
	if err.Kind != host.KindTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
