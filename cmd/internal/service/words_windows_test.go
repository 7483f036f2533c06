package service

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
)

// Failures say what would help. (Wine refuses nothing, so these are made by hand.)
func TestWordsOfFailures(t *testing.T) {
	t.Parallel()
	for cause, want := range map[windows.Errno]string{
		windows.ERROR_ACCESS_DENIED:             "Administrators",
		windows.ERROR_SERVICE_DOES_NOT_EXIST:    "not installed",
		windows.ERROR_SERVICE_MARKED_FOR_DELETE: "try again",
		windows.ERROR_INVALID_PARAMETER:         "do it: ",
	} {
		if err := worded("do it", cause); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "do it: ") {
			t.Errorf("%d: %v, want %q", cause, err, want)
		}
	}
	if err := worded("do it", windows.ERROR_ACCESS_DENIED); !errors.Is(err, ErrDenied) {
		t.Errorf("got %v", err)
	}
	if err := worded("do it", nil); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestWordsOfStates(t *testing.T) {
	t.Parallel()
	for state, want := range map[svc.State]State{
		svc.Stopped: Stopped, svc.StartPending: Starting, svc.Running: Running, svc.StopPending: Stopping, svc.Paused: Other,
	} {
		if got := stateOf(state); got != want {
			t.Errorf("state %d is %s, want %s", state, got, want)
		}
	}
	for _, c := range []struct {
		startType uint32
		delayed   bool
		want      string
	}{
		{windows.SERVICE_AUTO_START, false, "automatic"}, {windows.SERVICE_AUTO_START, true, "delayed"},
		{windows.SERVICE_DEMAND_START, false, "manual"}, {windows.SERVICE_DISABLED, false, "disabled"}, {windows.SERVICE_BOOT_START, false, "start type 0"},
	} {
		if got := startTypeOf(c.startType, c.delayed); got != c.want {
			t.Errorf("start type %d is %s, want %s", c.startType, got, c.want)
		}
	}
}

func TestMultiString(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{"a\x00bc\x00\x00": {"a", "bc"}, "\x00": nil} {
		wanted := utf16.Encode([]rune(want))
		if got := unsafe.Slice(multiString(texts), len(wanted)); !slices.Equal(got, wanted) {
			t.Errorf("%q is %v, want %v", texts, got, wanted)
		}
	}
}
