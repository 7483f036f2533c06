package pipe_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/csi-windows/csi-windows/wire/pipe"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// C060: SYSTEM and Administrators, each added account exactly once, nobody else.
// (Wine applies a descriptor without enforcing it, so this reads it back.)
func TestC060_SecurityDescriptor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allow []string
		want  string
	}{
		"base":     {nil, "D:P(A;;FA;;;SY)(A;;FA;;;BA)"},
		"one more": {[]string{"S-1-5-93-2-1", "S-1-5-93-2-1", "S-1-5-18"}, "D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FRFW;;;S-1-5-93-2-1)"},
	} {
		place := wiretest.Place(t)
		place.AllowSIDs = c.allow
		if got := appliedDescriptor(t, place); normalized(got) != normalized(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestC060_BadSIDIsRefused(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	place.AllowSIDs = []string{"nobody"}
	if _, err := place.Listen(t.Context(), "disk", "v1"); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("got %v", err)
	}
}

// appliedDescriptor reads the access list of a connected pipe.
func appliedDescriptor(t *testing.T, place pipe.Place) string {
	t.Helper()
	listener, err := place.Listen(t.Context(), "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			done <- result{err: err}
			return
		}
		defer conn.Close()
		handle := windows.Handle(conn.(interface{ Fd() uintptr }).Fd())
		descriptor, err := windows.GetSecurityInfo(handle, windows.SE_KERNEL_OBJECT, windows.DACL_SECURITY_INFORMATION)
		if err != nil {
			done <- result{err: err}
			return
		}
		done <- result{text: descriptor.String()}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := place.Dial(ctx, "disk", "v1")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.text
}

// normalized writes generic rights as the file rights that Windows maps them to.
func normalized(descriptor string) string {
	return strings.NewReplacer(";GRGW;", ";FRFW;", ";GWGR;", ";FRFW;", ";GA;", ";FA;", ";0x12019f;", ";FRFW;", ";0x1f01ff;", ";FA;").Replace(descriptor)
}
