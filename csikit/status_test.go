package csikit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/csikit/internal/rules"
	"github.com/csi-windows/csi-windows/host"
)

func TestStatusOfErrors(t *testing.T) {
	t.Parallel()
	denied := &host.Error{Op: "MountVolume", Object: "volume x", Kind: host.KindDenied}
	for _, c := range []struct {
		err     error
		code    codes.Code
		message string
	}{
		{ErrInvalid, codes.InvalidArgument, "invalid"},
		{fmt.Errorf("disk 7: %w", ErrNotFound), codes.NotFound, "disk 7: not found"},
		{ErrExists, codes.AlreadyExists, "exists already"},
		{ErrInUse, codes.FailedPrecondition, "in use"},
		{ErrPrecondition, codes.FailedPrecondition, "wrong state"},
		{ErrBusy, codes.Aborted, "busy"},
		{ErrOutOfRange, codes.OutOfRange, "size out of range"},
		{ErrBadToken, codes.Aborted, "bad token"},
		{ErrExhausted, codes.ResourceExhausted, "exhausted"},
		{ErrUnauthenticated, codes.Unauthenticated, "bad credentials"},
		{ErrDenied, codes.PermissionDenied, "access denied"},
		{ErrUnsupported, codes.Unimplemented, "unsupported"},
		{ErrUnavailable, codes.Unavailable, "unavailable"},
		{errors.New("x"), codes.Internal, "x"},
		{denied, codes.PermissionDenied, denied.Error()},
		{fmt.Errorf("%w: %w", ErrUnavailable, denied), codes.Unavailable, "unavailable: " + denied.Error()},
		{status.Error(codes.OutOfRange, "too large"), codes.OutOfRange, "too large"},
		{fmt.Errorf("create: %w", status.Error(codes.OutOfRange, "too large")), codes.OutOfRange, "create: rpc error: code = OutOfRange desc = too large"},
		{&rules.Violation{Field: "f", Problem: "required"}, codes.InvalidArgument, "f: required"},
		{context.DeadlineExceeded, codes.DeadlineExceeded, "context deadline exceeded"},
		{fmt.Errorf("stage: %w", context.Canceled), codes.Canceled, "stage: context canceled"},
		{&interruptedError{errors.New("x"), context.DeadlineExceeded}, codes.DeadlineExceeded, "x"},
		{&interruptedError{status.Error(codes.Unknown, "x"), context.Canceled}, codes.Canceled, "x"},
		{&interruptedError{ErrNotFound, context.DeadlineExceeded}, codes.NotFound, "not found"},
	} {
		got := status.Convert(statusOf(c.err))
		if got.Code() != c.code || got.Message() != c.message {
			t.Errorf("%v: %s %q, want %s %q", c.err, got.Code(), got.Message(), c.code, c.message)
		}
	}
	if statusOf(nil) != nil {
		t.Error("nil is a failure")
	}
}

func TestEveryKindOfHostHasACode(t *testing.T) {
	t.Parallel()
	seen := map[codes.Code]host.Kind{}
	for kind := host.KindInternal; kind <= host.KindUnavailable; kind++ {
		code := codeOf(&host.Error{Kind: kind})
		if other, twice := seen[code]; twice {
			t.Errorf("%s and %s are both %s", kind, other, code)
		}
		seen[code] = kind
	}
}
